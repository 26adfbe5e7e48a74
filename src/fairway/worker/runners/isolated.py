"""Jobs that have a process to themselves: started, watched, and ended from outside when need be.

A runner is kept warm between jobs with the same limits. It is killed, with everything it started,
when its job passed a limit, was cancelled and did not stop, spends processor time without a sign of
progress, or left something running. What a run may do is judged in `core/run/process_limits.py`. A
job type whose runs keep killing their process gets a pause before the next, which grows.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from fairway.core.backoff import backoff_seconds
from fairway.core.errors import InvalidRequest
from fairway.core.run.outcome import Outcome
from fairway.core.run.process_limits import (
    UNLIMITED,
    RunLimits,
    Usage,
    Verdict,
    Watched,
    over_limit,
    runaway_after_ms,
    verdict,
)
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Lease
from fairway.worker.exchange import synthetic_outcomes
from fairway.worker.limits import usage
from fairway.worker.limits.enforcement_level import EnforcementLevel
from fairway.worker.pipe.pipe import Declared, KeeperMessage, RunnerMessage, RunReport
from fairway.worker.runners.runner_process import Death, Listener, RunnerProcess
from fairway.worker.runners.start_failures import HAND_BACK_SECONDS, pause_seconds
from fairway.worker.runners.time_limits import limit_of

log = logger("fleet")

PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 2.0
LOOK_SECONDS = 0.25
IDLE_LOOK_SECONDS = 1.0
STOPPED_LOOKS_MAX = 120  # a process that was stopped by a signal for 30 s is not waited for
WARM_MAX = 4  # runners that wait for a job


class IsolatedRun:
    """One job in a process of its own, from lease to end."""

    def __init__(self, lease: Lease, declared: Declared) -> None:
        self.lease = lease
        self.declared = declared
        self.runner: RunnerProcess | None = None  # from the moment it was handed over
        self.began = 0.0
        self.cancelled_at: float | None = None
        self.cpu_before_ms = 0  # of a warm runner: what earlier jobs used
        self.cpu_at_word_ms = 0  # when it last gave a sign of progress
        self.has_spoken = False  # since the last look
        self.verdict: Verdict | None = None
        self.stopped_looks = 0  # in a row at which its process was stopped by a signal

    @property
    def ran_us(self) -> int:
        return round((time.monotonic() - self.began) * 1e6) if self.began else 0

    def watched(self, used: Usage, now: float) -> Watched:
        timeout_ms = limit_of(self.lease, self.declared)
        asked = self.cancelled_at
        return Watched(
            ran_ms=round((now - self.began) * 1000),
            usage=used._replace(cpu_ms=used.cpu_ms - self.cpu_before_ms),
            limits=(self.runner.limits if self.runner else None) or UNLIMITED,
            timeout_ms=timeout_ms,
            cancelled_ms=None if asked is None else round((now - asked) * 1000),
            cancel_grace_ms=self.declared.cancel_grace_ms,
            idle_cpu_ms=used.cpu_ms - self.cpu_at_word_ms,
            runaway_cpu_ms=runaway_after_ms(self.declared.runaway_after_ms, timeout_ms),
        )


class IsolatedRuns:
    def __init__(
        self,
        target: str,
        enforcement: EnforcementLevel,
        ceiling: RunLimits,
        on_runner_message: Callable[[RunnerMessage], None],
        on_end: Callable[[Lease, Outcome], None],
        *,
        ready: Callable[[RunnerProcess], Awaitable[list[Declared]]],
        cannot_start: Callable[[], None],
    ) -> None:
        self._ready = ready  # starts a runner
        self._cannot_start = cannot_start  # is told of every failure
        self._target = target
        self._enforcement = enforcement
        self._ceiling = ceiling
        self._on_runner_message = on_runner_message
        self._on_end = on_end
        self._runs: dict[str, IsolatedRun] = {}
        self._runners: set[RunnerProcess] = set()
        self._warm: list[RunnerProcess] = []
        self._deaths: dict[str, int] = defaultdict(int)  # job type → in a row
        self._died = 0  # with a job, since somebody asked
        self._listener = Listener(self._receive, self._after_death)
        self._stopping = False

    def __contains__(self, job: str) -> bool:
        return job in self._runs

    def runner_of(self, job: str) -> RunnerProcess | None:
        """Who runs it now."""
        run = self._runs.get(job)
        return run.runner if run else None

    @property
    def has_begun(self) -> bool:
        """Whether any job is in a runner."""
        return any(run.runner is not None for run in self._runs.values())

    @property
    def pids(self) -> set[int]:
        return {runner.pid for runner in self._runners if runner.pid is not None}

    def take_deaths(self) -> int:
        """Runners that died with a job since the last time."""
        died, self._died = self._died, 0
        return died

    def run(self, lease: Lease, declared: Declared) -> Coroutine[Any, Any, None]:
        """It is ours from now on; the coroutine hands it to a runner. Its end comes later."""
        run = self._runs[lease.job] = IsolatedRun(lease, declared)
        return self._run(run)

    async def _run(self, run: IsolatedRun) -> None:
        lease, deaths = run.lease, self._deaths.get(run.lease.type, 0)
        if deaths:
            await pause(backoff_seconds(PAUSE_FIRST_SECONDS, deaths - 1, PAUSE_MAX_SECONDS))
        if self._runs.get(lease.job) is run:
            runner = await self._runner_for(run)
            if runner is not None:
                self._hand_over(run, runner)

    async def _runner_for(self, run: IsolatedRun) -> RunnerProcess | None:
        limits = run.declared.limits.within(self._ceiling)
        for runner in self._warm:
            if runner.limits == limits:
                self._warm.remove(runner)
                return runner
        return await self._started(run, limits)

    async def _started(self, run: IsolatedRun, limits: RunLimits) -> RunnerProcess | None:
        """A new runner. Where none can be started for a while, the job goes back."""
        hand_back_at, failures = time.monotonic() + HAND_BACK_SECONDS, 0
        while self._runs.get(run.lease.job) is run:
            try:
                return await self._start(run, limits)
            except InvalidRequest:
                self._deaths[run.lease.type] += 1
                self._forget(run, synthetic_outcomes.crashed("lost while it loaded the app"))
            except OSError as error:
                failures += 1
                log.warning("no process for a job yet", job=run.lease.job, error=str(error))
                self._cannot_start()
                if time.monotonic() >= hand_back_at:
                    self._forget(run, synthetic_outcomes.returned())
                await pause(pause_seconds(failures))
        return None

    async def _start(self, run: IsolatedRun, limits: RunLimits) -> RunnerProcess:
        runner = RunnerProcess(
            self._target, 1, self._listener, limits, self._enforcement.room_for(limits)
        )
        self._runners.add(runner)
        runner.jobs[run.lease.job] = run.lease.epoch
        try:
            await self._ready(runner)
        except OSError:
            self._runners.discard(runner)
            raise
        if runner not in self._runners:  # buried already: nobody would hear of its job
            raise InvalidRequest("The runner died as soon as it had loaded the app.")
        return runner

    def _hand_over(self, run: IsolatedRun, runner: RunnerProcess) -> None:
        if self._runs.get(run.lease.job) is not run:  # revoked or cancelled before it began
            runner.jobs.clear()
            self._keep_warm(runner)
            return
        run.runner = runner
        run.began = time.monotonic()
        runner.note_memory_kills()
        if runner.pid is not None:
            run.cpu_before_ms = run.cpu_at_word_ms = usage.usage_below(runner.pid).cpu_ms
        runner.run([run.lease])

    # -- what others ask ---------------------------------------------------------------------

    def cancel(self, job: str) -> None:
        """Ask it to stop; one that has not begun never does."""
        run = self._runs[job]
        if run.runner is None:
            self._forget(run, synthetic_outcomes.cancelled())
        elif run.cancelled_at is None:
            run.cancelled_at = time.monotonic()
            run.runner.send(KeeperMessage(cancel=[job]))

    def give_up(self, job: str) -> None:
        """Nobody waits for it any more: stop it without a report."""
        run = self._runs.pop(job, None)
        if run is not None and run.runner is not None:
            run.runner.jobs.pop(job, None)
            run.runner.kill()

    def drain(self) -> None:
        """Let those that run know; those that have not begun go back as they came."""
        for run in list(self._runs.values()):
            if run.runner is None:
                self._forget(run, synthetic_outcomes.returned())
            else:
                run.runner.send(KeeperMessage(drain=True))

    def kill_all(self) -> None:
        self._stopping = True
        self._runs.clear()
        for runner in self._runners:
            runner.kill()

    async def stop(self) -> None:
        self._stopping = True
        await asyncio.gather(*(runner.stop() for runner in list(self._runners)))

    # -- the watch ---------------------------------------------------------------------------

    async def watch(self) -> None:
        """Look at every run, a few times a second while there are any."""
        while True:
            now = time.monotonic()
            for run in list(self._runs.values()):
                if run.runner is not None and run.verdict is None:
                    try:
                        self._look(run, run.runner, now)
                    except Exception as error:  # the others are looked at all the same
                        log.error("look at a run failed", job=run.lease.job, error=repr(error))
            await pause(LOOK_SECONDS if self._runs else IDLE_LOOK_SECONDS)

    def _look(self, run: IsolatedRun, runner: RunnerProcess, now: float) -> None:
        used = usage.usage_below(runner.pid) if runner.pid else Usage()
        memory_max = runner.limits.memory_bytes if runner.limits else None
        if memory_max is not None and runner.pid and used.memory_bytes > memory_max:
            used = used._replace(memory_bytes=usage.proportional_bytes_below(runner.pid))
        if run.has_spoken:
            run.has_spoken, run.cpu_at_word_ms = False, used.cpu_ms
        run.verdict = verdict(run.watched(used, now))
        if run.verdict is not None:
            log.warning("run killed", job=run.lease.job, type=run.lease.type, why=run.verdict.type)
            runner.kill()
        run.stopped_looks = run.stopped_looks + 1 if runner.is_stopped else 0
        if run.stopped_looks == STOPPED_LOOKS_MAX:
            log.error("runner is stopped; killing it", job=run.lease.job, pid=runner.pid)
            runner.kill(f"was stopped for {STOPPED_LOOKS_MAX * LOOK_SECONDS:.0f} s")

    # -- what runners say and how they end ---------------------------------------------------

    def _receive(self, runner: RunnerProcess, message: RunnerMessage) -> None:
        for job in [one.job for one in message.progress] + [one.job for one in message.checkpoints]:
            if job in self._runs:
                self._runs[job].has_spoken = True
        ended = [one for one in message.ended if self._is_current(runner, one)]
        told = [self._explained(runner, one) for one in ended]
        if message.progress or message.checkpoints or message.lines or told:
            self._on_runner_message(
                RunnerMessage(
                    progress=message.progress,
                    checkpoints=message.checkpoints,
                    lines=message.lines,
                    ended=told,
                )
            )
        for one in ended:
            self._after(runner, self._runs.pop(one.job), one)

    def _is_current(self, runner: RunnerProcess, ended: RunReport) -> bool:
        run = self._runs.get(ended.job)
        return run is not None and run.runner is runner and run.lease.epoch == ended.epoch

    def _explained(self, runner: RunnerProcess, ended: RunReport) -> RunReport:
        """A handler that failed when it was refused a process, say, failed for want of it."""
        if ended.failure == "app_error" and _met_a_limit(runner):
            return msgspec.structs.replace(ended, failure="resource")
        return ended

    def _after(self, runner: RunnerProcess, run: IsolatedRun, ended: RunReport) -> None:
        """A clean runner waits for the next job; one that may still do something is killed."""
        self._deaths.pop(run.lease.type, None)
        left = runner.kill_strays()
        if left:
            log.warning("job left processes behind", job=ended.job, killed=left)
        is_harmless = ended.kind in ("succeeded", "snoozed") or ended.failure == "app_error"
        if is_harmless and not left and run.cancelled_at is None and not _met_a_limit(runner):
            self._keep_warm(runner)
        else:
            runner.kill()

    def _keep_warm(self, runner: RunnerProcess) -> None:
        if len(self._warm) < WARM_MAX and not self._stopping:
            self._warm.append(runner)
        else:
            runner.kill()

    def _after_death(self, runner: RunnerProcess, death: Death) -> None:
        self._runners.discard(runner)
        if runner in self._warm:
            self._warm.remove(runner)
        if not runner.declared.done():
            runner.declared.set_exception(InvalidRequest(f"The runner {death.how}."))
        if self._stopping:
            return
        for run in [one for one in self._runs.values() if one.runner is runner]:
            self._deaths[run.lease.type] += 1
            self._died += 1
            self._forget(run, _end_of(run, death))

    def _forget(self, run: IsolatedRun, end: Outcome) -> None:
        if self._runs.get(run.lease.job) is not run:
            return  # given up meanwhile: nobody may hear of it
        del self._runs[run.lease.job]
        log.info("run ended from outside", job=run.lease.job, kind=end.kind, failure=end.failure)
        self._on_end(run.lease, end)


def _met_a_limit(runner: RunnerProcess) -> bool:
    room = runner.room
    return room is not None and bool(room.refused_processes() or room.kills_for_memory())


def _end_of(run: IsolatedRun, death: Death) -> Outcome:
    """Why the process died: we killed it, it passed a limit, or it crashed."""
    if run.verdict is not None:
        return synthetic_outcomes.judged(run.verdict, run.ran_us)
    room = run.runner.room if run.runner else None
    if room is not None and room.kills_for_memory() > 0:
        return synthetic_outcomes.judged(
            over_limit("The kernel killed it: its memory was used up."), run.ran_us
        )
    if death.status == -signal.SIGXCPU:
        return synthetic_outcomes.judged(over_limit("Its processor time was used up."), run.ran_us)
    if run.cancelled_at is not None:
        return synthetic_outcomes.cancelled(run.ran_us)
    return synthetic_outcomes.crashed(death.how, 0 if death.is_for_memory else run.ran_us)
