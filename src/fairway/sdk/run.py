"""One run of a handler, from payload to `RunEnd`: decode, call, limit the time, conclude.

Workers and tests both run handlers through here, so a test sees what production does. It never
raises for what a handler does. It neither reports nor retries: the caller does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fairway.sdk.context import Ctx, running
from fairway.sdk.job import Job
from fairway.sdk.vocabulary import RunEnd, TimeLimitPassed, run_end

T = TypeVar("T")


async def run_job(job: Job[..., Any], payload: bytes, ctx: Ctx) -> RunEnd:
    """Run in the current loop, or in a thread when the handler is a function of that mode.

    Child processes are the worker's affair: a job of that mode runs here like a thread's. Who
    cancels the task that is in here gets the CancelledError back and says what it means.
    """
    try:
        arguments = with_ctx(job, job.decode_arguments(payload), ctx)
        with running(ctx):
            if job.is_async and ctx.timeout_seconds is None:
                value = await job.function(**arguments)  # the hot way: no frame in between
            else:
                value = await _within_limit(_called(job, arguments), ctx)
    except asyncio.CancelledError as error:
        if _cancelled_from_outside():
            raise
        return conclude(job, ctx, error=error)
    except (Exception, SystemExit) as error:  # whatever a handler raises is an end of its run
        return conclude(job, ctx, error=error)
    return conclude(job, ctx, value)


def run_job_here(job: Job[..., Any], payload: bytes, ctx: Ctx) -> RunEnd:
    """Run to the end in this thread; for threads and child processes. Takes no time limit."""
    try:
        arguments = with_ctx(job, job.decode_arguments(payload), ctx)
        with running(ctx):
            value = job.function(**arguments)
            value = asyncio.run(value) if job.is_async else value
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        return conclude(job, ctx, error=error)
    return conclude(job, ctx, value)


def conclude(
    job: Job[..., Any], ctx: Ctx, value: Any = None, error: BaseException | None = None
) -> RunEnd:
    """What this value or error means for this job at this attempt."""
    return run_end(value, error, encode=job.encode_result, retry=job.retry, attempt=ctx.attempt)


def with_ctx(job: Job[..., Any], arguments: dict[str, Any], ctx: Ctx) -> dict[str, Any]:
    name = job.wants_ctx
    if name is not None:
        arguments[name] = ctx
    return arguments


async def _called(job: Job[..., Any], arguments: dict[str, Any]) -> Any:
    if job.is_async:
        return await job.function(**arguments)
    if job.run_mode == "loop":
        return job.function(**arguments)
    return await asyncio.to_thread(job.function, **arguments)


async def _within_limit(work: Coroutine[Any, Any, T], ctx: Ctx) -> T:
    # Not `wait_for`: a TimeoutError of the handler's own must stay the handler's.
    try:
        async with asyncio.timeout(ctx.time_left()) as limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TimeLimitPassed(f"the time limit of {ctx.timeout_seconds:g} s passed") from error


def _cancelled_from_outside() -> bool:
    """Tells a cancellation of this task from a CancelledError that the handler let slip."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
