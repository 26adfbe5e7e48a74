"""Whoever carries a move out is killed in every step of it: the next one goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.services.platform_room import (
    QUICK,
    Hand,
    add_tenant,
    holding,
    kill,
    new,
    owner_on,
    sight,
    submit,
    until,
)

from fairway.core.audit import Actor
from fairway.core.errors import Unavailable
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.lifecycle import State
from fairway.core.ownership import tenant_move
from fairway.core.tenant import Tenant
from fairway.runtime.clock import SystemClock
from fairway.services.jobs.far_runs import no_peers
from fairway.services.maintenance import tenant_mover
from fairway.services.platform import Platform
from fairway.services.registry import tenant_moves
from fairway.services.submit.submission_group import Accepted
from fairway.store.registry import tenant_moves as store

JOBS, ROWS_AT_ONCE = 23, 5
TO = ShardId(3)
ANOTHER_TAKES_THE_KEY = """
INSERT INTO idempotency SELECT (jsonb_populate_record(used, jsonb_build_object('shard', $1::int))).*
FROM idempotency AS used"""
LATE_ROWS = """
WITH lines AS (
    INSERT INTO job_logs (shard, tenant, job, epoch, first_n, last_n, attempt, lines)
    VALUES ($1, $2, $3::text::uuid, 1, 1, 1, 1, '[]')
)
INSERT INTO held_jobs (shard, tenant, id, last_id, kind, job_count, body)
VALUES ($1, $2, $3::text::uuid, $3::text::uuid, 0, 1, '{}')"""
LATE_SHARDS = """
SELECT shard FROM job_logs WHERE tenant = $1
UNION ALL SELECT shard FROM held_jobs WHERE tenant = $1"""
#: Where each owner stands when it dies: before a call of the store, after it, or within its
#: transaction, of which nothing is left then.
DEATHS = [
    ("begin", "before"),
    ("_clear_the_way", "after"),  # within `begin`
    ("move_some", "after"),
    ("_count", "before"),  # within `move_some`
    ("_give_away", "before"),  # within `switch`
    ("switch", "after"),
]


class Deaths:
    """Calls of the store stand still where somebody is to die, and tell."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._left = list(DEATHS)
        self.is_there = asyncio.Event()
        for name in {name for name, _ in DEATHS}:
            patch.setattr(store, name, self._standing_still(name, getattr(store, name)))

    def _standing_still(self, name: str, call: Any) -> Any:
        async def stand_still(*given: Any) -> Any:
            await self._stand(name, "before")
            answer = await call(*given)
            await self._stand(name, "after")
            return answer

        return stand_still

    async def _stand(self, name: str, when: str) -> None:
        if self._left and self._left[0] == (name, when):
            self.is_there.set()
            await asyncio.Event().wait()

    def died(self) -> None:
        del self._left[0]
        self.is_there.clear()


async def start(dsn: str) -> Platform:
    settings = replace(QUICK, shard_count=4)
    platform = await Platform.prepare(dsn, settings, SystemClock(), no_peers)
    await platform.start()
    return platform


def owner_of(servers: list[Platform], shard: ShardId) -> Any:
    """None: nobody yet."""
    return next((one for one in servers if one.dispatcher.is_open(shard)), None)


async def ask(platform: Platform, to: ShardId = TO) -> None:
    wanted = tenant_moves.Wanted("acme", to)
    await tenant_moves.ask(platform.database, platform.audit_log, wanted, Actor("test"))


async def places(platform: Platform, tenant: TenantId) -> Counter[int]:
    async with platform.database.background() as connection:
        rows = await connection.fetch("SELECT shard FROM jobs WHERE tenant = $1", tenant)
    return Counter(row["shard"] for row in rows)


async def test_owners_die_in_every_step_of_a_move(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_move, "SETTLE_SECONDS", 0.3)
    for name in ("ROWS_AT_ONCE", "LAST_ROWS_MAX"):
        monkeypatch.setattr(tenant_mover, name, ROWS_AT_ONCE)
    monkeypatch.setattr(tenant_mover, "STEP_SECONDS", 0.02)
    deaths = Deaths(monkeypatch)
    servers = [await start(database_url), await start(database_url)]
    await until(lambda: [len(one.dispatcher.shards.open) for one in servers] == [2, 2])
    tenant = await add_tenant(servers[0])
    await servers[1].directory.run_once(0)
    home = servers[0].tenant_shards.of(tenant.id)
    owner = owner_of(servers, home)
    keyed = new(idempotency_key="k-1", body_hash=b"1" * 32)
    jobs = await submit(owner, tenant, keyed, *[new()] * (JOBS - 1))
    hand = Hand(owner, short=1)
    (lease,) = await hand.take()
    await ask(owner)
    await asyncio.sleep(0.2)
    assert not deaths.is_there.is_set()  # the run goes on, and is waited for
    await hand.say(hello=True, running=[holding(lease)])  # as after any change of owners
    assert await hand.report(hand.done(lease)) == ({1}, set())
    ran: list[str] = [lease.job.id]
    for _ in DEATHS:
        async with asyncio.timeout(30):
            await deaths.is_there.wait()
        deaths.died()
        dead = owner_of(servers, home)
        servers = [one for one in servers if one is not dead] + [await start(database_url)]
        await kill(dead)
        assert (await places(servers[0], tenant.id)).total() == JOBS
    try:
        await until(lambda: owner_of(servers, TO) is not None)
        assert await places(servers[0], tenant.id) == {TO: JOBS}
        for one in servers:
            await all_is_there(one, tenant, jobs, keyed)
        ran += await run(owner_of(servers, TO), JOBS - 1)
        assert sorted(ran) == sorted(jobs)
        for one in servers:
            states = {(await sight(one, tenant, job)).record.state for job in jobs}
            assert states == {State.SUCCEEDED}
    finally:
        for one in servers:
            await one.stop()


async def all_is_there(platform: Platform, tenant: Tenant, jobs: list[JobId], keyed: Any) -> None:
    """Each by its id; a key is refused a second time; and new ids name the new shard."""
    await platform.directory.run_once(0)  # before it has heard of the end, keys hear 503
    for job in jobs:
        assert (await sight(platform, tenant, job)).record.id == job
    known = platform.directory.tenants[tenant.id]
    assert (known.shard, known.moving_to) == (TO, None)
    (again,) = await platform.submissions.submit(known, [keyed])
    assert again == Accepted(jobs[0], replayed=True)


async def run(platform: Platform, count: int) -> list[str]:
    """So many, one after the other: each once."""
    hand, ran = Hand(platform, short=1), list[str]()
    leases = await hand.take()
    while True:
        (lease,) = leases
        await hand.report(hand.done(lease))
        ran.append(lease.job.id)
        if len(ran) == count:
            await hand.say(goodbye=True)
            return ran
        leases = await hand.take()


async def test_a_move_is_stopped_by_no_double_and_stops_no_other_tenant(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_move, "SETTLE_SECONDS", 0.5)
    platform = await start(database_url)
    try:
        await until(lambda: len(platform.dispatcher.shards.open) == 4)
        tenant = await add_tenant(platform)
        keyed = new(idempotency_key="k-1", body_hash=b"1" * 32)
        await submit(platform, tenant, keyed)
        await ask(platform)
        async with platform.database.background() as connection:
            await connection.execute(ANOTHER_TAKES_THE_KEY, TO)
            await connection.execute("UPDATE shards SET term = -9 WHERE shard = $1", TO)
        await platform.directory.run_once(0)
        with pytest.raises(Unavailable):  # also of a request that was let in before
            await platform.submissions.submit(tenant, [new()])
        others = [await platform.directory.add_tenant(f"other-{n}") for n in range(4)]
        homes = {platform.tenant_shards.of(one.id) for one in others if one is not None}
        assert TO not in homes, "nobody owns it"
        tenants, is_open = platform.directory.tenants, platform.dispatcher.is_open
        await until(lambda: tenants[tenant.id].shard == TO and is_open(TO), seconds=30)
        assert await places(platform, tenant.id) == {TO: 1}
        home = ShardId(tenant.id % 4)
        terms = platform.dispatcher.terms()
        assert terms[TO] > terms[home], "epochs only ever grow"
    finally:
        await platform.stop()


async def test_a_server_says_that_it_has_heard_once_it_starts_nothing_more(
    database_url: str,
) -> None:
    """A new connection may bring the news before the directory does, which holds the jobs."""
    async with owner_on(database_url, replace(QUICK, shard_count=4)) as platform:
        database, directory = platform.database, platform.directory
        await add_tenant(platform)
        parts = platform.dispatcher, directory, platform.clock, platform.ownership
        mover = tenant_mover.TenantMover(database, *parts)
        async with directory._one_reads:  # it is slow
            await ask(platform)
            async with database.background() as connection:
                await directory.learn_moves(connection, 0)
            await mover.run_once(0)
            assert await hearers(platform) == 0
        await directory.run_once(0)
        await mover.run_once(0)
        assert await hearers(platform) == 1


async def test_a_move_that_fails_keeps_no_late_rows_of_others_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme: Any = SimpleNamespace(id=TenantId(1))
    dispatcher: Any = SimpleNamespace(
        homes=lambda: SimpleNamespace(all_moving=[acme.id]),
        holds=lambda: SimpleNamespace(is_suspended=lambda tenant: False),
    )
    directory: Any = SimpleNamespace(tenants={acme.id: acme})
    nobody: Any = None
    mover = tenant_mover.TenantMover(nobody, dispatcher, directory, SystemClock(), nobody)
    looks = 0

    async def fail(tenant: Tenant) -> None:
        raise TimeoutError

    async def collect() -> bool:
        nonlocal looks
        looks += 1
        return False

    monkeypatch.setattr(mover, "_go_on", fail)
    monkeypatch.setattr(mover, "_collect", collect)
    with pytest.raises(TimeoutError):
        await mover.run_once(0)
    assert looks == 1


async def hearers(platform: Platform) -> int:
    async with platform.database.background() as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM tenant_move_hearers")
    return found


async def test_a_move_that_is_cancelled_half_way_brings_all_back_and_may_be_asked_for_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_move, "SETTLE_SECONDS", 0.3)
    for name, value in {"ROWS_AT_ONCE": 5, "STEP_SECONDS": 0.02, "STRAYS_US": 0}.items():
        monkeypatch.setattr(tenant_mover, name, value)
    monkeypatch.setattr(tenant_mover, "REST_SECONDS", 0.1)
    is_half_way, go_on, move_some = asyncio.Event(), asyncio.Event(), store.move_some

    async def stand_half_way(*given: Any) -> Any:
        part, table = await move_some(*given), given[3]
        if table == "jobs":
            is_half_way.set()
            await go_on.wait()
        return part

    monkeypatch.setattr(store, "move_some", stand_half_way)
    platform = await start(database_url)
    try:
        await until(lambda: len(platform.dispatcher.shards.open) == 4)
        tenant = await add_tenant(platform)
        home = platform.tenant_shards.of(tenant.id)
        keyed = new(idempotency_key="k-1", body_hash=b"1" * 32)
        jobs = await submit(platform, tenant, keyed, *[new()] * (JOBS - 1))
        await ask(platform)
        await platform.directory.run_once(0)
        await is_half_way.wait()
        assert await places(platform, tenant.id) == {TO: 5, home: JOBS - 5}
        await tenant_moves.cancel(platform.database, platform.audit_log, "acme", Actor("test"))
        go_on.set()
        await until(lambda: not platform.tenant_shards.any_moving, seconds=30)
        (off,) = await tenant_moves.list_moves(platform.database)
        assert (off.state, off.note[:29]) == ("called_off", "Cancelled with the key 'test'")
        assert await places(platform, tenant.id) == {home: JOBS}
        assert await platform.submissions.submit(tenant, [keyed]) == [
            Accepted(jobs[0], replayed=True)
        ]
        ran = await run(platform, 3)
        await ask(platform)
        tenants, is_open = platform.directory.tenants, platform.dispatcher.is_open
        await until(lambda: tenants[tenant.id].shard == TO and is_open(TO), seconds=30)
        async with platform.database.background() as connection:
            await connection.execute(LATE_ROWS, home, tenant.id, jobs[0])
        ran += await run(platform, JOBS - 3)
        assert sorted(ran) == sorted(jobs)
        await until_collected(platform, tenant.id)
    finally:
        await platform.stop()


async def until_collected(platform: Platform, tenant: TenantId) -> None:
    """What was written too late to where the tenant was is where it is."""
    async with asyncio.timeout(20):
        while True:
            async with platform.database.background() as connection:
                rows = await connection.fetch(LATE_SHARDS, tenant)
            if [row["shard"] for row in rows] == [TO, TO]:
                return
            await asyncio.sleep(0.1)
