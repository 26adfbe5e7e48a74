"""One run of a handler, from payload to `Outcome`: decode, call, limit the time, conclude.

Workers and tests both run handlers through here, so a test sees what production does. It never
raises for what a handler does. It neither reports nor retries: the caller does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.sdk.handler.alarm import alarm
from fairway.sdk.handler.context import Ctx, enter, leave
from fairway.sdk.handler.outcomes import SoftTimeLimit, TimeLimitPassed, outcome_of
from fairway.sdk.handler.soft_limit import WarnedInTime
from fairway.sdk.handler.threads import ThreadRun
from fairway.sdk.handler.tracing import attach, detach
from fairway.sdk.job import Job

T = TypeVar("T")


async def run_job(job: Job[..., Any], payload: bytes, ctx: Ctx) -> Outcome:
    """Run in the current loop, or in a thread when the handler is a function of that mode.

    Child processes are the worker's affair: a job of that mode runs here like a thread's. Who
    cancels the task that is in here gets the CancelledError back and says what it means.
    """
    try:
        arguments = with_ctx(job, job.decode_arguments(payload), ctx)
        entered = enter(ctx)
        attached = None if ctx.traceparent is None else attach(ctx.traceparent)
        try:
            if job.is_async and _is_bare(job, ctx):
                value = await job.function(**arguments)  # the hot way: no frame in between
            else:
                value = await _within_limit(_called(job, arguments, ctx), ctx)
        finally:
            leave(entered)
            if attached is not None:
                detach(attached)
    except asyncio.CancelledError as error:
        if _cancelled_from_outside():
            raise
        return conclude(job, ctx, error=error)
    except (Exception, SystemExit) as error:  # whatever a handler raises is an end of its run
        return conclude(job, ctx, error=error)
    return conclude(job, ctx, value)


def run_job_here(job: Job[..., Any], payload: bytes, ctx: Ctx) -> Outcome:
    """Run to the end in this thread. A time limit holds in the main thread only."""
    try:
        arguments = with_ctx(job, job.decode_arguments(payload), ctx)
        entered = enter(ctx)
        attached = None if ctx.traceparent is None else attach(ctx.traceparent)
        try:
            if _is_bare(job, ctx):
                value = job.function(**arguments)
                value = asyncio.run(value) if job.is_async else value
            else:
                value = _called_here(job, arguments, ctx)
        finally:
            leave(entered)
            if attached is not None:
                detach(attached)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        return conclude(job, ctx, error=error)
    return conclude(job, ctx, value)


def conclude(
    job: Job[..., Any], ctx: Ctx, value: Any = None, error: BaseException | None = None
) -> Outcome:
    """What this value or error means for this job at this attempt."""
    if error is not None and job.app.hooks.on_failure:
        ctx.note_error(error)
    if error is None:
        end = outcome_of(value, None, job.encode_result)
    else:
        sample = random.random() if ctx.sample is None else ctx.sample
        end = outcome_of(None, error, job.encode_result, job.retry, ctx.attempt, sample)
    return _handed_back(ctx, end) if end.kind is OutcomeKind.RETURNED else end


def _handed_back(ctx: Ctx, end: Outcome) -> Outcome:
    """A job stops because it was asked to; else handing it back would run it for ever."""
    if ctx.cancelled():
        return Outcome(OutcomeKind.CANCELLED)
    if ctx.draining():
        return Outcome(OutcomeKind.RETURNED)
    return Outcome(OutcomeKind.FAILED, failure=FailureClass.APP_ERROR, error=end.error)


def with_ctx(job: Job[..., Any], arguments: dict[str, Any], ctx: Ctx) -> dict[str, Any]:
    name = job.codec.ctx_name
    if name is not None:
        arguments[name] = ctx
    return arguments


def _is_bare(job: Job[..., Any], ctx: Ctx) -> bool:
    """Nothing stands around its call."""
    return (
        ctx.timeout_seconds is None
        and job.soft_timeout_seconds is None
        and not job.app.hooks.around_run
    )


def _called_here(job: Job[..., Any], arguments: dict[str, Any], ctx: Ctx) -> Any:
    is_limited = ctx.timeout_seconds is not None or job.soft_timeout_seconds is not None
    limit = alarm(ctx.time_left(), limit_passed(ctx), _soft(job)) if is_limited else nullcontext()
    with limit, job.app.hooks.run(ctx):
        value = job.function(**arguments)
        return asyncio.run(value) if job.is_async else value


async def _called(job: Job[..., Any], arguments: dict[str, Any], ctx: Ctx) -> Any:
    if not job.app.hooks.around_run:
        return await _called_bare(job, arguments, ctx)
    with job.app.hooks.run(ctx):
        return await _called_bare(job, arguments, ctx)


async def _called_bare(job: Job[..., Any], arguments: dict[str, Any], ctx: Ctx) -> Any:
    soft_seconds = job.soft_timeout_seconds
    if job.is_async:
        work = job.function(**arguments)
        return await (work if soft_seconds is None else WarnedInTime(work, soft_seconds))
    if job.run_mode == "loop":
        with alarm(ctx.time_left(), limit_passed(ctx), _soft(job)):
            return job.function(**arguments)
    ctx.thread = ThreadRun(job.function, arguments)
    if soft_seconds is None:
        return await ctx.thread.call()
    warn = partial(ctx.thread.warn, SoftTimeLimit)
    timer = asyncio.get_running_loop().call_later(soft_seconds, warn)
    try:
        return await ctx.thread.call()
    finally:
        timer.cancel()


def _soft(job: Job[..., Any]) -> tuple[float, SoftTimeLimit] | None:
    seconds = job.soft_timeout_seconds
    return None if seconds is None else (seconds, SoftTimeLimit())


async def _within_limit(work: Coroutine[Any, Any, T], ctx: Ctx) -> T:
    # Not `wait_for`: a TimeoutError of the handler's own must stay the handler's.
    try:
        async with asyncio.timeout(ctx.time_left()) as limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise limit_passed(ctx) from error


def limit_passed(ctx: Ctx) -> TimeLimitPassed:
    return TimeLimitPassed(f"the time limit of {ctx.timeout_seconds or 0:g} s passed")


def _cancelled_from_outside() -> bool:
    """Tells a cancellation of this task from a CancelledError that the handler let slip."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
