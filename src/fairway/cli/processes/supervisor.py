"""Keeps programs running: starts them, replaces those that crash, ends them when it is told to.

A program is a Python module in a process and a session of its own. One that dies is started again
after a pause that grows while its lives are short. Ending it is asked for (SIGTERM), asked again
when it is late or somebody is in a hurry, then it is killed; what it leaves in its session is
killed in any case. If this process dies, however that happens, the kernel asks them to end.

It decides nothing about how many there should be (`fleet`, `up`), and never ends a process that it
did not start.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from fairway.cli.processes.signals import Orders
from fairway.core.backoff import RestartPauses
from fairway.runtime.loops import pause
from fairway.runtime.parent_death import die_with_parent
from fairway.runtime.telemetry import logger

log = logger("supervisor")

PAUSE_FIRST_SECONDS = 0.2
PAUSE_MAX_SECONDS = 10.0
LONG_LIFE_SECONDS = 30.0  # whoever lived this long starts again without a grudge
LATE_SECONDS = 60.0  # beyond its grace, in which it says what it still has to say
HURRIED_SECONDS = 10.0  # from the second word to the end of who does not hear
NO_PROCESS = os.EX_OSERR  # as if it had ended with that: the machine had no room for it just now
CANNOT_START = os.EX_CONFIG  # the exit status that says: do not start me again as I am
#: What a service manager tells us is not for what we start.
OURS_ALONE = frozenset({"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is to run: `python -m WORDS`, with exactly this environment."""

    name: str  # in the log
    words: Sequence[str]
    environment: Mapping[str, str]
    grace_seconds: float = 0.0  # what it may take for its own after SIGTERM
    #: After these it is not started again. CANNOT_START is one for a first life in any case.
    final: frozenset[int] = frozenset({0})
    once: bool = False  # however it ends, it is not started again
    files: tuple[int, ...] = ()  # descriptors that it inherits


class Place:
    """Where one program runs, life after life. `run` returns the status of the last one."""

    def __init__(self, program: Program, orders: Orders) -> None:
        self.program = program
        self.lives = 0
        self._orders = orders
        self._leaving = asyncio.Event()
        self._renewed = asyncio.Event()
        self._process: Process | None = None
        self._pauses = RestartPauses(PAUSE_FIRST_SECONDS, PAUSE_MAX_SECONDS, LONG_LIFE_SECONDS)

    @property
    def pid(self) -> int | None:
        """Of the process that runs just now."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def is_leaving(self) -> bool:
        return self._leaving.is_set()

    def leave(self) -> None:
        """Ask this program to end for good; `run` returns when it has."""
        self._leaving.set()

    def send(self, number: signal.Signals) -> None:
        """To the process that runs just now, if there is one."""
        if self._process is not None:
            _send(self._process, number)

    def change(self, program: Program) -> None:
        """What is to run from its next life on."""
        self.program = program

    def renew(self) -> None:
        """End this life and begin another at once: what is to run has changed."""
        self._renewed.set()

    async def run(self) -> int:
        """Until it is to leave, ends in peace, or says that it cannot be started as it is."""
        status = 0
        while not self._leaving.is_set():
            self._renewed.clear()
            began = asyncio.get_running_loop().time()
            status = await self._live()
            if self._leaving.is_set() or self._is_final(status):
                break
            if not self._renewed.is_set():
                lived_seconds = asyncio.get_running_loop().time() - began
                await self._rest(status, self._pauses.after(lived_seconds))
        return status

    def _is_final(self, status: int) -> bool:
        if self._renewed.is_set():
            return False
        is_hopeless = status == CANNOT_START and self.lives == 1
        return is_hopeless or self.program.once or status in self.program.final

    async def _rest(self, status: int, seconds: float) -> None:
        log.error(
            "program ended; starting it again",
            program=self.program.name,
            status=status,
            in_seconds=seconds,
        )
        await first_of(self._leaving.wait(), self._renewed.wait(), pause(seconds))

    async def _live(self) -> int:
        """One life, from the start to what is left of its session."""
        try:
            process = self._process = await _started(self.program)
        except OSError as error:  # too many processes, too little memory: later there may be room
            log.error("program cannot be started", program=self.program.name, error=str(error))
            return NO_PROCESS
        self.lives += 1
        ended = asyncio.create_task(process.wait())
        try:
            await first_of(asyncio.shield(ended), self._leaving.wait(), self._renewed.wait())
            await self._end(process, ended)
            return await ended
        finally:
            _kill_session(process.pid)  # a no-op for who left nothing; and when we are cancelled

    async def _end(self, process: Process, ended: asyncio.Task[int]) -> None:
        late_seconds = self.program.grace_seconds + LATE_SECONDS
        waits = ((self._orders.hurried, late_seconds), (self._orders.quitting, HURRIED_SECONDS))
        for sooner, seconds in waits:
            if not ended.done():
                _send(process, signal.SIGTERM)
                await first_of(asyncio.shield(ended), sooner.wait(), pause(seconds))
        if not ended.done():
            log.error("program does not end; killing it", pid=process.pid)
            _kill_session(process.pid)


class Supervisor:
    """All programs of one command: `keep` starts one and forgets it until it has left."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._kept: dict[Place, asyncio.Task[int]] = {}

    @property
    def places(self) -> list[Place]:
        """Those that have not left yet, the oldest first."""
        return [place for place, task in self._kept.items() if not task.done()]

    def keep(self, program: Program) -> Place:
        place = Place(program, self._orders)
        task = asyncio.create_task(place.run(), name=program.name)
        self._kept[place] = task
        task.add_done_callback(lambda _: self._left(place))
        return place

    def _left(self, place: Place) -> None:
        task = self._kept.pop(place)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("program was not kept", program=place.program.name, error=repr(error))

    async def left(self, place: Place) -> int:
        """Wait until a kept program has left for good; answers its last status."""
        task = self._kept.get(place)
        return 0 if task is None else await asyncio.shield(task)

    async def stop(self) -> None:
        """Ask all to leave and wait until they have: hurried or killed as the orders say."""
        tasks = list(self._kept.values())
        for place in self._kept:
            place.leave()
        await asyncio.gather(*tasks, return_exceptions=True)


async def first_of(*waits: Awaitable[object]) -> int:
    """Which of these was done first; the others are given up."""
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(number for number, task in enumerate(tasks) if task.done())
    finally:
        for task in tasks:
            task.cancel()


async def _started(program: Program) -> Process:
    given = {name: v for name, v in program.environment.items() if name not in OURS_ALONE}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *program.words,
        env=given,
        start_new_session=True,  # Ctrl-C is for us: we pass it on in order
        pass_fds=program.files,
        preexec_fn=partial(die_with_parent, signal.SIGTERM),
    )


def _send(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        process.send_signal(number)


def _kill_session(leader: int) -> None:
    """The program and what it started in its session; what has gone needs no signal."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
