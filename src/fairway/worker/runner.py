"""A runner: the process that holds the user's code. It runs what it is told and says how it ended.

It knows nothing of the platform: no address, no key, no lease token beyond what its keeper sends.
If it hangs, hogs the interpreter or dies, its keeper still beats and reports. It ends when the pipe
closes, so a killed keeper leaves no runner behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import Raw

from fairway.core.ids import Epoch
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.run.process_limits import RunLimits
from fairway.runtime.gc_tuning import tune_gc
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.log_lines import JsonLines, TextLines, write_unclaimed
from fairway.runtime.log_options import LogOptions
from fairway.runtime.parent_death import die_with_parent
from fairway.sdk.app import App
from fairway.sdk.handler.context import Ctx, RunFacts
from fairway.sdk.handler.outcomes import TimeLimitPassed, encode_error
from fairway.sdk.handler.threads import ThreadRun
from fairway.sdk.job import Job
from fairway.sdk.loading import LoadError
from fairway.sdk.run import run_job, run_job_here
from fairway.wire.exchange import Lease
from fairway.worker.exchange.large_results import in_frames, words_text
from fairway.worker.hook_calls import HookCalls
from fairway.worker.job_log import JobLines
from fairway.worker.limits import confine, reaper
from fairway.worker.pending_checkpoints import PendingCheckpoints, checkpoint
from fairway.worker.pipe.pings import answer_pings
from fairway.worker.pipe.pipe import (
    KeeperMessage,
    Pipe,
    PipeHandlers,
    Progress,
    RunLease,
    RunnerMessage,
    RunnerSetup,
    RunReport,
    first_word,
)
from fairway.worker.pipe.run_messages import (
    declared_by,
    defect,
    parsed,
    report_of,
    with_follow_ups,
)
from fairway.worker.pipe.unreadable_leases import readable_in
from fairway.worker.run_records import hear_logging
from fairway.worker.said_lines import SaidLines

SPARE_NAME, RUNNER_NAME = "fairway-spare", "fairway-runner"  # as `ps -o comm` shows them
DROPPED_SECONDS = 1.0  # from the first line that had no room to the line that says how many
LINES_SECONDS = 0.05  # that lines are gathered for
HOOK_SECONDS = 5.0
INTERRUPTION_SECONDS = 2.0  # what a thread gets to end after its job was given up


class Run(NamedTuple):
    """A job that runs as a task."""

    task: asyncio.Task[None]
    ctx: Ctx
    lease: Lease
    began_ns: int


class Runner:
    def __init__(
        self, app: App, threads: int, limits: RunLimits | None, options: LogOptions
    ) -> None:
        self._app = app
        self._limits = limits  # when this runner runs one job at a time, under limits
        self._threads = threads
        self.draining = False  # read by every Ctx
        self._pipe: Pipe[KeeperMessage] | None = None
        self._runs: dict[str, Run] = {}
        self._given_up: set[asyncio.Task[None]] = set()
        self._timed: dict[str, tuple[Job[..., Any], Lease, RunFacts]] = {}  # wait for their turn
        self._lost_threads: set[ThreadRun] = set()
        self._ended: list[RunReport] = []
        self._progress: dict[str, Raw] = {}
        self._pending_checkpoints = PendingCheckpoints()
        self._lines = JobLines(options)
        self._said = SaidLines(options.level)
        self._hooks = HookCalls(app.hooks)
        self._flush_due = False
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def run(self, end: socket.socket) -> None:
        hearing = PipeHandlers(self._obey, self._closed.set, self._salvage)
        self._pipe = await Pipe.join(end, KeeperMessage, hearing)
        self._pipe.send(RunnerMessage(declared=declared_by(self._app), pid=os.getpid()))
        await self._closed.wait()

    # -- orders ------------------------------------------------------------------------------

    def _obey(self, orders: KeeperMessage) -> None:
        for lease in orders.leases:
            try:
                self._start(lease)
            except Exception as error:  # a type that is not in this app, say: its job's own affair
                self._say(report_of(lease, defect(error), 0))
        for answer in orders.saved:
            self._pending_checkpoints.resolve(answer)
        for job in orders.cancel:
            self._ask_to_stop(job)
        for job in orders.give_up:
            self._give_up(job)
        for job in orders.overdue:
            self._end_overdue(job)
        self.draining = self.draining or orders.drain
        for dead in orders.dead:
            self._hooks.died(dead)

    def _salvage(self, text: bytes, error: Exception) -> None:
        """Orders that cannot be read cost the jobs in them that are no good, and nobody else."""
        orders, lost = readable_in(text, error)
        for ended in lost:
            self._say(ended)
        self._obey(orders)

    def _say(self, ended: RunReport) -> None:
        self._ended.append(ended)
        self._flush_soon()

    def _start(self, lease: RunLease) -> None:
        job = self._app.jobs[lease.type]
        if lease.job in self._runs or lease.job in self._timed:
            if self._lease_of(lease.job).epoch >= lease.epoch:
                return  # it runs: whatever else comes by its name is not what we were told to run
            self._give_up(lease.job)
        seconds = job.timeout_seconds if lease.timeout_ms is None else lease.timeout_ms / 1000
        facts = RunFacts(
            lease.job,
            lease.type,
            lease.whole_tenant,
            lease.attempt,
            lease.delivery,
            seconds,
            lease.epoch,
            _state(lease.checkpoint) if lease.resumes else None,
            traceparent=lease.traceparent,
        )
        if job.run_mode == "loop" and not job.is_async:
            if seconds is None:
                self._run_inline(job, lease, Ctx(facts, self))
            else:
                self._run_in_turn(job, lease, facts)
        else:
            ctx = Ctx(facts, self)
            began_ns = time.monotonic_ns()
            task = self._loop.create_task(self._run(job, lease, ctx, began_ns))
            self._runs[lease.job] = Run(task, ctx, lease, began_ns)

    def _lease_of(self, job: str) -> Lease:
        """Of one that runs here, or waits for its turn."""
        return self._runs[job].lease if job in self._runs else self._timed[job][1]

    def _ask_to_stop(self, job: str) -> None:
        """Coroutines are cancelled; functions in threads must look at `ctx.cancelled()`."""
        if waiting := self._timed.pop(job, None):
            self._say(report_of(waiting[1], Outcome(OutcomeKind.CANCELLED), 0))
        run = self._runs.get(job)
        if run is None or run.ctx.cancelled():
            return
        run.ctx.ask_to_stop()
        handler = self._app.jobs[run.ctx.type]
        if handler.is_async:
            self._loop.call_soon(run.task.cancel)  # after its first step: it must say how it ended
        self._loop.call_later(handler.cancel_grace_ms / 1000, self._insist, run)

    def _insist(self, run: Run) -> None:
        """It was asked to stop, and its grace is over."""
        if self._runs.get(run.lease.job) is run:
            self._end_for(run, Outcome(OutcomeKind.CANCELLED))

    def _end_overdue(self, job: str) -> None:
        """The keeper says that it should have ended. Any word in answer shows that we live."""
        run = self._runs.get(job)
        if run is not None:
            error = TimeLimitPassed("the time limit passed, and the handler did not stop")
            failure = FailureClass.TIMEOUT
            self._end_for(
                run, Outcome(OutcomeKind.FAILED, failure=failure, error=encode_error(error))
            )
        elif self._pipe is not None:
            self._pipe.send(RunnerMessage())

    def _end_for(self, run: Run, end: Outcome) -> None:
        """Say how it ended in its place, and let it be."""
        self._give_up(run.lease.job)
        self._say(report_of(run.lease, end, (time.monotonic_ns() - run.began_ns) // 1000))

    def _give_up(self, job: str) -> None:
        self._timed.pop(job, None)
        run = self._runs.pop(job, None)
        if run is not None:
            self._given_up.add(run.task)
            self._loop.call_soon(run.task.cancel)
        self._pending_checkpoints.give_up(job)

    # -- one run -----------------------------------------------------------------------------

    def _run_inline(self, job: Job[..., Any], lease: Lease, ctx: Ctx) -> None:
        """A plain function that asked for the loop: nothing to wait for, so no task either."""
        began_ns = time.monotonic_ns()
        try:
            end = run_job_here(job, bytes(lease.payload), ctx)
        except BaseException as error:
            end = defect(error)
        ran_us = (time.monotonic_ns() - began_ns) // 1000
        if end.failure is not None:
            self._hooks.failed(ctx, ctx.error)
        self._ended_run(lease, end, ran_us, ctx)

    def _run_in_turn(self, job: Job[..., Any], lease: Lease, facts: RunFacts) -> None:
        """A plain function with a time limit: one a turn of the loop, so that we hear orders."""
        if not self._timed:
            self._loop.call_soon(self._next_turn)
        self._timed[lease.job] = job, lease, facts

    def _next_turn(self) -> None:
        if self._timed:
            job, lease, facts = self._timed.pop(next(iter(self._timed)))
            self._run_inline(job, lease, Ctx(facts, self))
        if self._timed:
            self._loop.call_soon(self._next_turn)

    async def _run(self, job: Job[..., Any], lease: Lease, ctx: Ctx, began_ns: int) -> None:
        if self._limits is not None:
            confine.allow_processor_time(self._limits)
        try:
            end = await run_job(job, bytes(lease.payload), ctx)
        except asyncio.CancelledError:
            end = Outcome(OutcomeKind.CANCELLED if ctx.cancelled() else OutcomeKind.RETURNED)
        except BaseException as error:  # a defect of ours must not lose the job
            end = defect(error)
        ran_us = (time.monotonic_ns() - began_ns) // 1000
        if end.failure is not None:
            await self._tell_failure(ctx)
        if ctx.thread is not None and not ctx.thread.is_over:
            self._interrupt(ctx.thread)
        task = asyncio.current_task()
        if task in self._given_up:  # another run of the same job may be here already
            self._given_up.discard(task)
            return
        del self._runs[lease.job]
        self._ended_run(lease, end, ran_us, ctx)

    def _ended_run(self, lease: Lease, end: Outcome, ran_us: int, ctx: Ctx) -> None:
        self._said.end(ctx)
        report = report_of(lease, end, ran_us)
        if (follow_ups := ctx.take_follow_ups()) is not None:
            with_follow_ups(report, follow_ups, lease.traceparent)
        self._ended.append(report)
        self._flush_soon()

    async def _tell_failure(self, ctx: Ctx) -> None:
        """A process of a job's own may end with it: there its hooks have a moment first."""
        called = self._hooks.failed(ctx, ctx.error)
        if called is not None and self._limits is not None:
            with suppress(asyncio.CancelledError):  # given up meanwhile: whoever did so knows
                await asyncio.wait([asyncio.wrap_future(called)], timeout=HOOK_SECONDS)

    # -- threads that do not stop ------------------------------------------------------------

    def _interrupt(self, thread: ThreadRun) -> None:
        """Its job has ended without it."""
        thread.interrupt(TimeLimitPassed)
        self._loop.call_later(INTERRUPTION_SECONDS, self._count_lost, thread)

    def _count_lost(self, thread: ThreadRun) -> None:
        self._lost_threads = {one for one in (*self._lost_threads, thread) if not one.is_over}
        if len(self._lost_threads) * 5 >= self._threads and self._pipe is not None:
            self._pipe.send(RunnerMessage(stuck=True))

    # -- words -------------------------------------------------------------------------------

    def progress(self, job_id: str, progress: bytes) -> None:
        """Called by handlers, from any thread; only the last word of each job is sent.

        ValueError for what is no JSON: it must not come into a frame with others' words.
        """
        self._progress[job_id] = parsed(progress)
        self._loop.call_soon_threadsafe(self._flush_soon)

    def checkpoint(self, job_id: str, epoch: int, number: int, state: bytes) -> Future[None]:
        """Called by handlers, from any thread; the keeper answers when the state is safe.

        CheckpointRefused for a state that is no JSON, or longer than a frame.
        """
        saved = self._pending_checkpoints.ask(checkpoint(job_id, Epoch(epoch), number, state))
        self._loop.call_soon_threadsafe(self._flush_soon)
        return saved

    def log(self, ctx: Ctx, level: int, line: str, logger: str = "") -> None:
        """Called by handlers, from any thread."""
        if self._lines.tell(ctx, level, line, logger):
            self._loop.call_soon_threadsafe(self._tell_dropped_later)
        if self._said.add(ctx, level, line):
            self._loop.call_soon_threadsafe(self._flush_lines_later)

    def _flush_lines_later(self) -> None:
        self._loop.call_later(LINES_SECONDS, self._flush_soon)

    def _tell_dropped_later(self) -> None:
        self._loop.call_later(DROPPED_SECONDS, self._lines.tell_dropped)

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        if (lines := self._said.take()) and self._pipe is not None:
            self._pipe.send(RunnerMessage(lines=lines))
        ended, self._ended = self._ended, []
        news, self._progress = self._progress, {}
        progress = [Progress(job=job, progress=text) for job, text in news.items()]
        asked = self._pending_checkpoints.take()
        if self._pipe is not None and (ended or progress or asked):
            for message in in_frames(ended, progress, asked):
                self._pipe.send_text(words_text(message))


def _state(checkpoint: Raw) -> bytes | None:
    text = bytes(checkpoint)
    return None if text == b"null" else text


async def _main(end: socket.socket, duty: RunnerSetup, options: LogOptions) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(duty.threads, thread_name_prefix="job"))
    app: Any = App.load(duty.target)
    tune_gc()
    if duty.limits is not None:
        confine.apply(duty.limits)
    app.hooks.worker_started()
    await Runner(app, duty.threads, duty.limits, options).run(end)
    app.hooks.worker_stops()


def main() -> None:
    """`python -m fairway.worker.runner PIPE PINGS`; by a keeper only. It is a spare at first."""
    die_with_parent(signal.SIGKILL)  # belt and braces: the pipe's end says the same soon
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the keeper's to answer
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    outlive_readers()  # a job that prints must not fail for want of somebody who reads
    confine.die_before_the_keeper()
    end, pings = (socket.socket(fileno=int(one)) for one in sys.argv[1:3])
    for one in (end, pings):
        one.set_inheritable(False)  # what a job starts must not hold its runner's line
    run = _loop_runner()
    confine.name_process(SPARE_NAME)
    duty = first_word(end)
    if duty is None:
        return
    reaper.stand_above([end, pings])
    options = LogOptions.of(os.environ)
    write_unclaimed(JsonLines() if options.is_json else TextLines())
    hear_logging(options.level)
    confine.name_process(RUNNER_NAME)
    if duty.limits is None:  # a job by itself may hold the interpreter for as long as it likes
        answer_pings(pings)
    try:
        run(_main(end, duty, options))
    except LoadError as error:
        sys.exit(f"fairway: {error}")


def _loop_runner() -> Callable[[Coroutine[Any, Any, None]], None]:
    """uvloop's where it is installed. An import that fails in a user's app is not about that."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


if __name__ == "__main__":
    main()
