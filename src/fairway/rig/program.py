"""Programs of a measured platform: each a process of its own, in one folder, ended in reverse.

They end with the process that started them, however it ends, and hear no Ctrl-C of its terminal.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from functools import partial
from pathlib import Path

from fairway.core.errors import FairwayError
from fairway.runtime.parent_death import die_with_parent

READY_SECONDS = 90.0
LOOK_SECONDS = 0.05
TOLD_CHARACTERS = 2000


class ProgramFailed(FairwayError):
    """A program of the platform did not start, or ended by itself."""


class Program:
    """One process, and what it has written since it was started."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, written_bytes: int) -> None:
        self._process = process
        self._log = log
        self._written_bytes = written_bytes  # by those that had the same log before

    @property
    def pid(self) -> int:
        return self._process.pid

    async def says(self, words: str) -> str:
        """Wait until it has written these words; answers all it wrote."""
        async with asyncio.timeout(READY_SECONDS):
            while words not in self._said():
                self.must_live()
                await asyncio.sleep(LOOK_SECONDS)
        return self._said()

    def must_live(self) -> None:
        if self._process.returncode is not None:
            raise ProgramFailed(
                f"`fairway {self._log.stem}` ended with {self._process.returncode}:\n"
                + self._said()[-TOLD_CHARACTERS:]
            )

    def _said(self) -> str:
        return self._log.read_bytes()[self._written_bytes :].decode(errors="replace")

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def _end(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            self._process.send_signal(number)
            await self._process.wait()


class Programs:
    """All that was started with one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[Program] = []

    @property
    def pids(self) -> list[int]:
        return [program.pid for program in self._started]

    async def start(self, log: str, *words: str, **environment: str) -> Program:
        """`python -m WORDS`, with these settings and none of this process's own."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("FAIRWAY_")}
        path = self.folder / f"{log}.log"
        with path.open("ab") as file:
            written_bytes = file.tell()
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *words,
                env=clean | environment,
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, signal.SIGTERM),
            )
        program = Program(process, path, written_bytes)
        self._started.append(program)
        return program

    async def close(self) -> None:
        for program in reversed(self._started):
            await program.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
