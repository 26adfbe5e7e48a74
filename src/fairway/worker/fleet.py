"""The runners of one worker: which process runs which job.

Job types of the modes `loop` and `thread` share one runner; a job of the mode `process` gets a
runner of its own, kept warm between jobs and killed with everything it started when its time is
up. A runner that dies is replaced after a pause that grows while runners keep dying young. A job
that was lost with its runner before is tried apart from others, so that a poisonous job takes its
neighbours with it twice at most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from fairway.core.errors import InvalidRequest
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Lease, TypeTerms
from fairway.worker.pipe import Declared, Ended, Words
from fairway.worker.runners import RunnerProcess

log = logger("fleet")

START_SECONDS_MAX = 60.0
PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 10.0
YOUNG_SECONDS = 30.0
KILL_GRACE_SECONDS = 1.0  # past its time limit before a process is killed from outside
SHARED_DELIVERIES = 2  # a job that lost its runner so often runs apart: it may be the one to blame
SUSPECTS_MAX = 4  # such jobs at a time
SUSPECT_LOOK_SECONDS = 0.05


class Fleet:
    def __init__(
        self,
        target: str,
        slots: int,
        on_words: Callable[[Words], None],
        on_death: Callable[[Iterable[str], str], None],
    ) -> None:
        self._target = target
        self._slots = slots
        self._on_words = on_words
        self._on_death = on_death
        self._declared: dict[str, Declared] = {}
        self._shared: RunnerProcess | None = None  # for loop and thread
        self._alone: set[RunnerProcess] = set()  # one job each
        self._place: dict[str, RunnerProcess] = {}
        self._suspects: dict[str, Lease] = {}  # wait to run apart
        self._apart = asyncio.Semaphore(SUSPECTS_MAX)
        self._waiting: list[Lease] = []  # arrived while the shared runner was being replaced
        self._tasks: set[asyncio.Task[None]] = set()
        self._deaths_in_row = 0
        self._born = 0.0
        self._stopping = False

    @property
    def types(self) -> list[TypeTerms]:
        return [
            TypeTerms(name=one.name, attempts_max=one.attempts_max)
            for one in self._declared.values()
        ]

    @property
    def type_names(self) -> list[str]:
        return sorted(self._declared)

    async def start(self) -> None:
        await self._start_shared()

    def run(self, leases: list[Lease]) -> None:
        together = []
        for lease in leases:
            declared = self._declared.get(lease.type)
            if declared is not None and declared.mode == "process":
                self._spawn(self._run_alone(lease, declared))
            elif declared is not None and lease.delivery > SHARED_DELIVERIES:
                self._suspects[lease.job] = lease
                self._spawn(self._run_apart(lease, declared))
            else:
                together.append(lease)
        if not together:
            return
        if self._shared is None:
            self._waiting += together
        else:
            self._give(self._shared, together)

    def cancel(self, jobs: list[str]) -> None:
        for job in jobs:
            if job in self._place:
                self._place[job].cancel([job])
            elif job in self._suspects:
                epoch = self._suspects.pop(job).epoch
                ended = Ended(job=job, epoch=epoch, kind="cancelled", ran_us=0)
                self._on_words(Words(ended=[ended]))

    def give_up(self, jobs: list[str]) -> None:
        """Nobody waits for these any more: stop them without a report."""
        for job in jobs:
            self._suspects.pop(job, None)
            runner = self._place.pop(job, None)
            if runner is not None and runner in self._alone:
                runner.kill()
            elif runner is not None:
                runner.give_up([job])

    def kill_all(self) -> None:
        self._stopping = True
        self._place.clear()
        for runner in (self._shared, *self._alone):
            if runner is not None:
                runner.jobs.clear()
                runner.kill()

    async def stop(self) -> None:
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for runner in [self._shared, *self._alone]:
            if runner is not None:
                await runner.stop()

    # -- the shared runner -------------------------------------------------------------------

    async def _start_shared(self) -> None:
        runner = RunnerProcess(self._target, self._slots, self._hear, self._bury)
        self._born = time.monotonic()
        declared = await self._ready(runner)
        self._declared = {one.name: one for one in declared}
        self._shared = runner
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._give(runner, waiting)

    async def _ready(self, runner: RunnerProcess) -> list[Declared]:
        await runner.start()
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                return await runner.declared
        except TimeoutError:
            runner.kill()
            raise InvalidRequest(
                f"{self._target} did not load within {START_SECONDS_MAX:.0f} s."
            ) from None

    async def _replace_shared(self) -> None:
        """Until one lives: a runner that dies while it loads must be followed by another, too."""
        while self._shared is None:
            young = time.monotonic() - self._born < YOUNG_SECONDS
            self._deaths_in_row = min(self._deaths_in_row + 1, 10) if young else 1
            seconds = min(PAUSE_FIRST_SECONDS * 2 ** (self._deaths_in_row - 1), PAUSE_MAX_SECONDS)
            await pause(seconds)
            try:
                await self._start_shared()
            except InvalidRequest as error:
                log.error("no runner yet", error=error.message)

    def _give(self, runner: RunnerProcess, leases: list[Lease]) -> None:
        for lease in leases:
            self._place[lease.job] = runner
        runner.run(leases)

    # -- runners of one job ------------------------------------------------------------------

    async def _run_alone(self, lease: Lease, declared: Declared) -> None:
        runner = next((one for one in self._alone if not one.jobs), None)
        if runner is None:
            runner = RunnerProcess(self._target, 1, self._hear, self._bury)
            self._alone.add(runner)
            runner.jobs.add(lease.job)  # taken, before the first await lets others look
            try:
                await self._ready(runner)
            except InvalidRequest:
                self._on_death([lease.job], "lost while it loaded the app")
                return
        self._give(runner, [lease])
        timeout_ms = lease.timeout_ms or declared.timeout_ms
        if timeout_ms is not None:
            await pause(timeout_ms / 1000 + KILL_GRACE_SECONDS)
            if lease.job in runner.jobs:
                runner.kill()

    async def _run_apart(self, lease: Lease, declared: Declared) -> None:
        async with self._apart:
            if self._suspects.pop(lease.job, None) is lease:
                await self._run_alone(lease, declared)
            while lease.job in self._place:
                await pause(SUSPECT_LOOK_SECONDS)

    # -- what runners say and how they end ---------------------------------------------------

    def _hear(self, runner: RunnerProcess, words: Words) -> None:
        for ended in words.ended:
            self._place.pop(ended.job, None)
        self._on_words(words)

    def _bury(self, runner: RunnerProcess, how: str) -> None:
        jobs = [job for job in runner.jobs if self._place.pop(job, None) is not None]
        if not runner.declared.done():
            message = f"{self._target} could not be loaded: the runner {how}; see its words above."
            runner.declared.set_exception(InvalidRequest(message))
        self._alone.discard(runner)
        if self._stopping:
            return
        if jobs:
            log.warning("runner died", how=how, jobs=len(jobs))
            self._on_death(jobs, how)
        if runner is self._shared:
            self._shared = None
            self._spawn(self._replace_shared())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("fleet task failed", error=repr(error))
