"""Recurring schedules end to end: ticks, outages, overlap, pauses, backfill; each tick once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.services.platform_room import QUICK, Hand, add_tenant, freeze, owner_on

from fairway.core.errors import InvalidRequest, LimitReached, NotFound
from fairway.core.ids import PoolId, ShardId, TenantId, TypeId
from fairway.core.scheduling.schedule import ScheduleKey, ScheduleSpec
from fairway.core.scheduling.ticks import CatchUp, Overlap
from fairway.core.tenant import Tenant, TenantSettings
from fairway.core.unix_time import to_unix_ms
from fairway.runtime.settings import replaced
from fairway.runtime.telemetry import Instruments
from fairway.services.platform import Platform
from fairway.services.scheduling import schedules as schedules_module
from fairway.services.scheduling.schedule_jobs import may_be_tick, recurrence
from fairway.services.scheduling.schedules import (
    BACKFILL_MAX,
    InTurn,
    ScheduleLimits,
    SchedulePorts,
    Schedules,
)
from fairway.services.scheduling.ticker import Ticker, TickerPorts
from fairway.store import submissions

HOUR_MS = 3_600_000


def spec(**changes: Any) -> ScheduleSpec:
    plain = ScheduleSpec(
        cron="* * * * *",
        every_ms=None,
        zone="UTC",
        type=TypeId(0),
        pool=PoolId(1),
        priority=5,
        timeout_ms=None,
        payload=b'{"n":1}',
        tick_argument=None,
        jitter_ms=0,
        starts_at=datetime.now(UTC),
        ends_at=None,
        overlap=Overlap.ALLOW,
        catch_up=CatchUp.NONE,
        window_ms=HOUR_MS,
        paused=False,
        source="",
    )
    return plain._replace(**changes)


async def put(
    platform: Platform, tenant: Tenant, name: str = "report", **changes: Any
) -> ScheduleKey:
    key = platform.schedules.key_of(tenant.id, name)
    await platform.schedules.put(key, spec(**changes), "work")
    return key


def ticker_of(
    platform: Platform,
    is_full: Callable[[], bool] = lambda: False,
    instruments: Instruments | None = None,
) -> Ticker:
    """One of its own, beside the stopped loops."""
    return Ticker(
        platform.database,
        platform.dispatcher,
        platform.control,
        platform.submissions.ids,
        instruments or platform.instruments,
        TickerPorts(
            directory=platform.directory,
            on_scheduled=platform.wakeups.of("promoter"),
            on_cancel=platform.wakeups.of("overlapping runs"),
            is_full=is_full,
        ),
    )


async def turn_back(platform: Platform, key: ScheduleKey, minutes: float) -> None:
    """As if nobody had fired a tick for so long."""
    async with platform.database.background() as connection:
        await connection.execute(
            "UPDATE schedules SET handled_at = now() - make_interval(mins => $1),"
            " starts_at = now() - interval '2 days',"
            " next_at = now() - make_interval(mins => $1) WHERE name = $2",
            minutes,
            key.name,
        )


async def runs(platform: Platform, key: ScheduleKey) -> list[tuple[datetime, int, str | None]]:
    found = await platform.schedules.runs(key, None, 500)
    return [(run.tick, run.outcome, run.job) for run, _ in reversed(found)]


async def jobs(platform: Platform) -> list[dict[str, Any]]:
    async with platform.database.background() as connection:
        return [dict(row) for row in await connection.fetch("SELECT * FROM jobs ORDER BY id")]


# -- the clock -----------------------------------------------------------------------------------


async def test_ticks_wait_while_the_disk_has_no_room(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    key = await put(platform, tenant, catch_up=CatchUp.ALL)
    await turn_back(platform, key, 10)
    await ticker_of(platform, lambda: True).run_once(0)
    assert await runs(platform, key) == []
    await ticker_of(platform).run_once(0)
    assert await runs(platform, key) != []


async def test_schedules_start_and_end_when_told(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    now = datetime.now(UTC)
    later = await put(platform, tenant, "later", starts_at=now + timedelta(hours=3))
    over = await put(platform, tenant, "over", ends_at=now + timedelta(seconds=1))
    found = await platform.schedules.read(later)
    assert found.next_at is not None
    assert found.next_at > now + timedelta(hours=3)
    ended = await platform.schedules.read(over)
    assert ended.next_at is None or ended.next_at <= now + timedelta(seconds=1)


async def test_jitter_spreads_the_runs_not_the_ticks(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    places = [
        await put(platform, tenant, f"s{n}", jitter_ms=60_000, catch_up=CatchUp.LAST)
        for n in range(5)
    ]
    for key in places:
        await turn_back(platform, key, 3)
    await ticker_of(platform).run_once(0)
    ticks = {(await runs(platform, key))[-1][0] for key in places}
    assert len(ticks) == 1
    due = {job["execute_at"] for job in await jobs(platform)}
    assert len(due) == 5
    assert all(timedelta(0) <= moment - min(ticks) <= timedelta(minutes=1) for moment in due)


# -- by hand -------------------------------------------------------------------------------------


async def test_trigger_runs_one_now(platform: Platform, tenant: Tenant) -> None:
    key = await put(platform, tenant, cron="0 0 1 1 *")
    job = await platform.schedules.trigger(key)
    (lease,) = await Hand(platform).take()
    assert lease.job.id == job
    assert [(outcome, found) for _, outcome, found in await runs(platform, key)] == [(0, job)]


def another_server(platform: Platform, in_turn: InTurn | None = None) -> Schedules:
    """As a second server has it: it knows nothing of the ticks that the first has given out."""
    limits = ScheduleLimits(gap_ms_min=10_000, per_tenant_max=1000)
    ports = SchedulePorts(
        in_turn or platform.heavy.run, platform.submissions.admit, platform.wakeups.of("ticker"),
        platform.submissions.wrote_for_later,
    )  # fmt: skip
    return Schedules(
        platform.database, platform.directory, platform.submissions.ids, platform.store_clock,
        limits, ports, tenant_shards=platform.tenant_shards,
    )  # fmt: skip


async def test_every_trigger_makes_a_job_that_is_there(platform: Platform, tenant: Tenant) -> None:
    key = await put(platform, tenant, every_ms=HOUR_MS, cron=None)
    doors = [platform.schedules, another_server(platform)]
    made: list[str] = []
    for _ in range(20):
        made += await asyncio.gather(*(doors[n % 2].trigger(key) for n in range(5)))
    assert len(set(made)) == 100
    assert {str(row["id"]) for row in await jobs(platform)} == set(made)
    assert {job for _, _, job in await runs(platform, key)} == set(made)


@given(st.integers(0, 10_000), st.sampled_from([None, 1, 7, 1000, 10_000]))
def test_a_moment_that_may_be_the_clocks_is_left_to_it(after_ms: int, every_ms: int | None) -> None:
    starts_at = datetime(2026, 1, 31, 12, 0, 0, 345_000, UTC)
    cron = "* * * * *" if every_ms is None else None
    found = spec(cron=cron, every_ms=every_ms, starts_at=starts_at)
    ticks = recurrence(found).after(to_unix_ms(starts_at) + after_ms)
    assert all(may_be_tick(found, tick) for tick in islice(ticks, 5))


async def test_backfill_makes_up_for_a_range_and_never_doubles(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    key = await put(platform, tenant, cron="0 9 * * *", zone="Europe/Lisbon", tick_argument="day")
    until_ = datetime.now(UTC) - timedelta(days=1)
    since = until_ - timedelta(days=10)
    assert await platform.schedules.backfill(key, since, until_) == (10, 0)
    assert await platform.schedules.backfill(key, since - timedelta(days=2), until_) == (2, 10)
    days = {json.loads(bytes(job["payload"]))["day"] for job in await jobs(platform)}
    assert len(days) == 12
    with pytest.raises(InvalidRequest, match="in the past"):
        await platform.schedules.backfill(key, since, until_ + timedelta(days=9))
    often = await put(platform, tenant, "often")
    with pytest.raises(InvalidRequest, match=str(BACKFILL_MAX)):
        await platform.schedules.backfill(often, since, until_)


async def test_backfill_and_the_clock_do_not_fire_one_tick_twice(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    key = await put(platform, tenant, catch_up=CatchUp.ALL)
    await turn_back(platform, key, 10)
    now = platform.schedules.now()
    await asyncio.gather(
        ticker_of(platform).run_once(0),
        platform.schedules.backfill(key, now - timedelta(minutes=10), now),
    )
    found = await runs(platform, key)
    assert len(await jobs(platform)) == len({tick for tick, _, _ in found}) == len(found)


async def test_a_paused_schedule_is_silent_and_makes_up_for_nothing(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    key = await put(platform, tenant, catch_up=CatchUp.ALL)
    paused = await platform.schedules.pause(key, True)
    assert paused.spec.paused
    async with platform.database.background() as connection:
        await connection.execute("UPDATE schedules SET next_at = now() - interval '5 minutes'")
    await ticker_of(platform).run_once(0)
    await platform.schedules.pause(key, False)
    await ticker_of(platform).run_once(0)
    assert await jobs(platform) == []


async def test_a_change_makes_up_for_nothing(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    key = await put(platform, tenant, catch_up=CatchUp.ALL)
    await turn_back(platform, key, 10)
    await put(platform, tenant, catch_up=CatchUp.ALL, cron="*/2 * * * *")
    await ticker_of(platform).run_once(0)
    assert len(await jobs(platform)) == 0


async def test_there_are_only_so_many_and_none_of_anothers(database_url: str) -> None:
    async with owner_on(database_url, replaced(QUICK, schedules_per_tenant=2)) as platform:
        tenant, other = await add_tenant(platform), await add_tenant(platform, "other")
        await put(platform, tenant, "a")
        key = await put(platform, tenant, "b")
        await put(platform, tenant, "b")  # replacing is no more
        with pytest.raises(LimitReached) as refusal:
            await put(platform, tenant, "c")
        assert refusal.value.code == "TOO_MANY_SCHEDULES"
        with pytest.raises(NotFound):
            await platform.schedules.read(platform.schedules.key_of(other.id, "b"))
        await platform.schedules.remove(key)
        with pytest.raises(NotFound):
            await platform.schedules.read(key)


async def test_what_takes_long_to_work_out_is_done_in_turn(
    platform: Platform, tenant: Tenant
) -> None:
    """Beside the event loop, and tenants in turn: expressions are made up for nothing."""
    asked: list[int] = []

    async def noted(tenant: int, work: Callable[[], Any]) -> Any:
        asked.append(tenant)
        return await platform.heavy.run(TenantId(tenant), work)

    assert platform.schedules._ports.in_turn == platform.heavy.run
    platform.schedules = another_server(platform, noted)
    rare = {"cron": "0 0 29 2 *"}
    key = await put(platform, tenant, **rare)
    assert asked == [tenant.id] * 2
    await platform.schedules.preview(tenant.id, spec(**rare))
    await platform.schedules.pause(key, True)
    now = platform.schedules.now()
    await platform.schedules.backfill(key, now - timedelta(days=1), now)
    assert asked == [tenant.id] * 5
    assert await platform.schedules.next_runs(tenant.id, spec(cron="7 0 29 2 *"))
    assert asked == [tenant.id] * 6
    assert len(await platform.schedules.next_runs(tenant.id, spec())) == 5
    assert await platform.schedules.next_runs(tenant.id, spec(**rare))
    assert asked == [tenant.id] * 6  # what is quick, or known by now, is not made to wait


async def test_runs_outside_of_the_clock_count_towards_the_tenants_rate(platform: Platform) -> None:
    await freeze(platform)
    poor = await platform.directory.add_tenant("poor", TenantSettings(rate_per_second=1, burst=10))
    assert poor is not None
    key = await put(platform, poor, cron="0 * * * *")
    until_ = datetime.now(UTC) - timedelta(seconds=30)  # past by the store's clock, too
    made = await platform.schedules.backfill(key, until_ - timedelta(hours=12), until_)
    assert made.made == 12
    with pytest.raises(LimitReached):
        await platform.schedules.trigger(key)
    with pytest.raises(LimitReached):
        await platform.schedules.backfill(key, until_ - timedelta(hours=24), until_)
    assert len(await jobs(platform)) == 12


async def test_a_backfill_of_heavy_jobs_is_written_in_parts(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await freeze(platform)
    heavy = b'{"text":"' + b"x" * 1000 + b'"}'
    key = await put(platform, tenant, cron="0 * * * *", payload=heavy)
    monkeypatch.setattr(schedules_module, "BACKFILL_BYTES", 3000)
    sizes: list[int] = []
    insert = submissions.insert_jobs

    async def noted(connection: Any, shard: int, jobs: Any, *more: Any) -> None:
        sizes.append(len(jobs))
        await insert(connection, ShardId(shard), jobs, *more)

    monkeypatch.setattr(submissions, "insert_jobs", noted)
    until_ = datetime.now(UTC) - timedelta(seconds=30)  # past by the store's clock, too
    made = await platform.schedules.backfill(key, until_ - timedelta(hours=5), until_)
    assert made == (5, 0)
    assert sizes == [2, 2, 1]
