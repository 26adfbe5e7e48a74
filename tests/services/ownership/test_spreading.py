"""Shards spread over servers on one database: who joins is served, who leaves is replaced."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.acceptance.pace import Pace
from tests.postgres import connected
from tests.services.dispatch.roaming_worker import RoamingWorker
from tests.services.platform_room import (
    QUICK,
    TERM_SECONDS,
    Hand,
    add_tenant,
    kill,
    owner_on,
    platform_on,
    submit,
    until,
)

from fairway.core.ids import JobId, ShardId, Term
from fairway.core.tenant import Tenant
from fairway.runtime.clock import SystemClock
from fairway.runtime.settings import Settings
from fairway.services.jobs.far_runs import no_peers
from fairway.services.ownership import takeover
from fairway.services.ownership.spreading import (
    NOBODYS_US,
    OPENING_US,
    SHUNNED_US,
    SHUNNED_US_MAX,
    ClusterLook,
    Spreading,
)
from fairway.services.platform import Platform
from fairway.store import leases
from fairway.store.connections.database import Connection
from fairway.store.leadership import Server, ShardRow

SHARDS = 8
WIDE = replace(QUICK, shard_count=SHARDS)
#: A server that is not let run for a while is not to lose what it owns.
LONG_TERM_SECONDS = 2.0
GAP_SECONDS_MAX = 2.0
SOAK_SECONDS = float(os.environ.get("FAIRWAY_SPREAD_SECONDS", "600"))
SOAK_SHARDS = 64
STAY_SECONDS = 20.0
MEASURED_SECONDS = 10.0  # of those at least, once the shards are spread
UNEVEN_MAX = 0.20


async def joined(dsn: str, settings: Settings = WIDE) -> Platform:
    platform = await Platform.prepare(dsn, settings, SystemClock(), no_peers)
    await platform.start()
    return platform


def opened(*platforms: Platform) -> list[int]:
    return sorted(len(one.dispatcher.shards.open) for one in platforms)


class Load:
    """A job for every shard, over and over: each goes to its owner, as servers pass them on.

    Where nobody owns the shard just now, whoever has the job writes it and hints the next owner.
    """

    def __init__(self, tenants: Sequence[Tenant]) -> None:
        self._tenants = tenants
        self._task: asyncio.Task[None] | None = None
        self._is_over = False
        self._turn = 0
        self.platforms: list[Platform] = []
        self.jobs: list[JobId] = []

    def begin(self, *platforms: Platform) -> None:
        self.platforms = list(platforms)
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        self._is_over = True
        assert self._task is not None
        await self._task

    async def _run(self) -> None:
        while not self._is_over:
            for made in await asyncio.gather(*map(self._submit, self._tenants)):
                self.jobs += made
            self._pass_hints()
            await asyncio.sleep(0.05)

    async def _submit(self, tenant: Tenant) -> list[JobId]:
        self._turn += 1
        anybody = self.platforms[self._turn % len(self.platforms)]
        owner = self._owner_of(self.platforms[0].dispatcher.shards.tenants.of(tenant.id))
        return await submit(owner or anybody, tenant)

    def _owner_of(self, shard: ShardId) -> Platform | None:
        return next((one for one in self.platforms if one.dispatcher.owns(shard)), None)

    def _pass_hints(self) -> None:
        for one in self.platforms:
            for shard in one.hints.shards:
                if (owner := self._owner_of(shard)) is not None:
                    owner.dispatcher.hinted(shard, one.hints.take(shard))


async def of_every_shard(platform: Platform) -> list[Tenant]:
    count = platform.cluster.shard_count
    tenants = [await add_tenant(platform, f"t{number}") for number in range(count)]
    assert {platform.tenant_shards.of(one.id) for one in tenants} == set(range(count))
    return tenants


async def test_servers_join_leave_and_die_and_no_job_is_lost_or_run_twice(
    database_url: str,
) -> None:
    with Pace() as pace:
        await _join_leave_and_die(database_url, pace)


async def _join_leave_and_die(database_url: str, pace: Pace) -> None:
    terms = replace(WIDE, term_seconds=LONG_TERM_SECONDS)
    first = await joined(database_url, terms)
    await until(lambda: opened(first) == [SHARDS])
    load, worker = Load(await of_every_shard(first)), RoamingWorker()
    worker.meet(first)
    load.begin(first)
    second, third = [await joined(database_url, terms) for _ in range(2)]
    for one in (second, third):
        await one.directory.run_once(0)
    worker.meet(second, third)
    await until(lambda: opened(first, second, third) == [2, 3, 3])
    load.platforms = [first, second, third]
    assert all((await third.readiness.checks()).values())

    load.platforms = [first, third]
    await second.let_go()  # it still passes on what comes
    await until(lambda: opened(first, third) == [4, 4])
    await worker.part(second)
    await second.stop()
    await asyncio.sleep(0.2)
    assert max(worker.gaps.values()) < GAP_SECONDS_MAX * pace.slowdown
    assert len(worker.gaps) == SHARDS

    load.platforms = [third]
    began = time.monotonic()
    await worker.part(first)
    await kill(first)
    await until(lambda: opened(third) == [SHARDS])
    assert time.monotonic() - began < (LONG_TERM_SECONDS + GAP_SECONDS_MAX) * pace.slowdown
    await load.end()
    await until(lambda: worker.done >= set(load.jobs))
    await worker.leave()
    await third.stop()
    assert set(worker.runs) == set(load.jobs)
    assert max(worker.runs.values()) == 1
    assert worker.trouble == []


async def test_who_stops_as_another_comes_goes_on_until_that_owns_something(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a restart of one after the other: no worker knows a server that owns nothing."""
    terms = replace(WIDE, term_seconds=LONG_TERM_SECONDS)
    first = await joined(database_url, terms)
    await until(lambda: opened(first) == [SHARDS])
    second = await joined(database_url, terms)
    await second.ownership.looked()
    owned_then, stop_granting = list[int](), first.ownership.stop_granting

    def stop() -> None:
        owned_then.append(len(second.ownership.owned()))
        stop_granting()

    monkeypatch.setattr(first.ownership, "stop_granting", stop)
    await first.let_go()
    assert 0 < owned_then[0] < SHARDS, "the first was handed over before the rest"
    await until(lambda: opened(second) == [SHARDS])
    await first.stop()
    began = time.monotonic()
    await second.let_go()
    assert time.monotonic() - began < LONG_TERM_SECONDS, "there is nobody to stay for"
    await second.stop()


async def test_who_stops_stays_for_nobody_while_the_store_is_away(database_url: str) -> None:
    """Nobody can take a shard then: a stop has other things to wait for."""
    slow = replace(WIDE, term_seconds=60.0)
    first = await joined(database_url, slow)
    await until(lambda: opened(first) == [SHARDS])
    second = await joined(database_url, slow)
    await second.ownership.looked()
    await first.ownership.looked()
    assert first.ownership.is_awaited
    await first.loops["store watch"].stop()
    await first.database.away()
    assert not first.ownership.is_awaited
    first.database.back()
    for one in (second, first):
        await one.let_go()
        await one.stop()


async def test_a_hand_over_holds_up_no_renewal_and_leaves_no_shard_without_grants(
    database_url: str,
) -> None:
    """Its row is held by somebody, and what is to be written first fails."""

    async def fails(shards: object) -> None:
        raise LookupError("not to be written")

    async with owner_on(database_url, WIDE) as platform, connected(database_url) as other:
        ownership, shard = platform.ownership, ShardId(SHARDS - 1)
        ownership._ports = ownership._ports._replace(write_leases=fails)
        async with other.transaction():
            await other.fetch("SELECT FROM shards WHERE shard = $1 FOR UPDATE", shard)
            async with asyncio.timeout(5):
                await ownership._hand_over({shard})
                await ownership.run_once(now_us(platform))
            assert shard not in platform.dispatcher.terms()
            assert platform.dispatcher.shards.may_grant(ShardId(0), now_us(platform))
        await until(lambda: opened(platform) == [SHARDS])  # nobody else wants it
        assert not platform.dispatcher.shards.suspended


def test_who_does_not_open_what_it_took_is_given_no_more() -> None:
    servers = [Server(name, "", True, False, True, True) for name in ("a", "b")]
    rows = [
        ShardRow(ShardId(n), Term(1), "b" if n == 7 else "a", "", True, False, n != 7)
        for n in range(SHARDS)
    ]
    held = {row.shard: row.term for row in rows if row.owner == "a"}
    look, spreading = ClusterLook(servers, rows, (), held, held.keys()), Spreading("a")
    assert spreading.part(look, 0).give == [], "one is on its way"
    assert spreading.part(look, OPENING_US).give == []
    rows[7] = rows[7]._replace(is_open=True)
    assert len(spreading.part(look, OPENING_US).give) == 1


def test_what_cannot_be_opened_here_is_given_up_where_another_may_try() -> None:
    us, other = (Server(name, "", True, False, True, True) for name in ("a", "b"))
    row = ShardRow(ShardId(0), Term(1), "a", "", True, False, False)
    look, spreading = (
        ClusterLook([us], [row], (), {row.shard: row.term}, (), {row.shard}),
        Spreading("a"),
    )
    assert spreading.part(look, 0).give_up == (), "nobody else is there"
    look = look._replace(servers=[us, other])
    assert spreading.part(look, 0).give_up == {0}
    free = row._replace(has_owner=False, is_free=True)
    look = look._replace(servers=[us], rows=[free], held={}, hopeless=())
    assert spreading.part(look, 1).take == set()
    assert spreading.part(look, SHUNNED_US).take == {0}


def test_a_shard_that_nobody_could_open_is_not_left_alone() -> None:
    """Two servers shun it for an hour by now; what kept it closed is over."""
    servers = [Server(name, "", True, False, True, True) for name in ("a", "b")]
    row = ShardRow(ShardId(0), Term(1), "a", "", True, False, False)
    spreading, now_us = Spreading("a"), 0
    failing = ClusterLook(servers, [row], (), {row.shard: row.term}, (), {row.shard})
    for _ in range(20):
        assert spreading.part(failing, now_us).give_up == {0}
        now_us += SHUNNED_US_MAX
    assert spreading.part(failing, now_us).give_up == {0}
    free = row._replace(has_owner=False, is_free=True)
    look = failing._replace(rows=[free], held={}, hopeless=())
    looks = range(now_us, now_us + 2 * NOBODYS_US, 200_000)
    taken = next(at_us for at_us in looks if spreading.part(look, at_us).take)
    assert NOBODYS_US <= taken - now_us < NOBODYS_US + 1_000_000
    ours = row._replace(is_open=True)
    open_ = failing._replace(rows=[ours], opened={row.shard}, hopeless=())
    assert spreading.part(open_, taken + 1).give_up == ()
    spreading.part(failing, taken + 2)
    assert spreading.part(look, taken + 3).take == set()
    alone = look._replace(servers=servers[:1])
    # As rare as the first time: what was before it opened is forgotten.
    assert spreading.part(alone, taken + 2 + SHUNNED_US).take == {0}


def test_a_shard_that_a_tenant_moves_into_holds_up_no_other() -> None:
    servers = [Server(name, "", True, False, True, True) for name in ("a", "b")]
    rows = [ShardRow(ShardId(n), Term(1), "a", "", True, False, True) for n in range(1, 2 * SHARDS)]
    taken_away = ShardRow(ShardId(0), Term(2), "", "", False, False, False)
    held = {row.shard: row.term for row in rows}
    look = ClusterLook(servers, [taken_away, *rows], (), held, held.keys())
    assert len(Spreading("a").part(look, 0).give) == 1


def test_a_shard_that_the_working_process_cannot_open_stays_with_one_that_can() -> None:
    """Three processes of a server with little to do: one owns all, but for what it cannot open."""
    step_us, shards, bad = 200_000, 8, ShardId(0)
    names = "abc"
    servers = [Server(name, "", True, False, True, True, "group") for name in names]
    seen = {name: Spreading(name) for name in names}
    owner: dict[ShardId, str] = {ShardId(n): "a" for n in range(shards)}
    since = dict.fromkeys(owner, 0)
    term = dict.fromkeys(owner, Term(1))
    open_us = 0
    for now_us in range(0, 600_000_000, step_us):
        for name in names:
            mine = {shard: term[shard] for shard, owned_by in owner.items() if owned_by == name}
            closed = {bad} if owner.get(bad) == "a" else set()
            rows = [
                ShardRow(
                    n, term[n], owner.get(n, ""), "", n in owner, n not in owner, n not in closed
                )
                for n in term
            ]
            hopeless = {one for one in closed & mine.keys() if now_us - since[one] > 30_000_000}
            look = ClusterLook(servers, rows, (), mine, mine.keys() - closed, hopeless)
            take, give, give_up = seen[name].part(look, now_us)
            for shard in (*give, *give_up):
                del owner[shard]
            seen[name].given(give)
            for shard in take:
                owner[shard], since[shard], term[shard] = name, now_us, Term(term[shard] + 1)
        open_us += step_us * (owner.get(bad, "a") != "a")
    assert open_us > 420_000_000, "it is tried again ever more seldom"
    assert sum(name == "a" for name in owner.values()) >= shards - 1


async def test_a_shard_that_cannot_be_opened_does_not_stay_with_its_owner(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if another server were there to try; nobody kept a shard that it never granted from."""
    monkeypatch.setattr(takeover, "HOPELESS_US", 0)
    async with owner_on(database_url) as platform, connected(database_url) as connection:
        tries = 0

        async def fail(shard: ShardId) -> None:
            nonlocal tries
            tries += 1
            raise ValueError("a lease of it cannot be read")

        monkeypatch.setattr(platform.ownership._takeover, "_restore", fail)
        await connection.execute(
            "INSERT INTO servers (name, url, owns_shards, is_leaving, since, seen_at, expires_at)"
            " SELECT 'other', '', true, false, now() - interval '1 h', now() + interval '1 h',"
            " now() + interval '50 s'"
        )
        await connection.execute("UPDATE shards SET term = term + 1, expires_at = now()")
        await until(lambda: tries > 0)

        async def is_free() -> bool:
            row = await connection.fetchrow("SELECT term, expires_at < now() AS free FROM shards")
            return bool(row["free"] and row["term"] > 2)

        await until(is_free)
        assert not platform.dispatcher.terms()


async def test_one_sick_shard_stops_alone(database_url: str) -> None:
    async with owner_on(database_url, WIDE) as platform, connected(database_url) as other:
        tenants = await of_every_shard(platform)
        sick = ShardId(3)
        async with other.transaction():
            await other.fetch("SELECT FROM shards WHERE shard = 3 FOR UPDATE")
            await until(lambda: not platform.dispatcher.shards.may_grant(sick, now_us(platform)))
            jobs = [(await submit(platform, tenant))[0] for tenant in tenants]
            hand = Hand(platform, short=SHARDS)
            leases = await hand.take(SHARDS - 1)
            ends = time.monotonic() + 2 * TERM_SECONDS
            while time.monotonic() < ends:  # the others' terms are renewed all the while
                news = await hand.say(wait_seconds=0.1)
                assert news is not None
                assert news.leases == []
            assert platform.dispatcher.shards.last_trusted_until_us > now_us(platform)
            assert {lease.shard for lease in leases} == set(range(SHARDS)) - {sick}
        async with asyncio.timeout(10):
            while not (news := await hand.say(wait_seconds=1.0)) or not news.leases:
                continue
        assert news.leases[0].job.id in jobs, "the row is free, and its held call is answered"


async def test_a_heartbeat_that_is_not_taken_stops_no_renewal(database_url: str) -> None:
    async with owner_on(database_url, WIDE) as platform, connected(database_url) as other:
        terms, shards = dict(platform.dispatcher.terms()), platform.dispatcher.shards
        async with other.transaction():
            await other.execute("LOCK TABLE servers")
            for _ in range(3):
                await until(partial(is_renewed, platform, shards.trusted_until_us), 2.5)
        assert platform.dispatcher.terms() == terms


async def test_leases_that_cannot_be_read_stop_their_shard_alone(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers say hello all the same, and once more when they can be."""
    read, sick = leases.read_running, {ShardId(3)}

    async def sometimes(connection: Connection, shard: ShardId, *page: Any) -> Any:
        if shard in sick:
            raise LookupError("not to be read")
        return await read(connection, shard, *page)

    monkeypatch.setattr(leases, "read_running", sometimes)
    async with platform_on(database_url, WIDE) as platform:
        await until(lambda: opened(platform) == [SHARDS - 1])
        jobs = [(await submit(platform, one))[0] for one in await of_every_shard(platform)]
        hand = Hand(platform, short=SHARDS)
        taken = {lease.job.id for lease in await hand.take(SHARDS - 1)}
        assert len(taken) == SHARDS - 1
        sick.clear()
        await until(lambda: opened(platform) == [SHARDS])
        while taken != set(jobs):  # a hello that names nothing brings the others once more
            taken |= {lease.job.id for lease in await hand.take()}
            await asyncio.sleep(0.01)  # those come at once: whoever reads the last needs a turn


def is_renewed(platform: Platform, since_us: int) -> bool:
    return platform.dispatcher.shards.trusted_until_us > since_us


def now_us(platform: Platform) -> int:
    return platform.clock.now_us()


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS + 120)
async def test_a_server_joins_and_leaves_over_and_over(database_url: str) -> None:
    """FAIRWAY_SPREAD_SECONDS says for how long; prints what was seen, and where the time went."""
    settings = Settings(data_dir=QUICK.data_dir, shard_count=SOAK_SHARDS)
    stays = [await joined(database_url, settings) for _ in range(2)]
    await until(lambda: opened(*stays) == [SOAK_SHARDS // 2] * 2)
    load, worker = Load(await of_every_shard(stays[0])), RoamingWorker(slots=4 * SOAK_SHARDS)
    await stays[1].directory.run_once(0)
    worker.meet(*stays)
    load.begin(*stays)
    await asyncio.sleep(2)
    worker.forget_gaps()
    ends, uneven, visits = time.monotonic() + SOAK_SECONDS, list[float](), 0
    worked = time.process_time()
    with Pace() as pace:
        while time.monotonic() < ends:
            uneven.append(await _visit(database_url, settings, stays, load, worker))
            visits += 1
    worked = time.process_time() - worked
    await load.end()
    await until(lambda: worker.done >= set(load.jobs))
    lost, doubled = set(load.jobs) - worker.done, [n for n in worker.runs.values() if n > 1]
    longest = worker.longest[-1]
    print(  # noqa: T201  # what the soak is run for
        f"{visits} visits, {len(load.jobs)} jobs, lost {len(lost)}, run twice {len(doubled)};"
        f" longest time without a grant {longest};"
        f" work uneven by {max(uneven):.0%} at most; trouble {worker.trouble};"
        f" {worked / max(visits, 1):.1f} s of processor time a visit,"
        f" machine slower than alone by up to {pace.slowdown:.1f}"
    )
    await worker.leave()
    for one in stays:
        await one.stop()
    assert (lost, doubled, worker.trouble) == (set(), [], [])
    assert len(worker.gaps) == SOAK_SHARDS
    assert longest.seconds <= GAP_SECONDS_MAX, str(longest)
    assert max(uneven) <= UNEVEN_MAX


async def _visit(
    dsn: str, settings: Settings, stays: Sequence[Platform], load: Load, worker: RoamingWorker
) -> float:
    """A server comes, works and goes; answers how uneven the work was while it was there."""
    guest = await joined(dsn, settings)
    worker.meet(guest)
    everybody = (*stays, guest)
    load.platforms = list(everybody)
    leaves, part = time.monotonic() + STAY_SECONDS, SOAK_SHARDS // len(everybody)
    await until(lambda: min(opened(*everybody)) >= part)
    before = worker.given.copy()
    await asyncio.sleep(max(leaves - time.monotonic(), MEASURED_SECONDS))
    given = [worker.given[one] - before[one] for one in everybody]
    await guest.let_go()
    load.platforms = list(stays)
    await until(lambda: sum(opened(*stays)) == SOAK_SHARDS)
    await worker.part(guest)
    await guest.stop()
    await asyncio.sleep(STAY_SECONDS)
    return max(abs(one * len(given) / sum(given) - 1) for one in given)
