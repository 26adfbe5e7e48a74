"""A runner: the process that holds the user's code. It runs what it is told and says how it ended.

It knows nothing of the platform: no address, no key, no lease token beyond what its keeper sends.
If it hangs, hogs the interpreter or dies, its keeper still beats and reports. It ends when the pipe
closes, so a killed keeper leaves no runner behind.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from msgspec import Raw

from fairway.core.outcome import FailureClass, OutcomeKind
from fairway.runtime.memory import calm_collector
from fairway.runtime.parent import die_with_parent
from fairway.sdk.app import App
from fairway.sdk.context import Ctx, RunFacts
from fairway.sdk.job import Job
from fairway.sdk.loading import LoadError
from fairway.sdk.run import run_job, run_job_here
from fairway.sdk.vocabulary import RunEnd
from fairway.wire.exchange import NULL, Lease
from fairway.worker.pipe import Declared, Ended, Orders, Pipe, Progress, Words

RESULT_BYTES_MAX = 1 << 20


class Runner:
    def __init__(self, app: App) -> None:
        self._app = app
        self._pipe: Pipe[Orders] | None = None
        self._tasks: dict[str, tuple[asyncio.Task[None], Ctx]] = {}
        self._given_up: set[asyncio.Task[None]] = set()
        self._ended: list[Ended] = []
        self._progress: dict[str, bytes] = {}
        self._flush_due = False
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def run(self, end: socket.socket) -> None:
        self._pipe = await Pipe.join(end, Orders, self._obey, self._closed.set)
        self._pipe.send(Words(declared=_declared(self._app)))
        await self._closed.wait()

    # -- orders ------------------------------------------------------------------------------

    def _obey(self, orders: Orders) -> None:
        for lease in orders.leases:
            self._start(lease)
        for job in orders.cancel:
            self._ask_to_stop(job)
        for job in orders.give_up:
            if job in self._tasks:
                task, _ = self._tasks.pop(job)
                self._given_up.add(task)
                self._loop.call_soon(task.cancel)

    def _start(self, lease: Lease) -> None:
        job = self._app.jobs[lease.type]
        seconds = job.timeout_seconds if lease.timeout_ms is None else lease.timeout_ms / 1000
        facts = RunFacts(
            lease.job, lease.type, lease.tenant, lease.attempt, lease.delivery, seconds
        )
        ctx = Ctx(facts, self)
        if job.run_mode == "loop" and not job.is_async:
            self._run_inline(job, lease, ctx)
        else:
            task = self._loop.create_task(self._run(job, lease, ctx))
            self._tasks[lease.job] = task, ctx

    def _ask_to_stop(self, job: str) -> None:
        """Coroutines are cancelled; functions in threads must look at `ctx.cancelled()`."""
        found = self._tasks.get(job)
        if found is None:
            return
        task, ctx = found
        ctx.ask_to_stop()
        if self._app.jobs[ctx.type].is_async:
            self._loop.call_soon(task.cancel)  # after its first step: it must say how it ended

    # -- one run -----------------------------------------------------------------------------

    def _run_inline(self, job: Job[..., Any], lease: Lease, ctx: Ctx) -> None:
        """A plain function that asked for the loop: nothing to wait for, so no task either."""
        began_ns = time.monotonic_ns()
        try:
            end = run_job_here(job, bytes(lease.payload), ctx)
        except BaseException as error:
            end = _defect(error)
        ran_us = (time.monotonic_ns() - began_ns) // 1000
        self._ended.append(_ended(lease, end, ran_us))
        self._flush_soon()

    async def _run(self, job: Job[..., Any], lease: Lease, ctx: Ctx) -> None:
        began_ns = time.monotonic_ns()
        try:
            end = await run_job(job, bytes(lease.payload), ctx)
        except asyncio.CancelledError:
            end = RunEnd(OutcomeKind.CANCELLED if ctx.cancelled() else OutcomeKind.RETURNED)
        except BaseException as error:  # a defect of ours must not lose the job
            end = _defect(error)
        ran_us = (time.monotonic_ns() - began_ns) // 1000
        task = asyncio.current_task()
        if task in self._given_up:  # another run of the same job may be here already
            self._given_up.discard(task)
            return
        del self._tasks[lease.job]
        self._ended.append(_ended(lease, end, ran_us))
        self._flush_soon()

    # -- words -------------------------------------------------------------------------------

    def progress(self, job_id: str, progress: bytes) -> None:
        """Called by handlers, from any thread; only the last word of each job is sent."""
        self._progress[job_id] = progress
        self._loop.call_soon_threadsafe(self._flush_soon)

    def log(self, job_id: str, level: int, line: str) -> None:
        """Lines go to the process's own logging; keeping them per job is not offered yet."""

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        ended, self._ended = self._ended, []
        news, self._progress = self._progress, {}
        progress = [Progress(job=job, progress=Raw(text)) for job, text in news.items()]
        if self._pipe is not None and (ended or progress):
            self._pipe.send(Words(ended=ended, progress=progress))


def _ended(lease: Lease, end: RunEnd, ran_us: int) -> Ended:
    if end.result is not None and len(end.result) > RESULT_BYTES_MAX:
        end = _too_large(len(end.result))
    return Ended(
        job=lease.job,
        epoch=lease.epoch,
        kind=end.kind.value,
        ran_us=ran_us,
        result=NULL if end.result is None else Raw(end.result),
        failure=None if end.failure is None else end.failure.value,
        error=NULL if end.error is None else Raw(end.error),
        delay_ms=end.delay_ms,
    )


def _too_large(size: int) -> RunEnd:
    message = (
        f"The result has {size} bytes; at most {RESULT_BYTES_MAX} are kept: store it elsewhere."
    )
    error = msgspec.json.encode({"type": "ResultTooLarge", "message": message, "stack": ""})
    return RunEnd(OutcomeKind.FAILED, failure=FailureClass.PERMANENT, error=error)


def _defect(error: BaseException) -> RunEnd:
    text = msgspec.json.encode({"type": type(error).__name__, "message": str(error), "stack": ""})
    return RunEnd(OutcomeKind.FAILED, failure=FailureClass.APP_ERROR, error=text)


def _declared(app: App) -> list[Declared]:
    return [
        Declared(
            name=name,
            mode=job.run_mode,
            timeout_ms=None if job.timeout_seconds is None else round(job.timeout_seconds * 1000),
            attempts_max=job.retry.attempts,
        )
        for name, job in app.jobs.items()
    ]


async def _main(target: str, descriptor: int, threads: int) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(threads, thread_name_prefix="job"))
    end = socket.socket(fileno=descriptor)
    app: Any = App.load(target)
    calm_collector()
    await Runner(app).run(end)


def main() -> None:
    """`python -m fairway.worker.runner TARGET DESCRIPTOR THREADS`; started by a keeper only."""
    die_with_parent(signal.SIGKILL)  # belt and braces: the pipe's end says the same soon
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the keeper's to answer
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    target, descriptor, threads = sys.argv[1:4]
    try:
        _run(_main(target, int(descriptor), int(threads)))
    except LoadError as error:
        sys.exit(f"fairway: {error}")


def _run(work: Coroutine[Any, Any, None]) -> None:
    """On uvloop where it is installed. An import that fails in a user's app is not about that."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


if __name__ == "__main__":
    main()
