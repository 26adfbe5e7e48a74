"""A loop that stands still is noticed, and who is to blame for it: the loop, or the machine."""

from __future__ import annotations

import asyncio
import time

from fairway.runtime.stalls import QUIET_SECONDS, StallWatch, ThreadBusy
from fairway.runtime.telemetry import Metrics


async def beats(watch: StallWatch) -> None:
    """Until a beat has come that was due after this moment."""
    await asyncio.sleep(0.06)


async def test_a_loop_that_computes_stands_still() -> None:
    metrics = Metrics()
    watch = StallWatch(metrics)
    watch.start()
    until = time.thread_time() + 0.3
    while time.thread_time() < until:
        pass
    await beats(watch)
    stall = watch.longest()
    assert stall.late_seconds >= 0.25
    assert 0.25 <= stall.busy_seconds < 0.4
    assert metrics.registry.get_sample_value("fairway_loop_stall_seconds") == stall.late_seconds
    watch.forget()
    assert watch.longest() == (0, 0)
    watch.stop()


async def test_a_loop_that_is_kept_waiting_computes_nothing() -> None:
    watch = StallWatch(Metrics())
    watch.start()
    time.sleep(0.3)  # noqa: ASYNC251  # stands for a machine that is busy with others
    await beats(watch)
    stall = watch.longest()
    assert stall.late_seconds >= 0.25
    assert stall.busy_seconds < 0.1
    watch.stop()


async def test_beats_are_rare_while_nothing_is_computed_and_near_when_something_begins() -> None:
    metrics = Metrics()
    watch = StallWatch(metrics)
    watch.start()
    await asyncio.sleep(0.3)
    assert watch._beat_seconds == QUIET_SECONDS
    watch.stir()
    time.sleep(0.2)  # noqa: ASYNC251  # what began holds the loop
    await beats(watch)
    assert watch.longest().late_seconds >= 0.15
    await asyncio.sleep(0.1)
    assert watch._beat_seconds == QUIET_SECONDS
    watch.forget()
    until = time.thread_time() + 0.1  # nobody said that it begins, and it is over before a beat
    while time.thread_time() < until:
        pass
    watch.stir()
    await asyncio.sleep(QUIET_SECONDS)
    assert 0.05 <= watch.longest().busy_seconds <= watch.longest().late_seconds
    count = metrics.registry.get_sample_value("fairway_loop_late_seconds_count")
    assert count is not None
    assert count <= 12, "some thirty would have come"
    watch.stop()
    watch.stir()
    assert watch._timer is None


def test_a_thread_that_computes_is_busy_and_is_called_so_a_while_after() -> None:
    busy = ThreadBusy(rise_seconds=0.05, fall_seconds=5.0)
    until = time.thread_time() + 0.15
    while time.thread_time() < until:
        busy.look()
    computed = busy.per_mille
    assert computed > 0
    time.sleep(0.2)
    busy.look()
    assert computed * 0.9 < busy.per_mille < computed
    quick = ThreadBusy(rise_seconds=0.01)
    time.sleep(0.1)
    quick.look()
    assert quick.per_mille < 200
