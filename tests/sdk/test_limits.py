"""How a job type declares what it may use, and what stops a run that goes too far."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from fairway import App, Ctx, HandBack, Limits
from fairway.core.run.outcome import FailureClass, OutcomeKind
from fairway.core.run.process_limits import UNLIMITED, RunLimits
from fairway.sdk.handler.alarm import alarm
from fairway.sdk.handler.context import RunFacts, SilentSink
from fairway.sdk.handler.outcomes import TimeLimitPassed, outcome_of
from fairway.sdk.handler.threads import ThreadRun
from fairway.sdk.limits import bytes_of
from fairway.sdk.run import run_job, run_job_here


def test_limits_are_written_as_people_write_them() -> None:
    said = Limits(memory="512MB", cpu="30s", file_size=1000, open_files=64, processes=8)
    assert said.terms == RunLimits(
        memory_bytes=512 << 20, cpu_ms=30_000, file_bytes=1000, open_files=64, processes=8
    )
    assert Limits().terms == UNLIMITED
    assert bytes_of("1.5 gb") == 3 << 29


@pytest.mark.parametrize(
    "wrong", [{"memory": "lots"}, {"memory": 0}, {"processes": 0}, {"cpu": 0}, {"open_files": -1}]
)
def test_what_is_no_limit_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be a whole number|is no size"):
        Limits(**wrong)


def test_limits_bring_a_process_of_its_own() -> None:
    app = App("a")
    limited = app.job(limits=Limits(processes=8), cancel_grace="10s", runaway_after="5m")(work)
    assert limited.run_mode == "process"
    assert (limited.cancel_grace_ms, limited.runaway_after_ms) == (10_000, 300_000)
    with pytest.raises(ValueError, match="limits need mode='process'"):
        app.job(name="other", mode="thread", limits=Limits(processes=8))(work)


def work() -> None:
    return None


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (OSError(27, "File too large"), FailureClass.RESOURCE),
        (OSError(24, "Too many open files"), FailureClass.RESOURCE),
        (OSError(2, "No such file"), FailureClass.APP_ERROR),
        (MemoryError(), FailureClass.RESOURCE),
    ],
)
def test_errors_of_a_limit_are_of_their_class(error: Exception, failure: FailureClass) -> None:
    assert outcome_of(error=error).failure is failure


# -- time limits -------------------------------------------------------------------------------


def test_a_plain_function_in_the_main_thread_is_stopped_in_the_middle() -> None:
    app = App("a")

    @app.job(mode="loop")
    def spin() -> None:
        while True:
            pass

    ctx = Ctx(RunFacts("id", "spin", timeout_seconds=0.1))
    end = run_job_here(spin, b"{}", ctx)
    assert (end.kind, end.failure) == (OutcomeKind.FAILED, FailureClass.TIMEOUT)


def test_catching_the_limit_does_not_help() -> None:
    app = App("a")
    caught = []

    @app.job(mode="loop")
    def stubborn() -> None:
        try:
            time.sleep(30)
        except Exception as error:
            caught.append(error)
        time.sleep(30)

    began = time.monotonic()
    end = run_job_here(stubborn, b"{}", Ctx(RunFacts("id", "stubborn", timeout_seconds=0.05)))
    assert end.failure is FailureClass.TIMEOUT
    assert len(caught) == 1
    assert time.monotonic() - began < 20


async def test_a_thread_past_its_limit_can_be_interrupted() -> None:
    app = App("a")
    stopped = threading.Event()

    @app.job(mode="thread")
    def spin() -> None:
        try:
            while True:
                pass
        finally:
            stopped.set()

    ctx = Ctx(RunFacts("id", "spin", timeout_seconds=0.1))
    end = await run_job(spin, b"{}", ctx)
    assert end.failure is FailureClass.TIMEOUT
    assert ctx.thread is not None
    assert not ctx.thread.is_over
    ctx.thread.interrupt(TimeLimitPassed)
    assert await asyncio.to_thread(stopped.wait, 10)


async def test_an_interruption_never_reaches_the_next_job_of_the_thread() -> None:
    """Many short calls, each interrupted at about its end; none of what follows is harmed."""
    loop = asyncio.get_running_loop()
    for round_ in range(300):
        run = ThreadRun(_count, {"to": 50_000 + 1000 * (round_ % 7)})
        call = asyncio.ensure_future(run.call())
        loop.call_later(0.0002 * (round_ % 5), run.interrupt, TimeLimitPassed)
        await asyncio.gather(call, return_exceptions=True)
        assert await asyncio.to_thread(_count, to=10) == 10
        assert run.is_over


def _count(to: int) -> int:
    number = 0
    while number < to:
        number += 1
    return number


# -- handing back ------------------------------------------------------------------------------


class Draining(SilentSink):
    draining = True


async def test_handing_back_means_what_was_asked_for() -> None:
    app = App("a")

    @app.job(mode="loop")
    async def stop() -> None:
        raise HandBack

    facts = RunFacts("id", "stop")
    drained = Ctx(facts, Draining())
    assert drained.should_stop()
    assert (await run_job(stop, b"{}", drained)).kind is OutcomeKind.RETURNED
    cancelled = Ctx(facts)
    cancelled.ask_to_stop()
    assert (await run_job(stop, b"{}", cancelled)).kind is OutcomeKind.CANCELLED
    nobody = Ctx(facts)
    assert not nobody.should_stop()
    end = await run_job(stop, b"{}", nobody)
    assert (end.kind, end.failure) == (OutcomeKind.FAILED, FailureClass.APP_ERROR)


def test_an_alarm_of_the_caller_still_rings_after_ours() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    theirs, every = signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        with pytest.raises(TimeLimitPassed), alarm(0.01, TimeLimitPassed("too long")):
            time.sleep(5)
        time.sleep(0.2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, theirs, every)
        signal.signal(signal.SIGALRM, before)
    assert heard


AFTER_AN_INTERRUPTION = """
import asyncio, sys
from fairway.sdk.handler.threads import ThreadRun

def count(to):
    for _ in range(to):
        pass

async def main():
    run = ThreadRun(count, {"to": 1_000_000_000})
    call = asyncio.ensure_future(run.call())
    asyncio.get_running_loop().call_later(0.05, run.interrupt, TimeoutError)
    await asyncio.gather(call, return_exceptions=True)

asyncio.run(main())
sys.settrace(lambda frame, event, argument: None)
count(1)
print("traced")
"""


def test_an_interruption_leaves_no_trace_in_the_interpreter() -> None:
    """Python went on looking for it at every step of every thread; one that was traced hung."""
    said = subprocess.run(
        [sys.executable, "-c", AFTER_AN_INTERRUPTION], capture_output=True, text=True, timeout=60
    )
    assert said.stdout == "traced\n", said.stderr
