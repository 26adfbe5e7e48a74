"""A server with several shards: the same whether a statement carries many of them or one each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from tests.locked import held_table
from tests.services.platform_room import QUICK, Hand, add_tenant, new, owner_on, submit, until

from fairway.core.ids import JobId, ShardId, shard_of
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.scheduling.promotion import PromotionCaps
from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import Metrics
from fairway.services.busy_shards import busy_shards, due_shards
from fairway.services.platform import Platform
from fairway.services.scheduling import promoter, ticker
from fairway.services.scheduling.promoter import Promoter
from fairway.store import shard_looks
from fairway.store.shard_looks import Soon, Work

COUNT = 8


@pytest.fixture(params=[False, True], ids=["together", "by shard"])
async def many(database_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Platform]:
    settings = replace(QUICK, shard_count=COUNT, store_by_shard=request.param)
    async with owner_on(database_url, settings) as platform:
        yield platform


async def crowd(platform: Platform) -> list[Tenant]:
    """A tenant in each shard."""
    return [await add_tenant(platform, f"tenant-{number}") for number in range(COUNT)]


async def test_jobs_of_all_shards_are_taken_run_and_ended(many: Platform) -> None:
    tenants = await crowd(many)
    kinds = [new(), new(idempotency_key="k", body_hash=b"h"), new(pool=2), new()]
    ids = await asyncio.gather(*(submit(many, tenant, *kinds) for tenant in tenants))
    assert {shard_of(job) for some in ids for job in some} == set(range(COUNT))
    again = await asyncio.gather(*(submit(many, tenant, kinds[1]) for tenant in tenants))
    assert [some[0] for some in again] == [some[1] for some in ids], "keys are found in each"
    hand = Hand(many, short=3 * COUNT, medium=COUNT)
    leases = await hand.take(4 * COUNT)
    dead = Outcome(OutcomeKind.FAILED, 1, failure=FailureClass.PERMANENT)
    failing = {some[3] for some in ids}
    words = [hand.done(one, dead if one.job.id in failing else None) for one in leases]
    recorded, refused = await hand.report(*words)
    assert (len(recorded), refused) == (4 * COUNT, set())
    assert await ends(many) == {(shard, 3): 3 for shard in range(COUNT)} | {
        (shard, 4): 1 for shard in range(COUNT)
    }


async def ends(platform: Platform) -> dict[tuple[int, int], int]:
    async with platform.database.background() as connection:
        rows = await connection.fetch("SELECT shard, state, count(*) FROM jobs GROUP BY 1, 2")
    return {(row["shard"], row["state"]): row["count"] for row in rows}


async def test_a_shard_that_another_took_stops_only_itself(many: Platform) -> None:
    """Its ends are written by nobody here; those that came with them are."""
    tenants = await crowd(many)
    ids = [(await submit(many, tenant))[0] for tenant in tenants]
    hand = Hand(many, short=COUNT)
    leases = await hand.take(COUNT)
    for name in ("ownership", "rescuer"):
        await many.loops[name].stop()
    lost = shard_of(ids[0])
    async with many.database.background() as connection:
        await connection.execute("UPDATE shards SET term = term + 1 WHERE shard = $1", lost)
    session = many.dispatcher.sessions[hand.key]
    await hand.say(reports=[hand.done(lease) for lease in leases], draining=True)
    await until(lambda: len(session.recorded) == COUNT - 1)
    await many.recorder.drain()
    assert session.refused == []
    found = await ends(many)
    waits = {state for shard, state in found if shard == lost}
    assert waits <= {1, 2}, "written before it was lost, or not at all"
    assert {found.get((shard, 3)) for shard in range(COUNT) if shard != lost} == {1}


async def test_jobs_for_later_come_due_in_every_shard(many: Platform) -> None:
    tenants = await crowd(many)
    jobs: list[JobId] = []
    for tenant in tenants:
        jobs += await submit(many, tenant)
    async with many.database.background() as connection:
        await connection.execute("UPDATE jobs SET state = 0, execute_at = now() + interval '0.2 s'")
    many.wakeups.of("promoter")()
    hand = Hand(many, short=COUNT)
    assert {lease.job.id for lease in await hand.take(COUNT)} == set(jobs)


async def test_who_waits_for_tomorrow_looks_again_soon(
    many: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard may come meanwhile in which something is due, or a hint be lost."""

    async def tomorrow(*asked: object) -> Soon:
        return Soon([], 86_400.0)

    for module in (promoter, ticker):
        monkeypatch.setattr(module, "due_shards", tomorrow)
    caps = PromotionCaps()
    moves = Promoter(many.database, many.dispatcher, Metrics(), many.clock, caps)
    assert max(await moves.run_once(0), await many.ticker.run_once(0)) <= 1.0


async def test_loops_that_look_at_the_same_time_have_one_statement(
    many: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    if many.database.by_shard:
        return
    tenants, shards = await crowd(many), many.dispatcher.open_shards()
    job = (await submit(many, tenants[0]))[0]
    for loop in many.loops.values():
        await loop.stop()
    alone = 0
    looked = shard_looks.shards_with

    async def counted(*asked: Any) -> list[ShardId]:
        nonlocal alone
        alone += 1
        return await looked(*asked)

    async def broken(*asked: object) -> None:
        raise TimeoutError

    async def all_looks() -> list[object]:
        kinds: tuple[Work, ...] = ("queued", "with_news", "with_actions")
        looks = [busy_shards(many.database, one, shards) for one in kinds]
        return await asyncio.gather(*looks, due_shards(many.database, "scheduled", shards))

    monkeypatch.setattr(shard_looks, "shards_with", counted)
    expected = [[shard_of(job)], [], [], Soon([], None)]
    assert await all_looks() == expected
    assert alone == 0
    assert await busy_shards(many.database, "queued", shards) == expected[0]
    assert alone == 1, "nobody else looked"
    monkeypatch.setattr(shard_looks, "look_at_all", broken)
    assert await all_looks() == expected
    assert alone == 4, "each by itself"


async def test_a_table_that_somebody_holds_makes_other_looks_late_only_once(
    many: Platform, database_url: str
) -> None:
    if many.database.by_shard:
        return
    shards, database = many.dispatcher.open_shards(), many.database
    for loop in many.loops.values():
        await loop.stop()
    kinds: tuple[Work, ...] = ("queued", "with_news", "with_actions")
    async with held_table(database_url, "webhooks"):
        for seconds in (2.0, 0.5, 0.5):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(busy_shards(database, one, shards) for one in kinds))
