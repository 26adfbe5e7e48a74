"""Loops: they rest as long as told, wake early when asked, and never end in silence."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from fairway.runtime import loops
from fairway.runtime.clock import ManualClock
from fairway.runtime.loops import (
    PAUSE_MAX_SECONDS,
    SHORTENED_PART,
    Loop,
    Wakeups,
    rest_with_others_ms,
)


class Step:
    """A step that counts its calls, and fails while told to."""

    def __init__(self, rest_seconds: float = 30) -> None:
        self.rest_seconds = rest_seconds
        self.calls: list[int] = []
        self.error: Exception | None = None
        self.called = asyncio.Event()

    async def run_once(self, now_us: int) -> float:
        self.calls.append(now_us)
        self.called.set()
        if self.error is not None:
            raise self.error
        return self.rest_seconds

    async def next_call(self, seconds: float = 2) -> None:
        self.called.clear()
        await asyncio.wait_for(self.called.wait(), seconds)


async def test_a_step_gets_the_time_and_is_called_again_after_its_rest() -> None:
    clock, step = ManualClock(), Step(rest_seconds=0.01)
    clock.advance(5)
    loop = Loop("test", step.run_once, clock)
    loop.start()
    await step.next_call()
    clock.advance(1)
    await step.next_call()
    await loop.stop()
    assert (step.calls[0], step.calls[-1]) == (5_000_000, 6_000_000)


async def test_a_wake_cuts_the_rest_short() -> None:
    step = Step(rest_seconds=30)
    loop = Loop("test", step.run_once, ManualClock())
    loop.start()
    await step.next_call()
    await asyncio.sleep(0)
    began = time.monotonic()
    loop.wake()
    await step.next_call()
    assert time.monotonic() - began < 20
    await loop.stop()


async def test_a_wake_during_a_step_is_not_lost() -> None:
    calls = 0
    again = asyncio.Event()

    async def step(now_us: int) -> float:
        nonlocal calls
        calls += 1
        if calls == 1:
            loop.wake()
        else:
            again.set()
        return 30

    loop = Loop("test", step, ManualClock())
    loop.start()
    await asyncio.wait_for(again.wait(), 30)
    await loop.stop()


async def test_failures_are_tried_again_after_a_pause_that_grows_and_ends() -> None:
    step = Step()
    step.error = RuntimeError("broken")
    loop = Loop("test", step.run_once, ManualClock())
    pauses = [await loop._attempt() for _ in range(10)]
    assert pauses[:3] == [0.2, 0.4, 0.8]
    assert pauses == sorted(pauses)
    assert pauses[-1] == PAUSE_MAX_SECONDS
    assert loop.failures_in_row == 10
    step.error = None
    assert await loop._attempt() == 30
    assert loop.failures_in_row == 0


async def test_an_outage_is_a_line_at_its_start_and_one_at_its_end() -> None:
    clock, step = ManualClock(), Step()
    loop = Loop("test", step.run_once, clock)
    with capture_logs() as lines:
        await loop._attempt()
        for error in (*[ConnectionResetError("gone")] * 30, ValueError("another"), None):
            step.error = error
            await loop._attempt()
            clock.advance(1)
    told = [(line["log_level"], line["event"]) for line in lines if line["log_level"] != "debug"]
    assert told == [("warning", "loop failed")] * 2 + [("info", "loop recovered")]
    assert len([line for line in lines if line["event"] == "loop failed"]) == 31
    assert "another" in [line for line in lines if line["log_level"] == "warning"][1]["error"]
    assert (lines[-1]["failures"], lines[-1]["seconds"]) == (31, 31)


async def test_a_loop_outlives_its_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "PAUSE_FIRST_SECONDS", 0.001)
    step = Step(rest_seconds=0.001)
    step.error = RuntimeError("broken")
    loop = Loop("test", step.run_once, ManualClock())
    loop.start()
    for _ in range(3):
        await step.next_call()
    step.error = None
    await step.next_call()
    await loop.stop()


async def test_stop_is_safe_at_any_time() -> None:
    loop = Loop("test", Step().run_once, ManualClock())
    await loop.stop()
    loop.start()
    await loop.stop()
    await loop.stop()


async def test_a_step_that_fails_as_it_is_stopped_is_stopped() -> None:
    """A transaction on a connection that is closed by then raises that, in place of the cancel."""
    is_begun = asyncio.Event()

    async def step(now_us: int) -> float:
        is_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ConnectionError("closed")

    loop = Loop("test", step, ManualClock())
    loop.start()
    await is_begun.wait()
    async with asyncio.timeout(5):
        await loop.stop()


async def test_a_loop_is_woken_by_what_was_there_before_it() -> None:
    given, step = asyncio.Event(), Step(rest_seconds=60)
    wakeups = Wakeups({"given": given})
    wake = wakeups.of("made")
    made = wakeups.loops({"made": step.run_once, "given": Step().run_once}, ManualClock())
    made["made"].start()
    await step.next_call()
    for each in (wake, wakeups.wake_all, made["made"].wake):
        each()
        await step.next_call()
    assert given.is_set()
    await made["made"].stop()


def test_nobody_is_woken_who_is_not_there() -> None:
    wakeups = Wakeups({})
    wakeups.of("nobody")
    with pytest.raises(LookupError, match="nobody"):
        wakeups.loops({"made": Step().run_once}, ManualClock())


async def test_work_is_given_up_when_the_event_comes_first() -> None:
    event = asyncio.Event()
    assert await loops.done_before(event, asyncio.sleep(0))
    asyncio.get_running_loop().call_later(0.01, event.set)
    assert not await loops.done_before(event, asyncio.sleep(600))

    async def fail() -> None:
        raise ValueError("as it was")

    with pytest.raises(ValueError, match="as it was"):
        await loops.done_before(asyncio.Event(), fail())


@given(st.integers(0, 100_000), st.integers(0, 1 << 40))
def test_a_common_rest_is_a_little_shorter_and_never_longer(rest_ms: int, now_ms: int) -> None:
    found_ms = rest_with_others_ms(rest_ms, now_ms)
    assert rest_ms * (1 - SHORTENED_PART) <= found_ms <= rest_ms


@given(st.sampled_from([1000, 2000, 5000]), st.lists(st.integers(0, 4000), min_size=2, max_size=6))
def test_loops_that_rest_for_as_long_come_to_the_same_moments(
    rest_ms: int, begun_ms: list[int]
) -> None:
    """A round takes a moment; however they began, after a few they end up together."""
    moments = list(begun_ms)
    for _ in range(8):
        moments = [now + 3 + rest_with_others_ms(rest_ms, now + 3) for now in moments]
    assert {now % 1000 for now in moments} == {0}


async def test_whoever_watches_the_loop_hears_of_every_round() -> None:
    begun: list[int] = []
    step = Step(rest_seconds=0.01)
    loop = Loop(
        "test", step.run_once, ManualClock(), on_round=lambda: begun.append(len(step.calls))
    )
    loop.start()
    await step.next_call()
    await step.next_call()
    await loop.stop()
    assert begun[:2] == [0, 1]
