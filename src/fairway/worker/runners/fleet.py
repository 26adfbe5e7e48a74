"""The runners of one worker: which process runs which job.

Job types of the modes `loop` and `thread` share one runner; a job of the mode `process` gets one of
its own (`isolated.py`). A runner that dies is replaced after a pause that grows while runners keep
dying young. A shared runner that does not answer is found out (`watchdog.py`); one that lost too
many threads to jobs that would not stop is replaced, and ends when its jobs have. Where no process
can be started for long, whoever holds the leases is told. A job that was lost with its runner is
tried apart from others: at once when few were lost together, else after the second time
(`suspects.py`); so a poisonous job takes its neighbours with it twice at most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from msgspec import Raw

from fairway.core.backoff import backoff_seconds
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.core.run.outcome import Outcome
from fairway.core.run.process_limits import RunLimits
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.wire.bounds import RECYCLED_MAX
from fairway.wire.exchange import Lease
from fairway.worker.exchange import synthetic_outcomes
from fairway.worker.limits.enforcement_level import EnforcementLevel
from fairway.worker.limits.usage import Orphans
from fairway.worker.pipe.pipe import (
    CheckpointAnswer,
    DeadJob,
    Declared,
    KeeperMessage,
    RunnerMessage,
)
from fairway.worker.runners.isolated import IsolatedRuns
from fairway.worker.runners.runner_process import Death, Listener, RunnerProcess
from fairway.worker.runners.spares import Spares
from fairway.worker.runners.start_failures import AppNotLoaded, StartFailures, pause_seconds
from fairway.worker.runners.suspects import SHARED_DELIVERIES, Suspects
from fairway.worker.runners.watchdog import Watchdog

log = logger("fleet")

START_SECONDS_MAX = 60.0
PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 10.0
YOUNG_SECONDS = 30.0
LOOK_SECONDS = 1.0


class FleetPorts(NamedTuple):
    """Whoever holds the leases: what runs are for, and who hears how they go."""

    on_runner_message: Callable[[RunnerMessage], None]
    on_end: Callable[[Lease, Outcome], None]
    running: Callable[[], Mapping[str, Lease]]  # what it holds
    on_quiet: Callable[[], None]  # whether the shared runner answers has changed
    on_unable: Callable[[], None]  # nothing can be run here any more


class Fleet:
    def __init__(
        self,
        target: str,
        slots: int,
        enforcement: EnforcementLevel,
        ceiling: RunLimits,
        ports: FleetPorts,
        orphans: Orphans | None,
    ) -> None:
        on_runner_message, on_end = ports.on_runner_message, ports.on_end
        self._ports = ports
        self._orphans = orphans  # killed, when this process has no other children
        self._target = target
        self._threads = slots + slots // 4 + 1  # some may be lost before the runner is replaced
        self._on_runner_message = on_runner_message
        self._on_end = on_end
        self._declared: dict[str, Declared] = {}
        self._isolated_types: set[str] = set()  # of the mode `process`
        self._listener = Listener(self._receive, self._after_death)
        self._shared: RunnerProcess | None = None  # for loop and thread
        self._retired: set[RunnerProcess] = set()  # finish what they have
        self._living: set[RunnerProcess] = set()  # those two, and one that starts
        self._spares = Spares()
        self._isolated = IsolatedRuns(
            target,
            enforcement,
            ceiling,
            on_runner_message,
            on_end,
            ready=self._ready,
            cannot_start=self._could_not_start,
        )
        self._starts = StartFailures()
        self._suspects = Suspects(self._isolated, on_end)
        self._waiting: dict[str, Lease] = {}  # arrived while the shared runner was being replaced
        self._watching = Watchdog(on_end)
        self._tasks: set[asyncio.Task[None]] = set()
        self._recycled: dict[str, int] = {}  # why processes were replaced, since somebody asked
        self._deaths_in_row = 0
        self._born = 0.0
        self._stopping = False
        self.is_quiet = False  # the shared runner does not answer: nothing new should come

    @property
    def types(self) -> list[Raw]:
        """`TypeTerms`, as the runner said them."""
        return [one.terms for one in self._declared.values()]

    @property
    def type_names(self) -> list[str]:
        return sorted(self._declared)

    def take_recycled(self) -> dict[str, int]:
        """Why processes were replaced since the last time, and how often."""
        self._count("apart", self._isolated.take_deaths())
        found, self._recycled = self._recycled, {}
        return found

    def _count(self, why: str, count: int) -> None:
        if count:
            self._recycled[why] = min(self._recycled.get(why, 0) + count, RECYCLED_MAX)

    async def start(self) -> None:
        """Raises InvalidRequest for an app that does not load, Unavailable without a process."""
        failures = 0
        while self._shared is None:
            try:
                await self._start_shared()
            except OSError as error:
                failures += 1
                log.error("no runner yet", error=str(error))
                self._starts.failed(time.monotonic())
                if self._starts.are_hopeless(time.monotonic()):
                    raise Unavailable(f"No process can be started here: {error}") from error
                await pause(pause_seconds(failures))
        self._spawn(self._isolated.watch())
        self._spawn(self._watch())

    def run(self, leases: list[Lease]) -> None:
        together = leases if self._are_plain(leases) else self._split_off_isolated(leases)
        if not together:
            return
        if self._shared is None:
            self._waiting.update((lease.job, lease) for lease in together)
        else:
            self._shared.run(together)

    def _are_plain(self, leases: list[Lease]) -> bool:
        """Whether all of them surely share a runner: a quick look, for there are many."""
        if self._suspects.has_blamed:
            return False
        isolated = self._isolated_types
        special = [
            one
            for one in leases
            if one.run_mode is not None or one.delivery > SHARED_DELIVERIES or one.type in isolated
        ]
        return not special

    def _split_off_isolated(self, leases: list[Lease]) -> list[Lease]:
        """Those that run together; each of the others begins on its own."""
        together = []
        for lease in leases:
            declared = self._declared.get(lease.type)
            if declared is not None and _mode_of(lease, declared) == "process":
                self._spawn(self._isolated.run(lease, declared))
            elif declared is not None and lease in self._suspects:
                self._spawn(self._suspects.run(lease, declared))
            else:
                together.append(lease)
        return together

    def answer(self, saved: CheckpointAnswer) -> None:
        """Tell a run what became of its checkpoint; one that is gone needs no answer."""
        runner = self._isolated.runner_of(saved.job) or self._runner_of(saved.job)
        if runner is not None:
            runner.send(KeeperMessage(saved=[saved]))

    def tell_dead(self, dead: list[DeadJob]) -> None:
        """For hooks, in the runner that has all jobs but those by themselves."""
        if dead and self._shared is not None:
            self._shared.send(KeeperMessage(dead=dead))

    def cancel(self, jobs: list[str]) -> None:
        """Ask them to stop; those that have not begun never do."""
        for job in jobs:
            if job in self._isolated:
                self._isolated.cancel(job)
            elif runner := self._runner_of(job):
                runner.send(KeeperMessage(cancel=[job]))
            elif lease := self._not_begun(job):
                self._on_end(lease, synthetic_outcomes.cancelled())

    def give_up(self, jobs: list[str]) -> None:
        """Nobody waits for these any more: stop them without a report."""
        for job in jobs:
            self._not_begun(job)
            if job in self._isolated:
                self._isolated.give_up(job)
            elif runner := self._runner_of(job):
                runner.give_up([job])

    def drain(self) -> None:
        """Handlers that look will checkpoint and hand back; what has not begun goes at once."""
        self._isolated.drain()
        for job in [*self._suspects, *self._waiting]:
            if lease := self._not_begun(job):
                self._on_end(lease, synthetic_outcomes.returned())
        for runner in self._sharing():
            runner.send(KeeperMessage(drain=True))

    def kill_all(self) -> None:
        self._stopping = True
        self._isolated.kill_all()
        for runner in self._sharing():
            runner.kill()

    async def stop(self) -> None:
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        sharing = [runner.stop() for runner in self._living]
        await asyncio.gather(self._spares.stop(), self._isolated.stop(), *sharing)

    def _sharing(self) -> list[RunnerProcess]:
        return [*self._retired, *([self._shared] if self._shared else [])]

    def _runner_of(self, job: str) -> RunnerProcess | None:
        return next((runner for runner in self._sharing() if job in runner.jobs), None)

    def _not_begun(self, job: str) -> Lease | None:
        return self._suspects.take_out(job) or self._waiting.pop(job, None)

    # -- the shared runner -------------------------------------------------------------------

    async def _start_shared(self) -> None:
        runner = RunnerProcess(self._target, self._threads, self._listener)
        self._living.add(runner)
        self._born = time.monotonic()
        try:
            declared = await self._ready(runner)
        except OSError:
            self._living.discard(runner)
            raise
        if runner not in self._living:  # buried already: nobody would ever replace it
            raise InvalidRequest(f"{self._target} died as soon as it had loaded; see the log.")
        self._declared = {one.name: one for one in declared}
        self._isolated_types = {one.name for one in declared if one.mode == "process"}
        self._shared = runner
        waiting, self._waiting = self._waiting, {}
        if waiting:
            runner.run(list(waiting.values()))

    async def _ready(self, runner: RunnerProcess) -> list[Declared]:
        await runner.start(self._spares)
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                declared = await runner.declared
                self._starts.succeeded()
                return declared
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
            if self._deaths_in_row > SHARED_DELIVERIES:  # else one bad job, and spares for it
                doublings = self._deaths_in_row - SHARED_DELIVERIES - 1
                await pause(backoff_seconds(PAUSE_FIRST_SECONDS, doublings, PAUSE_MAX_SECONDS))
            try:
                await self._start_shared()
            except (InvalidRequest, OSError) as error:
                log.error("no runner yet", error=str(error))
                self._could_not_start()

    def _could_not_start(self) -> None:
        now = time.monotonic()
        self._starts.failed(now)
        runs_nothing = self._shared is None or not (self._shared.jobs or self._isolated.has_begun)
        if runs_nothing and self._starts.are_hopeless(now) and not self._stopping:
            self._ports.on_unable()

    def _retire(self, runner: RunnerProcess) -> None:
        """It takes nothing new; another does."""
        log.warning("runner lost threads to jobs that do not stop; replacing it", pid=runner.pid)
        self._count("stuck", 1)
        self._retired.add(runner)
        self._shared = None
        self._spawn(self._replace_shared())
        self._end_retired(runner)

    def _end_retired(self, runner: RunnerProcess) -> None:
        if runner in self._retired and not runner.jobs:
            runner.kill()

    # -- the watch ---------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            try:
                self._look()
            except Exception as error:  # without a watch, no limit of time would hold any more
                log.error("look at runners failed", error=repr(error))
            await pause(LOOK_SECONDS)

    def _look(self) -> None:
        sharing = self._sharing()
        self._watching.ask_overdue(sharing, self._ports.running(), self._declared, time.monotonic())
        self._watching.ping(sharing)
        self._tell_quiet()
        if self._orphans is not None:
            known = {runner.pid for runner in self._living if runner.pid is not None}
            self._orphans.kill(known | self._isolated.pids | self._spares.pids)

    def _tell_quiet(self) -> None:
        was_quiet = self.is_quiet
        self.is_quiet = self._shared is not None and self._shared.is_quiet
        if self.is_quiet != was_quiet:
            log.warning("runner is quiet" if self.is_quiet else "runner is quiet no more")
            self._ports.on_quiet()

    # -- what runners say and how they end ---------------------------------------------------

    def _receive(self, runner: RunnerProcess, message: RunnerMessage) -> None:
        self._on_runner_message(message)
        self._watching.heard(runner)
        if message.stuck and runner is self._shared and not self._stopping:
            self._retire(runner)
        elif self._retired:
            self._end_retired(runner)

    def _after_death(self, runner: RunnerProcess, death: Death) -> None:
        if not runner.declared.done():
            how = f"the runner {death.how}; see its words above."
            kind = AppNotLoaded if death.status > 0 else InvalidRequest  # who was killed may live
            runner.declared.set_exception(kind(f"{self._target} could not be loaded: {how}"))
        self._living.discard(runner)
        self._retired.discard(runner)
        self._watching.heard(runner)
        if self._stopping:
            return
        self._report_lost(runner, death)
        if runner is self._shared:
            self._count("died", 1)
            self._shared = None
            self._spawn(self._replace_shared())

    def _report_lost(self, runner: RunnerProcess, death: Death) -> None:
        """With jobs of one tenant it died by that tenant's doing, which is billed; of several,
        nobody knows whose it was, and none of them is: no time is said (decision 0054)."""
        held = self._ports.running()
        lost = [held[job] for job in runner.jobs if job in held]
        runner.jobs.clear()
        tenants = {lease.tenant for lease in lost} | runner.blamed
        is_theirs = len(tenants) == 1 and not death.is_for_memory
        if lost:
            log.warning("runner died", how=death.how, jobs=len(lost))
        self._suspects.lost(lost)
        for lease in lost:
            ran_us = runner.ran_us(lease.job) if is_theirs else 0
            self._on_end(lease, synthetic_outcomes.crashed(death.how, ran_us))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("fleet task failed", error=repr(error))


def _mode_of(lease: Lease, declared: Declared) -> str:
    """As the type says; else as the pool does, and only then by its function."""
    return declared.mode if declared.is_mode_chosen else lease.run_mode or declared.mode
