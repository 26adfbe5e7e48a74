"""Programs under test: started here, signalled by number, ended by whoever started them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.acceptance.forks import fork

ROOT = Path(__file__).parents[2]
RUNNER = "fairway-runner"
STANDING_STILL_SECONDS = 0.2  # between two looks: no program of ours was given time


class Program:
    """One `fairway …` process in a session of its own; what it says goes to a file.

    Servers and workers are forks of one process that has read the modules (`zygote.py`), unless
    they are to start anew.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        anew: bool = False,
    ) -> None:
        self.log = log
        clean = {k: v for k, v in os.environ.items() if not k.startswith("FAIRWAY_")}
        given = clean | {"PYTHONUNBUFFERED": "1"} | dict(environment)
        with log.open("ab") as file:
            forked = None if anew else fork(arguments, given, file.fileno())
            self._child = forked or subprocess.Popen(
                [sys.executable, "-m", "fairway", *arguments],
                env=given,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def runners(self) -> list[int]:
        """The processes of this worker that hold the user's code."""
        return [pid for pid in tree(self.pid) if name_of(pid) == RUNNER]

    def send(self, number: signal.Signals) -> None:
        """To this process alone."""
        if self.alive:
            self._child.send_signal(number)

    def send_tree(self, number: signal.Signals) -> None:
        """To this process and all that it started, itself first."""
        if self.alive:
            for pid in (self.pid, *tree(self.pid)):
                send(pid, number)

    async def ended(self, within_seconds: float) -> int:
        """Its exit status; it must end within so many seconds."""
        await until(lambda: not self.alive, within_seconds, f"the end of {self.log.name}")
        status = self._child.poll()
        assert status is not None
        return status

    async def says(self, words: str, within_seconds: float = 60.0) -> None:
        def heard() -> bool:
            assert self.alive, f"{self.log.name} ended:\n{self.said[-3000:]}"
            return words in self.said

        await until(heard, within_seconds, f"{words!r} from {self.log.name}")

    async def kill(self) -> None:
        """kill -9 of the whole tree."""
        self.send_tree(signal.SIGKILL)
        await self.ended(30)

    def bury(self) -> None:
        """The end of a test: kill what is left of it, frozen or not."""
        self.send_tree(signal.SIGKILL)
        self._child.wait(5)


async def until(condition: object, within_seconds: float, what: str) -> float:
    """Wait for a condition (a function without arguments); answers how long it took.

    Time in which the machine stands still is not the program's: it is counted as a moment.
    """
    assert callable(condition)
    began = looked_at = time.monotonic()
    waited = 0.0
    while not condition():
        assert waited < within_seconds, f"waited {waited:.1f} s for {what}"
        await asyncio.sleep(0.02)
        now = time.monotonic()
        waited += min(now - looked_at, STANDING_STILL_SECONDS)
        looked_at = now
    return time.monotonic() - began


def send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def tree(pid: int) -> list[int]:
    """Every living descendant, parents before children."""
    children: dict[int, list[int]] = {}
    for one, parent in _parents():
        children.setdefault(parent, []).append(one)
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def _parents() -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path("/proc", entry, "stat").read_text(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            yield int(entry), int(text.rpartition(")")[2].split()[1])


def command_of(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def name_of(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "comm").read_text(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_alive(pid: int) -> bool:
    """Neither gone nor a zombie that only waits to be buried."""
    try:
        text = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def is_resting(pid: int) -> bool:
    """Whether all its threads wait for something: none runs, or would if there were room."""
    try:
        stats = [
            path.read_text(errors="replace")
            for path in Path("/proc", str(pid), "task").glob("*/stat")
        ]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return all(text.rpartition(")")[2].split()[0] == "S" for text in stats)
