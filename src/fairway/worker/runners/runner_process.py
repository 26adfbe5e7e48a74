"""Runner processes as the keeper sees them: started, fed, listened to, replaced when they die."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, cast

from fairway.core.ids import Epoch
from fairway.core.run.process_limits import RunLimits
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Lease
from fairway.worker.limits import usage
from fairway.worker.limits.cgroups import Room
from fairway.worker.pipe.message_checks import checked_message
from fairway.worker.pipe.pings import Pings
from fairway.worker.pipe.pipe import (
    WORDS_BYTES_MAX,
    Declared,
    KeeperMessage,
    Pipe,
    PipeHandlers,
    RunLease,
    RunnerMessage,
    RunnerSetup,
)
from fairway.worker.runners.spares import Spares

log = logger("fleet")

REMOVE_TRIES = 40
REMOVE_PAUSE_SECONDS = 0.05


class Death(NamedTuple):
    """How a runner ended: its status, or the signal that ended it as a negative number."""

    status: int
    why: str = ""  # we ended it ourselves
    is_for_memory: bool = False  # the machine had none left; whose fault that was nobody knows

    @property
    def how(self) -> str:
        if self.why:
            return f"killed, because it {self.why},"
        if self.is_for_memory:
            return "killed by the kernel, because the machine's memory was used up,"
        if self.status < 0:
            return f"killed by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"


class Listener(NamedTuple):
    """Who hears what a runner says, and of its death, once."""

    on_runner_message: Callable[[RunnerProcess, RunnerMessage], None]
    on_death: Callable[[RunnerProcess, Death], None]


class RunnerProcess:
    """One runner; with limits, it holds itself to them, and a room holds it where there is one."""

    def __init__(
        self,
        target: str,
        threads: int,
        listener: Listener,
        limits: RunLimits | None = None,
        room: Room | None = None,
    ) -> None:
        self._duty = RunnerSetup(target=target, threads=threads, limits=limits)
        self._listener = listener
        self.limits = limits
        self.room = room
        self._process: asyncio.subprocess.Process | None = None
        self._pipe: Pipe[RunnerMessage] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._runner_pid = 0  # of the process that holds the user's code, once it has said so
        self._pings: Pings | None = None
        self._why_killed = ""
        self._is_garbled = False  # it said what no runner says: nothing more is heard of it
        self.declared: asyncio.Future[list[Declared]] = asyncio.get_running_loop().create_future()
        self.jobs: dict[str, Epoch] = {}  # job → the epoch of the lease under which it runs here
        self._began_us: dict[str, int] = {}  # job → when it was handed over
        self._memory_kills = 0  # of the kernel's, on this machine, at the last look
        self.blamed: set[str] = set()  # tenants for whose jobs it is killed, which are over by now

    @property
    def pid(self) -> int | None:
        """The root of its tree: the reaper above the runner."""
        return self._process.pid if self._process else None

    async def start(self, spares: Spares) -> None:
        """Raises OSError where that cannot be done now; then nothing is left of it."""
        try:
            self._process, end, pings = await spares.take()
            self._pings = Pings(pings)
            self.note_memory_kills()
            self._watch = asyncio.create_task(self._wait(), name=f"runner:{self._process.pid}")
            if self.room is not None:
                self.room.take_in(self._process.pid)
            hearing = PipeHandlers(self._receive, lambda: None, self._garbage, WORDS_BYTES_MAX)
            self._pipe = await Pipe.join(end, RunnerMessage, hearing)
        except OSError:
            self.declared.cancel()
            self.kill()
            if self._process is None:
                await self._leave_room()
            raise
        self._pipe.send(self._duty)

    # -- whether it hears --------------------------------------------------------------------

    def ping(self) -> None:
        """Ask for an answer; one that has not loaded its app yet is not asked."""
        if self._pings is not None and self._runner_pid:
            self._pings.look(usage.cpu_ms_of(self._runner_pid))
        self.note_memory_kills()

    def note_memory_kills(self) -> None:
        """Those before this were of others."""
        self._memory_kills = usage.memory_kills()

    @property
    def is_quiet(self) -> bool:
        return self._pings is not None and self._pings.is_quiet

    @property
    def is_deaf(self) -> bool:
        return self._pings is not None and self._pings.is_deaf

    @property
    def is_stopped(self) -> bool:
        return bool(self._runner_pid) and usage.is_stopped(self._runner_pid)

    # -- orders ------------------------------------------------------------------------------

    def run(self, leases: list[Lease]) -> None:
        self.jobs.update({lease.job: lease.epoch for lease in leases})
        now_us = time.monotonic_ns() // 1000
        self._began_us.update({lease.job: now_us for lease in leases})
        fetched = [lease for lease in leases if isinstance(lease, RunLease)]
        if fetched:
            leases = [lease for lease in leases if not isinstance(lease, RunLease)]
            self._run_fetched(fetched)
        if leases:
            # On the pipe, a lease as it came is one that begins without a checkpoint.
            self.send(KeeperMessage(leases=cast(list[RunLease], leases)))

    def _run_fetched(self, leases: list[RunLease]) -> None:
        """Each in a frame of its own, with what was fetched for it beside the text."""
        for lease in leases:
            bare, foreign = lease.apart()
            if self._pipe is not None:
                self._pipe.send_beside(KeeperMessage(leases=[bare]), foreign)

    def ran_us(self, job: str) -> int:
        """How long it has been here, by our own clock."""
        now_us = time.monotonic_ns() // 1000
        return max(now_us - self._began_us.get(job, now_us), 0)

    def give_up(self, jobs: list[str]) -> None:
        for job in jobs:
            self.jobs.pop(job, None)  # no word will come of how they ended
            self._began_us.pop(job, None)
        self.send(KeeperMessage(give_up=jobs))

    def send(self, orders: KeeperMessage) -> None:
        if self._pipe is not None:
            self._pipe.send(orders)

    def kill(self, why: str = "") -> None:
        """End the runner and everything it started, also what left its process group."""
        self._why_killed = self._why_killed or why
        if self._process is None:
            return
        usage.kill_tree(self._process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # when the runner itself is dead already
        if self.room is not None:
            self.room.kill()

    def kill_strays(self) -> int:
        """What a job started and left behind; answers how many there were."""
        if self._process is None:
            return 0
        return usage.kill_descendants(self._process.pid, but=self._runner_pid)

    async def stop(self) -> None:
        """Close the pipe; a runner that does not end by itself is killed."""
        if self._pipe is not None:
            self._pipe.close()
        if not self._runner_pid:  # it loads the app still, and hears nothing meanwhile
            self.kill()
        if self._watch is not None:
            try:
                async with asyncio.timeout(2):
                    await asyncio.shield(self._watch)
            except TimeoutError:
                self.kill()
                await self._watch

    def _receive(self, message: RunnerMessage) -> None:
        """User code shares its process: it may speak for its own jobs, and for no others."""
        if message.declared is not None and not self.declared.done():
            self._runner_pid = message.pid
            self.declared.set_result(message.declared)
        if self._is_garbled:
            return
        try:
            message = checked_message(message, self.jobs)
        except ValueError as error:
            self._garbage(b"", error)
            return
        for end in message.ended:
            self.jobs.pop(end.job, None)
            self._began_us.pop(end.job, None)
        self._listener.on_runner_message(self, message)

    def _garbage(self, text: bytes, error: Exception) -> None:
        """What else it says cannot be trusted; its jobs are lost with it, and no others."""
        if not self._is_garbled:
            self._is_garbled = True
            log.error("runner says what cannot be read; killing it", pid=self.pid, error=str(error))
            self.kill("said what cannot be read")

    async def _wait(self) -> None:
        assert self._process is not None
        status = await self._process.wait()
        try:
            self.kill()  # what it started must not outlive it
        except Exception as error:  # its jobs are lost all the same, and somebody must hear so
            log.error("not all that a runner started was killed", error=repr(error))
        await pause(0)  # let the last frames of the pipe be heard first
        if self._pings is not None:
            self._pings.close()
        self._listener.on_death(self, self._death(status))
        await self._leave_room()

    def _death(self, status: int) -> Death:
        was_killed = status == -signal.SIGKILL and not self._why_killed
        is_for_memory = was_killed and usage.memory_kills() > self._memory_kills
        return Death(status, self._why_killed, is_for_memory)

    async def _leave_room(self) -> None:
        """The kernel takes a moment to bury the dead; a group that still holds some stays."""
        tries = 0
        while self.room is not None and tries < REMOVE_TRIES and not self.room.remove():
            tries += 1
            await pause(REMOVE_PAUSE_SECONDS)
