"""Schedules under the clock of a test: its turns make the jobs of every tick that they pass."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairway import App, testing
from fairway.sdk.testing.clock import Clock
from fairway.sdk.testing.memory import MemoryDoor

app = App("reports")
seen: list[datetime] = []


@app.schedule("30 9 * * MON-FRI", tz="Europe/Lisbon", args={"kind": "daily"})
@app.job
def report(kind: str) -> str:
    return kind


@app.schedule(every="90s", tick="at", name="beat")
@app.job(priority=7)
def heartbeat(at: datetime) -> None:
    seen.append(at)


def test_each_tick_that_is_passed_makes_a_job(fairway_clock: Clock) -> None:
    seen.clear()
    assert app.sync_schedules() == ["made report", "made beat"]
    assert app.sync_schedules(prune=True) == ["updated report", "updated beat"]
    fairway_clock.advance("3m")
    beats = testing.all_enqueued(heartbeat)
    assert [(one.request.priority, one.args["at"]) for one in beats] == [
        (7, "2026-01-01T00:01:30Z"),
        (7, "2026-01-01T00:03:00Z"),
    ]
    testing.refute_enqueued(report)
    assert testing.drain() == {"succeeded": 2}
    assert seen[1] == datetime(2026, 1, 1, 0, 3, tzinfo=UTC)
    fairway_clock.advance("1m")
    assert len(testing.all_enqueued(heartbeat)) == 2, "no tick is made twice"


def test_cron_is_read_in_its_zone(fairway_clock: Clock) -> None:
    app.sync_schedules()
    fairway_clock.advance("90m")
    fairway_clock.advance("8h")  # Thursday, 9:30
    assert testing.assert_enqueued(report, {"kind": "daily"}).due_at == 1_767_259_800.0
    fairway_clock.advance("72h")  # over a weekend
    assert len(testing.all_enqueued(report)) == 2


def test_a_drain_that_turns_the_clock_passes_ticks_too(fairway_manual: MemoryDoor) -> None:
    app.sync_schedules()
    report.options(delay="4m").enqueue("later")
    assert testing.drain() == {}
    assert testing.drain(with_scheduled=True) == {"succeeded": 3}


def test_what_is_not_synced_does_not_fire(fairway_clock: Clock) -> None:
    fairway_clock.advance("1d")
    assert not testing.all_enqueued()


def test_very_many_ticks_are_told(fairway_clock: Clock) -> None:
    app.sync_schedules()
    with pytest.raises(RuntimeError, match="beat has over 10000 ticks in one turn"):
        fairway_clock.advance("20d")
