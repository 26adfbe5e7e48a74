"""Ticks become jobs: each once, whoever owns the shard and whatever went before."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.services.platform_room import QUICK, Hand, add_tenant, freeze, owner_on
from tests.services.scheduling.test_schedules import (
    jobs,
    put,
    runs,
    ticker_of,
    turn_back,
)

from fairway.core.lifecycle import State
from fairway.core.scheduling.schedule import ScheduleKey
from fairway.core.scheduling.ticks import CatchUp, Overlap
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.jobs import control as control_module
from fairway.services.platform import Platform
from fairway.services.scheduling import ticker as ticker_module
from fairway.services.scheduling.ticker import Ticker


async def test_a_tick_makes_a_job_that_runs(database_url: str) -> None:
    async with owner_on(database_url, replaced(QUICK, schedule_seconds_min=0.5)) as platform:
        tenant = await add_tenant(platform)
        key = await put(platform, tenant, cron=None, every_ms=700, tick_argument="at")
        first, second, *_ = await Hand(platform, short=8).take(2)
        at = [json.loads(lease.job.payload)["at"] for lease in (first, second)]
        assert at[0] < at[1]
        ticks = [
            tick.isoformat().replace("+00:00", "Z") for tick, _, _ in await runs(platform, key)
        ]
        assert ticks[:2] == at
        assert json.loads(first.job.payload)["n"] == 1


async def test_a_round_fires_what_is_due_once(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    key = await put(platform, tenant, catch_up=CatchUp.LAST)
    ticker = ticker_of(platform)
    rest = await ticker.run_once(0)
    assert await jobs(platform) == [], "a new schedule waits for its first tick"
    assert rest <= 1.0
    await turn_back(platform, key, 3)
    await asyncio.gather(*(ticker_of(platform).run_once(0) for _ in range(3)))
    (job,) = await jobs(platform)
    assert job["state"] in (State.SCHEDULED, State.QUEUED)
    assert [run[2] for run in await runs(platform, key)] == [str(job["id"])]


async def test_an_owner_that_was_replaced_fires_nothing(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    key = await put(platform, tenant, catch_up=CatchUp.LAST)
    await turn_back(platform, key, 3)
    async with platform.database.background() as connection:
        await connection.execute("UPDATE shards SET term = term + 1, owner = 'another'")
    await ticker_of(platform).run_once(0)
    assert await jobs(platform) == []


async def test_two_owners_with_one_tick_fire_it_once(platform: Platform, tenant: Tenant) -> None:
    """Even if the schedule's own row is put back, as by an old backup: the tick is its identity."""
    await freeze(platform)
    key = await put(platform, tenant, catch_up=CatchUp.ALL)
    for _ in range(2):
        await turn_back(platform, key, 5)
        await ticker_of(platform).run_once(0)
    ticks = [tick for tick, _, _ in await runs(platform, key)]
    assert len(await jobs(platform)) == len(ticks) == len(set(ticks))


@pytest.mark.parametrize(
    ("rule", "most", "least"), [(CatchUp.NONE, 1, 0), (CatchUp.LAST, 1, 1), (CatchUp.ALL, 11, 10)]
)
async def test_ten_minutes_without_any_server(
    platform: Platform, tenant: Tenant, rule: CatchUp, most: int, least: int
) -> None:
    await freeze(platform)
    key = await put(platform, tenant, catch_up=rule)
    await turn_back(platform, key, 10)
    await ticker_of(platform).run_once(0)
    found = [tick for tick, _, _ in await runs(platform, key)]
    # A tick of the last seconds is on time, whatever the rule: one more in the seconds after one.
    on_time = [tick for tick in found if datetime.now(UTC) - tick < timedelta(seconds=20)]
    assert least <= len(found) <= most
    if rule is CatchUp.NONE:
        assert found == on_time
    assert found == sorted(set(found))


async def test_a_schedule_that_cannot_be_read_stops_nobody(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    bad = await put(platform, tenant, "bad")
    good = await put(platform, tenant, "good", catch_up=CatchUp.LAST)
    for key in (bad, good):
        await turn_back(platform, key, 3)
    async with platform.database.background() as connection:
        await connection.execute("UPDATE schedules SET zone = 'Gone/Away' WHERE name = 'bad'")
    await ticker_of(platform).run_once(0)
    assert len(await runs(platform, good)) == 1


async def test_rare_expressions_that_come_due_hold_nobody_up(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    for n in range(20):
        rare = {"cron": "*/30 0 * 2 MON#5", "zone": "Europe/Lisbon"}
        key = await put(platform, tenant, f"rare-{n}", **rare, catch_up=CatchUp.ALL)
        await turn_back(platform, key, 30 * 365 * 24 * 60)
    platform.stalls.forget()
    await ticker_of(platform).run_once(0)
    assert platform.stalls.longest().busy_seconds < 0.1
    handled = (await platform.schedules.read(key)).handled_at
    assert datetime.now(UTC) - handled < timedelta(minutes=1)


async def tick_again(platform: Platform, key: ScheduleKey) -> Ticker:
    """One more tick: the minute before those that were. Answers who fired it."""
    async with platform.database.background() as connection:
        await connection.execute("DELETE FROM schedule_runs WHERE job IS NULL AND outcome = 1")
        await connection.execute(
            "UPDATE schedule_runs SET tick = tick - interval '100 days' WHERE outcome = 0"
        )
    await turn_back(platform, key, 1.01)
    ticker = ticker_of(platform)
    await ticker.run_once(0)
    return ticker


@pytest.mark.parametrize(
    ("overlap", "outcomes"),
    [(Overlap.ALLOW, [0]), (Overlap.SKIP, [1]), (Overlap.QUEUE_ONE, [2])],
)
async def test_a_tick_while_the_last_run_is_not_over(
    platform: Platform, tenant: Tenant, overlap: Overlap, outcomes: list[int]
) -> None:
    await freeze(platform)
    key = await put(platform, tenant, overlap=overlap, catch_up=CatchUp.LAST)
    await turn_back(platform, key, 1.01)
    await ticker_of(platform).run_once(0)
    before = len(await jobs(platform))
    await tick_again(platform, key)
    recent = [
        run for run in await runs(platform, key) if run[0] > datetime.now(UTC) - timedelta(days=1)
    ]
    assert [outcome for _, outcome, _ in recent] == outcomes
    assert len(await jobs(platform)) - before == outcomes.count(0)


async def test_a_waiting_tick_runs_when_the_run_before_it_is_over(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    key = await put(platform, tenant, overlap=Overlap.QUEUE_ONE, catch_up=CatchUp.LAST)
    await turn_back(platform, key, 1.01)
    await ticker_of(platform).run_once(0)
    await tick_again(platform, key)
    await ticker_of(platform).run_once(0)
    assert len(await jobs(platform)) == 1, "it waits"
    async with platform.database.background() as connection:
        await connection.execute("UPDATE jobs SET state = 3, finished_at = now()")
    await ticker_of(platform).run_once(0)
    assert len(await jobs(platform)) == 2
    assert (await platform.schedules.read(key)).waiting_tick is None


async def test_a_tick_can_cancel_the_run_before_it(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    key = await put(platform, tenant, overlap=Overlap.CANCEL_RUNNING, catch_up=CatchUp.LAST)
    await turn_back(platform, key, 1.01)
    await ticker_of(platform).run_once(0)
    ticker = await tick_again(platform, key)
    await ticker.cancel_runs(0)
    await ticker.run_once(0)
    states = [job["state"] for job in await jobs(platform)]
    assert states[0] == State.CANCELLED
    assert len(states) == 2


async def test_a_run_that_cannot_be_stopped_now_stops_no_schedule(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "CANCEL_SECONDS_MAX", 0.1)
    await freeze(platform)
    key = await put(platform, tenant, overlap=Overlap.CANCEL_RUNNING, catch_up=CatchUp.LAST)
    await turn_back(platform, key, 1.01)
    await ticker_of(platform).run_once(0)
    async with platform.database.background() as connection:
        await connection.execute(  # it runs, and nobody knows for whom
            "UPDATE jobs SET state = 2, epoch = 9, started_at = now(),"
            " session = gen_random_uuid(), token = gen_random_uuid()"
        )
    async with asyncio.timeout(30):
        ticker = await tick_again(platform, key)
        await ticker.cancel_runs(0)
        assert [job["state"] for job in await jobs(platform)] == [State.RUNNING]
        async with platform.database.background() as connection:
            await connection.execute("UPDATE jobs SET state = 1")
        await ticker.cancel_runs(0)  # it tries again
    assert [job["state"] for job in await jobs(platform)] == [State.CANCELLED]


async def test_a_round_writes_no_more_than_it_may(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage many have much to make up for: not all of it in one transaction."""
    await freeze(platform)
    monkeypatch.setattr(ticker_module, "ROUND_BYTES", 15 * 1024)
    for name in "abcd":
        key = await put(platform, tenant, name, catch_up=CatchUp.ALL)
        await turn_back(platform, key, 10)
    counts, ticker = [], ticker_of(platform)
    for _ in range(3):
        await ticker.run_once(0)
        counts.append(len(await jobs(platform)))
    assert counts[0] < counts[1]
    assert counts[1] == counts[2] >= 40


REFUSE_ONE = """
CREATE FUNCTION refuse_schedule() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.name = 'bad' THEN RAISE EXCEPTION 'this row is not to be touched'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER refuse_schedule BEFORE UPDATE ON schedules
  FOR EACH ROW EXECUTE FUNCTION refuse_schedule();
"""


async def test_a_schedule_that_the_store_refuses_stops_no_other(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    names = ("a", "bad", "c", "d")
    places = [await put(platform, tenant, name, catch_up=CatchUp.LAST) for name in names]
    for key in places:
        await turn_back(platform, key, 3)
    async with platform.database.upkeep() as connection:
        await connection.execute(REFUSE_ONE)
    ticker = ticker_of(platform)
    await ticker.run_once(0)
    await ticker.run_once(0)
    ticked = [bool(await runs(platform, key)) for key in places]
    assert ticked == [True, False, True, True]
