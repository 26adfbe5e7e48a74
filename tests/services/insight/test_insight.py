"""One read model: what is counted agrees with what happened, over servers and restarts."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.services.platform_room import (
    HANG_SECONDS,
    Hand,
    add_tenant,
    kill,
    new,
    open_pair,
    owns_all,
    stopped,
    submit,
)
from tests.services.platform_room import until as until_it_holds

from fairway.core.ids import PoolId, TenantId
from fairway.core.insight.history import Step
from fairway.core.insight.minutes import LineKind
from fairway.core.insight.sight import PoolSight
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.insight.history import HistoryWish
from fairway.services.platform import Platform

FAILED = Outcome(OutcomeKind.FAILED, 1000, failure=FailureClass.APP_ERROR)
KILLED = Outcome(OutcomeKind.FAILED, 1000, failure=FailureClass.PERMANENT)


async def looked(platform: Platform) -> None:
    """The board as it is after all that happened so far."""
    async with asyncio.timeout(HANG_SECONDS):
        for _ in range(2):  # one may be under way
            platform.loops["gauges"].wake()
            await platform.insight.board.changed.wait()


async def pool_of(platform: Platform, name: str = "short") -> PoolSight:
    await looked(platform)
    seen = platform.insight.board.seen
    assert seen is not None
    return next(pool for pool in seen.pools if pool.name == name)


async def history(
    platform: Platform, kind: LineKind, tenant: int, name: str, step: Step = "minute"
) -> dict[str, float]:
    """Sums of the last hour's columns."""
    now = platform.store_clock.now()
    wish = HistoryWish(
        kind, TenantId(tenant), name, now - timedelta(hours=2), now + timedelta(hours=1), step
    )
    found = await platform.insight.history.read(wish, None)
    names = ("accepted", "started", "succeeded", "failed", "retried", "dead")
    return {one: sum(value or 0 for value in found.columns[one]) for one in names}


async def some_work(platform: Platform, tenant: Tenant) -> None:
    """Five come, three run: one well, one is retried, one is dead."""
    await submit(platform, tenant, *[new()] * 5)
    hand = Hand(platform, short=3)
    first, second, third = await hand.take(3)
    await hand.report(hand.done(first), hand.done(second, FAILED), hand.done(third, KILLED))
    await hand.say(goodbye=True)


WORK = {"accepted": 5, "started": 3, "succeeded": 1, "failed": 2, "retried": 1, "dead": 1}


async def test_history_tells_what_happened_and_survives_a_restart(
    platform: Platform, tenant: Tenant
) -> None:
    await some_work(platform, tenant)
    counts = platform.metrics.activity.pools[PoolId(1)]
    assert {name: getattr(counts, name) for name in WORK} == WORK
    assert (counts.ended, sum(counts.run), sum(counts.whole), sum(counts.pickup)) == (3, 1, 2, 3)
    await looked(platform)
    await platform.loops["minutes"].stop()
    await platform.insight.minutes.close()
    for step in ("minute", "hour"):
        for subject in (
            (LineKind.POOL, 0, "short"),
            (LineKind.TYPE, 0, "work"),
            (LineKind.TENANT, tenant.id, ""),
            (LineKind.TENANT_TYPE, tenant.id, "work"),
        ):
            assert await history(platform, *subject, step) == WORK, subject
    assert not any((await history(platform, LineKind.TYPE, 0, "other")).values())
    own = platform.insight.tenants.pools(tenant.id)[0]
    assert own.rates["started"] is not None
    assert own.rates["started"] > 0
    assert own.pickup.p99 is not None
    await platform.insight.minutes.run_once(0)
    assert await history(platform, LineKind.POOL, 0, "short") == WORK, "told once"


async def test_who_stops_leaves_what_waits_to_the_next_to_tell(
    platform: Platform, tenant: Tenant
) -> None:
    """Both would be in the minute of a restart, which would show twice as much as there is."""
    await platform.loops["minutes"].stop()
    await submit(platform, tenant, *[new()] * 2)
    await looked(platform)
    await platform.insight.minutes.close()
    now = platform.store_clock.now()
    since, before = now - timedelta(minutes=5), now + timedelta(minutes=1)
    wish = HistoryWish(LineKind.POOL, TenantId(0), "short", since, before, "minute")
    found = (await platform.insight.history.read(wish, None)).columns
    told = zip(found["accepted"], found["queued"], found["slots"], strict=True)
    assert [one for one in told if one[0]] == [(2, None, None)]


async def test_the_board_shows_what_waits_and_why(platform: Platform, tenant: Tenant) -> None:
    other = await add_tenant(platform, "other")
    await submit(platform, tenant, *[new()] * 3)
    await submit(platform, other, *[new()] * 4)
    await until_it_holds(lambda: platform.dispatcher.depth_of(other.id) == 4)
    seen = await pool_of(platform)
    assert (seen.queued, seen.running, seen.slots) == (7, 0, 0)
    assert (seen.oldest_ms, seen.held.no_worker) == (None, 7), "nobody has come who runs them"
    board = platform.insight.board.seen
    assert board is not None
    assert [(one.tenant, one.queued) for one in board.shares] == [(other.id, 4), (tenant.id, 3)]
    assert platform.insight.health(board).reasons[0].code == "NO_WORKERS"
    hand = Hand(platform, short=1)
    (lease,) = await hand.take(1)
    seen = await pool_of(platform)
    assert (seen.running, seen.held.no_worker) == (1, 0)
    assert seen.oldest_ms is not None
    await hand.report(hand.done(lease))
    await hand.say(goodbye=True)


async def test_jobs_whose_type_nobody_runs_are_told_of(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.core.insight.health.NO_WORKER_MS", 1)
    hand = Hand(platform, short=2)  # which runs another type
    await hand.say(hello=True)
    await submit(platform, tenant, *[new("nobodys")] * 30)

    async def is_told() -> bool:
        seen = await pool_of(platform)
        return seen.held.no_worker == 30 and seen.no_worker_ms > 0

    await until_it_holds(is_told)
    board = platform.insight.board.seen
    assert board is not None
    (reason,) = platform.insight.health(board).reasons
    assert reason.code == "NO_WORKER_FOR_TYPE"
    assert reason.text == (
        "30 jobs wait in the pool short for a worker that runs their type, such as nobodys of acme."
    )
    await hand.say(goodbye=True)


async def test_every_server_shows_the_whole_platform(database_url: str) -> None:
    owner, standby = await open_pair(database_url)
    try:
        tenant = await add_tenant(owner)
        await submit(owner, tenant, *[new()] * 3)
        await looked(owner)

        async def stands_by_with_all() -> bool:
            await owner.insight.board.run_once(0)
            await standby.insight.board.run_once(0)
            return (await pool_of(standby)).queued == 3

        await until_it_holds(stands_by_with_all)
        seen = standby.insight.board.seen
        assert seen is not None
        assert seen.shards_owned == owner.cluster.shard_count
        assert standby.insight.board.servers == 2
    finally:
        await kill(owner)
        await stopped(standby)


async def test_what_is_handed_over_is_not_told_of_twice(database_url: str) -> None:
    owner, standby = await open_pair(database_url)
    tenant = await add_tenant(owner)
    await submit(owner, tenant, *[new()] * 3)
    await until_it_holds(lambda: owner.dispatcher.depth_of(tenant.id) == 3)
    await looked(owner)
    for one in (owner, standby):
        await one.loops["minutes"].stop()  # no minute ends but by the owner's last word
        await one.insight.board.run_once(0)
    await stopped(owner)
    try:
        await until_it_holds(lambda: owns_all(standby))
        await until_it_holds(lambda: standby.dispatcher.depth_of(tenant.id) == 3)
        assert (await pool_of(standby)).queued == 3
        seen = standby.insight.board.seen
        assert seen is not None
        assert seen.shards_owned == standby.cluster.shard_count
        assert standby.insight.board.servers == 1
        now, hour = standby.store_clock.now(), timedelta(hours=1)
        wish = HistoryWish(LineKind.POOL, TenantId(0), "short", now - hour, now + hour, "minute")
        columns = (await standby.insight.history.read(wish, None)).columns
        assert sum(value or 0 for value in columns["accepted"]) == 3
        assert set(columns["queued"]) == {None}, "the next owner tells"
    finally:
        await stopped(standby)
