"""A word before the time limit, in every run mode: the handler hears it once, and may end well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Literal

import pytest

from fairway import App, SoftTimeLimit
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.sdk.handler.context import Ctx, RunFacts
from fairway.sdk.job import Job
from fairway.sdk.run import run_job, run_job_here

SOON, LONG_SECONDS = "50ms", 20.0
Mode = Literal["loop", "thread"]


def naps(seconds: float) -> None:
    """In short steps, as code in Python is: it can be interrupted between them."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        time.sleep(0.002)


def handler_of(kind: str, catches: bool, more_seconds: float = 0) -> Callable[..., Any]:
    async def waits() -> str:
        try:
            await asyncio.sleep(LONG_SECONDS)
        except SoftTimeLimit:
            if not catches:
                raise
            await asyncio.sleep(more_seconds)
        return "saved"

    def works() -> str:
        try:
            naps(LONG_SECONDS)
        except SoftTimeLimit:
            if not catches:
                raise
            naps(more_seconds)
        return "saved"

    return waits if kind == "async" else works


def job_of(kind: str, **more: Any) -> Job[..., str]:
    options = {"timeout": "10s", "soft_timeout": SOON} | more.pop("options", {})
    mode: Mode = "thread" if kind == "thread" else "loop"
    made: Job[..., str] = App("soft").job(mode=mode, **options)(handler_of(kind, **more))
    return made


async def end_of(job: Job[..., Any], kind: str) -> Outcome:
    ctx = Ctx(RunFacts("id", job.name, timeout_seconds=job.timeout_seconds))
    began = time.monotonic()
    end = run_job_here(job, b"{}", ctx) if kind == "main" else await run_job(job, b"{}", ctx)
    assert time.monotonic() - began < LONG_SECONDS / 2
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    return end


KINDS = pytest.mark.parametrize("kind", ["async", "thread", "loop", "main"])


@KINDS
async def test_who_catches_it_ends_well(kind: str) -> None:
    end = await end_of(job_of(kind, catches=True), kind)
    assert (end.kind, end.result) == (OutcomeKind.SUCCEEDED, b'"saved"')


@KINDS
async def test_left_alone_it_is_a_time_limit_that_passed(kind: str) -> None:
    end = await end_of(job_of(kind, catches=False), kind)
    assert (end.kind, end.failure) == (OutcomeKind.FAILED, FailureClass.TIMEOUT)
    assert b"SoftTimeLimit" in (end.error or b"")


@pytest.mark.parametrize("kind", ["async", "loop", "main"])
async def test_the_time_limit_still_holds(kind: str) -> None:
    limits = {"timeout": "150ms"}
    end = await end_of(job_of(kind, catches=True, more_seconds=LONG_SECONDS, options=limits), kind)
    assert (end.kind, end.failure) == (OutcomeKind.FAILED, FailureClass.TIMEOUT)
    assert b"TimeLimitPassed" in (end.error or b"")


@KINDS
async def test_a_run_that_ends_before_hears_nothing(kind: str) -> None:
    async def quick() -> None:
        await asyncio.sleep(0)

    plain: Any = quick if kind == "async" else lambda: None
    mode: Mode = "thread" if kind == "thread" else "loop"
    job = App("soft").job(name="quick", soft_timeout="30ms", mode=mode)(plain)
    assert (await end_of(job, kind)).kind is OutcomeKind.SUCCEEDED
    await asyncio.sleep(0.06)  # nor does whoever comes after it


async def test_a_cancellation_from_outside_stays_one() -> None:
    job = job_of("async", catches=True)
    running = asyncio.create_task(run_job(job, b"{}", Ctx(RunFacts("id", job.name))))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_both_at_once_is_a_cancellation() -> None:
    job = job_of("async", catches=True)
    running = asyncio.create_task(run_job(job, b"{}", Ctx(RunFacts("id", job.name))))
    asyncio.get_running_loop().call_later(0.05, running.cancel)
    await asyncio.sleep(0)
    time.sleep(0.1)  # noqa: ASYNC251  (both are due at the next turn of the loop)
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("soft", ["0s", "10s", "11s"])
def test_a_soft_limit_comes_first(soft: str) -> None:
    with pytest.raises(ValueError, match="soft_timeout must be"):
        job_of("async", catches=True, options={"soft_timeout": soft})
