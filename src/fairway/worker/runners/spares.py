"""Spare interpreters: started, and not yet told what to run.

Starting Python and importing the worker's half takes a third of a second. A runner that dies is
therefore replaced by a spare that has this behind it; only the app is left to load. Two are kept,
because a job that kills its runner comes back at once and does it again. A spare has seen nothing
of the user's code, so one that waits for weeks serves as well as a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from typing import NamedTuple

from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.worker.limits.environment import for_runners

log = logger("fleet")

SPARES = 2
RESTOCK_SECONDS = 1.0  # whoever took the last one is starting up: the next does not compete
END_SECONDS_MAX = 2.0


class SpareProcess(NamedTuple):
    """An interpreter without a duty, and our ends of its pipes."""

    process: asyncio.subprocess.Process
    end: socket.socket
    pings: socket.socket

    @classmethod
    async def start(cls) -> SpareProcess:
        """Raises OSError where no process can be started now."""
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            pairs = []
            for _ in range(2):
                our, their = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
                pairs.append((ours.enter_context(our), theirs.enter_context(their)))
            passed = [their.fileno() for _, their in pairs]
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "fairway.worker.runner",
                *map(str, passed),
                pass_fds=passed,
                env=for_runners(os.environ),
                start_new_session=True,  # a group of its own: killed whole, untouched by Ctrl-C
            )
            ours.pop_all()
        return cls(process, pairs[0][0], pairs[1][0])

    def close(self) -> None:
        self.end.close()
        self.pings.close()

    async def finish(self) -> None:
        """It ends with its pipe; one that does not is killed."""
        self.close()
        try:
            async with asyncio.timeout(END_SECONDS_MAX):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


class Spares:
    def __init__(self) -> None:
        self._spares: list[SpareProcess] = []
        self._restocking: asyncio.Task[None] | None = None

    @property
    def pids(self) -> set[int]:
        return {spare.process.pid for spare in self._spares}

    async def take(self) -> SpareProcess:
        """A spare that lives, else a new one; another is started in a while."""
        if self._restocking is None:
            self._restocking = asyncio.create_task(self._restock(), name="spare runners")
        while self._spares:
            spare = self._spares.pop()
            if spare.process.returncode is None:
                return spare
            spare.close()
        return await SpareProcess.start()

    async def _restock(self) -> None:
        try:
            while len(self._spares) < SPARES:
                await pause(RESTOCK_SECONDS)
                self._spares.append(await SpareProcess.start())
        except OSError as error:  # no process, no descriptor: the next runner is started late
            log.warning("no spare runner", error=str(error))
        finally:
            self._restocking = None

    async def stop(self) -> None:
        if self._restocking is not None:
            self._restocking.cancel()
            await asyncio.gather(self._restocking, return_exceptions=True)
        spares, self._spares = self._spares, []
        await asyncio.gather(*(spare.finish() for spare in spares))
