"""One run of a handler: every way to end it."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairway import App, Ctx, Fail, Job, Snooze
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.sdk.handler.context import RunFacts
from fairway.sdk.job import RunMode
from fairway.sdk.run import run_job, run_job_here


def job_of(handler: Callable[..., Any], mode: RunMode = "loop") -> Job[..., Any]:
    job: Job[..., Any] = App("x").job(mode=mode)(handler)
    return job


def ctx_for(job: Job[..., Any], timeout_seconds: float | None = None) -> Ctx:
    return Ctx(RunFacts("j1", job.name, timeout_seconds=timeout_seconds))


async def run(
    handler: Callable[..., Any], payload: bytes = b"{}", timeout_seconds: float | None = None
) -> Outcome:
    job = job_of(handler, "loop" if asyncio.iscoroutinefunction(handler) else "thread")
    return await run_job(job, payload, ctx_for(job, timeout_seconds))


async def test_arguments_and_ctx_reach_the_handler() -> None:
    async def asynchronous(number: int, ctx: Ctx) -> str:
        return f"{number} {ctx.job_id} {Ctx.current() is ctx}"

    def synchronous(number: int, ctx: Ctx) -> str:
        return f"{number} {ctx.job_id} {Ctx.current() is ctx}"

    for handler in (asynchronous, synchronous):
        assert (await run(handler, b'{"number":2}')).result == b'"2 j1 True"'


async def test_functions_of_thread_mode_leave_the_loop_alone() -> None:
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    in_thread, in_loop = job_of(where, "thread"), job_of(where, "loop")
    assert (await run_job(in_thread, b"{}", ctx_for(in_thread))).result == b"false"
    assert (await run_job(in_loop, b"{}", ctx_for(in_loop))).result == b"true"


async def test_annotations_that_cannot_be_resolved_fail_the_run() -> None:
    async def lost(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    job = job_of(lost)
    for end in (await run_job(job, b"{}", ctx_for(job)), run_job_here(job, b"{}", ctx_for(job))):
        assert (end.kind, end.failure) == (OutcomeKind.FAILED, FailureClass.APP_ERROR)
        assert b"annotation cannot be resolved" in (end.error or b"")


async def test_wrong_arguments_fail_for_good() -> None:
    async def handler(number: int) -> None: ...

    end = await run(handler, b'{"number":"2"}')
    assert end.failure is FailureClass.PERMANENT
    assert b"argument `number`: expected int, got str" in (end.error or b"")


async def test_the_time_limit_is_told_from_a_timeout_of_the_handlers() -> None:
    async def slow() -> None:
        await asyncio.sleep(30)

    async def own() -> None:
        raise TimeoutError("mine")

    end = await run(slow, timeout_seconds=0.05)
    assert end.failure is FailureClass.TIMEOUT
    assert b"the time limit of 0.05" in (end.error or b"")
    assert (await run(own, timeout_seconds=5)).failure is FailureClass.APP_ERROR


async def test_the_time_limit_holds_for_threads() -> None:
    def slow() -> None:
        time.sleep(1.5)

    begun = time.monotonic()
    assert (await run(slow, timeout_seconds=0.05)).failure is FailureClass.TIMEOUT
    assert time.monotonic() - begun < 1.4


async def test_exit_and_stray_cancellation_are_failures() -> None:
    async def leaves() -> None:
        sys.exit(3)

    async def slips() -> None:
        raise asyncio.CancelledError

    for handler in (leaves, slips):
        assert (await run(handler)).failure is FailureClass.APP_ERROR


async def test_who_cancels_gets_the_cancellation_back() -> None:
    async def slow() -> None:
        await asyncio.sleep(30)

    task = asyncio.create_task(run(slow))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_run_here_takes_both_colours() -> None:
    async def asynchronous(ctx: Ctx) -> str:
        return Ctx.current().job_id

    def synchronous() -> None:
        raise Fail("no")

    def drowsy() -> Snooze:
        return Snooze(3)

    good, bad, later = job_of(asynchronous), job_of(synchronous), job_of(drowsy)
    assert run_job_here(good, b"{}", ctx_for(good)).result == b'"j1"'
    assert run_job_here(bad, b"{}", ctx_for(bad)).failure is FailureClass.PERMANENT
    assert run_job_here(later, b"{}", ctx_for(later)).kind is OutcomeKind.SNOOZED


async def test_the_stack_shows_the_handler() -> None:
    async def broken() -> None:
        raise KeyError("cv1")

    end = await run(broken)
    assert "in broken" in msgspec.json.decode(end.error or b"{}")["stack"]
