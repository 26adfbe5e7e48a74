"""Submissions: what is answered is on disk, one job a key, and limits before any write."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.services.gate import gate_to
from tests.services.platform_room import (
    QUICK,
    SHORT,
    add_tenant,
    new,
    owner_on,
    platform_on,
    submit,
    until,
)

from fairway.core.backlog.streams import StreamKey
from fairway.core.errors import FairwayError, InvalidRequest, Unavailable
from fairway.core.ids import ShardId
from fairway.core.job import LIGHT_JOBS, QueuedJob
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.submit.submission_group import Accepted, NewJob, WholeKey
from fairway.store import submissions as store
from fairway.store.connections.database import Connection


async def count(platform: Platform) -> int:
    async with platform.database.background() as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM jobs")
        return found


def keyed(key: str, body: bytes = b"body") -> NewJob:
    return new(idempotency_key=key, body_hash=body)


async def test_what_is_answered_is_on_disk_and_known_to_the_owner(
    platform: Platform, tenant: Tenant
) -> None:
    ids = await submit(platform, tenant, new(), new("other"), new(priority=9))
    assert await count(platform) == len(set(ids)) == 3
    assert platform.dispatcher.backlog.counts.depth(tenant.id, [SHORT]) == 3
    assert set(platform.directory.type_ids) == {"work", "other"}


async def test_who_is_written_is_told_so_though_others_of_the_group_are_not(
    platform: Platform, tenant: Tenant
) -> None:
    """As where a shard has no row on a distributed store: sent again they would run twice."""
    other = await add_tenant(platform, "other")
    for one in (tenant, other):
        await platform.directory.know_types(["work"], one.id)  # so that they come together
    async with platform.database.upkeep() as connection:
        await connection.execute(f"""
            CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN IF NEW.tenant = {other.id} THEN RETURN NULL; END IF; RETURN NEW; END';
            CREATE TRIGGER leaves_out BEFORE INSERT ON jobs
                FOR EACH ROW EXECUTE FUNCTION leave_out()
        """)
    comers = (tenant, tenant, other)  # the first goes at once, and the others together
    said = await asyncio.gather(
        *(platform.submissions.submit(one, [new(), new()]) for one in comers),
        return_exceptions=True,
    )
    assert [isinstance(one, FairwayError) for one in said] == [False, False, True]
    assert await count(platform) == 4
    await until(lambda: platform.dispatcher.backlog.counts.depth(tenant.id, [SHORT]) == 4)


async def test_one_job_does_not_stand_behind_batches_of_thousands(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert, go_on = store.insert_jobs, asyncio.Event()

    async def slowly(
        connection: Connection, shard: int, jobs: list[QueuedJob], *more: Any, **named: Any
    ) -> None:
        if len(jobs) > LIGHT_JOBS:
            await go_on.wait()
        await insert(connection, ShardId(shard), jobs, *more, **named)

    monkeypatch.setattr(store, "insert_jobs", slowly)
    batches = [asyncio.create_task(submit(platform, tenant, *[new()] * 1500)) for _ in range(3)]
    await until(lambda: sum(g.jobs_waiting for g in platform.submissions._groups.values()) == 4500)
    async with asyncio.timeout(30):
        assert len(await submit(platform, tenant, new())) == 1
    go_on.set()
    assert [len(ids) for ids in await asyncio.gather(*batches)] == [1500] * 3


async def test_a_hundred_calls_with_one_key_make_one_job(
    platform: Platform, tenant: Tenant
) -> None:
    calls = [platform.submissions.submit(tenant, [keyed("k")]) for _ in range(100)]
    verdicts = [verdict for (verdict,) in await asyncio.gather(*calls)]
    accepted = [verdict for verdict in verdicts if isinstance(verdict, Accepted)]
    assert len(accepted) == 100
    assert len({verdict.id for verdict in accepted}) == 1
    assert [verdict.replayed for verdict in accepted].count(False) == 1
    assert await count(platform) == 1
    assert platform.dispatcher.backlog.counts.depth(tenant.id, [SHORT]) == 1


async def test_what_is_sent_again_after_the_day_of_its_key_is_found_by_its_id(
    platform: Platform, tenant: Tenant
) -> None:
    """A region was away for longer than a key is kept, and is sent then what it has. It could not
    say so, and whoever came at that moment was refused with it."""
    submissions, whole = platform.submissions, WholeKey("whole", b"body")
    (one,) = await submit(platform, tenant, keyed("k"))
    batch = [
        verdict.id
        for verdict in await submissions.submit(tenant, [new(), new()], whole=whole)
        if isinstance(verdict, Accepted)
    ]
    async with platform.database.background() as connection:
        await connection.execute("UPDATE idempotency SET expires_at = now() - interval '1 s'")
    for _ in range(2):
        first, again, second, third = await asyncio.gather(
            submissions.submit(tenant, [new()]),  # it goes at once, and the others together
            submissions.submit(tenant, [keyed("k")], ids=[one]),
            submissions.submit(tenant, [new(), new()], whole=whole, ids=batch),
            submissions.submit(tenant, [new()]),
        )
        assert again == [Accepted(one)]
        assert second == [Accepted(job) for job in batch]
        assert all(isinstance(verdict, Accepted) for verdict in first + third)
    assert await count(platform) == 7


async def test_a_key_with_another_body_is_refused_and_makes_nothing(
    platform: Platform, tenant: Tenant
) -> None:
    await submit(platform, tenant, keyed("k"))
    reused, fresh = await platform.submissions.submit(tenant, [keyed("k", b"other"), new()])
    assert isinstance(reused, InvalidRequest)
    assert reused.code == "IDEMPOTENCY_KEY_REUSED"
    assert isinstance(fresh, Accepted)
    assert await count(platform) == 2


async def test_keys_within_one_batch(platform: Platform, tenant: Tenant) -> None:
    wanted = [keyed("a"), keyed("b"), keyed("a"), keyed("a", b"other"), new()]
    verdicts = await platform.submissions.submit(tenant, wanted)
    first, second, again, reused, plain = verdicts
    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert again == Accepted(first.id, replayed=True)
    assert isinstance(reused, InvalidRequest)
    assert isinstance(plain, Accepted)
    assert await count(platform) == 3


async def test_two_servers_agree_on_a_key(database_url: str, platform: Platform) -> None:
    tenant = await add_tenant(platform)
    async with platform_on(database_url) as other:
        servers = [platform, other] * 10
        calls = [server.submissions.submit(tenant, [keyed("k")]) for server in servers]
        verdicts = [verdict for (verdict,) in await asyncio.gather(*calls)]
    assert len({verdict.id for verdict in verdicts if isinstance(verdict, Accepted)}) == 1
    assert await count(platform) == 1


async def test_a_server_that_cannot_keep_up_sheds_load(database_url: str) -> None:
    async with owner_on(database_url, replace(QUICK, submit_waiting_max=10)) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant)  # its type is known now
        first = asyncio.create_task(submit(platform, tenant, *[new()] * 25))
        await asyncio.sleep(0)
        with pytest.raises(Unavailable) as refusal:
            await submit(platform, tenant)
        assert refusal.value.code == "OVERLOADED"
        assert len(await first) == 25  # one that is alone may be as large as it likes
        assert len(await submit(platform, tenant)) == 1


async def test_a_store_that_is_away_is_said_so_and_nothing_hangs(database_url: str) -> None:
    async with gate_to(database_url) as gate, owner_on(gate.dsn) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant)
        await gate.close()
        async with asyncio.timeout(30):
            with pytest.raises(Unavailable):
                await submit(platform, tenant)
        await gate.open()
        assert len(await submit(platform, tenant)) == 1
        assert await count(platform) == 2


async def test_a_server_that_is_not_the_owner_rings_the_owners_bell(
    database_url: str, platform: Platform
) -> None:
    tenant = await add_tenant(platform)
    async with platform_on(database_url) as other:
        (job,) = await submit(other, tenant)
        key = StreamKey(tenant.id, SHORT, other.directory.type_ids["work"], 5)
        assert other.hints.shards == [0]
        firsts = other.hints.take(ShardId(0))
        assert firsts == {key: job}
        platform.dispatcher.hinted(ShardId(0), firsts)
        await until(lambda: platform.dispatcher.backlog.counts.ready(SHORT, tenant.id) == 1)
        assert other.dispatcher.backlog.counts.depth(tenant.id, [SHORT]) == 0
        assert len(job) == 36


async def test_a_caller_that_gives_up_harms_nobody(platform: Platform, tenant: Tenant) -> None:
    await submit(platform, tenant)
    hasty = asyncio.create_task(submit(platform, tenant))
    patient = asyncio.create_task(submit(platform, tenant))
    await asyncio.sleep(0)
    hasty.cancel()
    assert len(await patient) == 1
    with pytest.raises(asyncio.CancelledError):
        await hasty
    await platform.submissions.drain()
    assert await count(platform) == 3
