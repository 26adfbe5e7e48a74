"""A cage for memory and processes where the kernel's control groups can be written (v2 or v1).

One group for one run. The kernel itself counts and kills, so a program cannot talk its way out by
splitting up. Where groups cannot be made, `Cage.make` answers None and the level says so.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NAME = "fairway-judge"


class Cage:
    def __init__(self, folders: list[Path], *, is_unified: bool) -> None:
        self._folders = folders
        self._is_unified = is_unified

    @classmethod
    def make(cls, memory_bytes: int, processes: int) -> Cage | None:
        is_unified = (ROOT / "cgroup.controllers").exists()
        name = f"{os.getpid()}-{secrets.token_hex(8)}"
        cage = cls(_folders(name, is_unified=is_unified), is_unified=is_unified)
        try:
            cage._furnish(memory_bytes, processes)
        except OSError:
            cage.empty()
            return None
        return cage

    def _furnish(self, memory_bytes: int, processes: int) -> None:
        if self._is_unified:
            self._folders[0].parent.mkdir(exist_ok=True)
            _write(self._folders[0].parent / "cgroup.subtree_control", "+memory +pids")
        for folder in self._folders:
            folder.mkdir()
        memory = "memory.max" if self._is_unified else "memory.limit_in_bytes"
        _write(self._folders[0] / memory, str(memory_bytes))
        _write(self._folders[0 if self._is_unified else 1] / "pids.max", str(processes))

    @property
    def doors(self) -> list[str]:
        """Files that a process writes its number to, to be in."""
        return [str(folder / "cgroup.procs") for folder in self._folders]

    @property
    def peak_bytes(self) -> int:
        name = "memory.peak" if self._is_unified else "memory.max_usage_in_bytes"
        return _number(self._folders[0] / name)

    @property
    def cpu_seconds(self) -> float:
        """Of everybody who was ever in it, however they split up."""
        if not self._is_unified:
            return _number(self._folders[2] / "cpuacct.usage") / 1e9
        try:
            lines = (self._folders[0] / "cpu.stat").read_text().splitlines()
        except OSError:
            return 0.0
        return sum(int(line.split()[1]) for line in lines if line.startswith("usage_usec")) / 1e6

    @property
    def was_out_of_memory(self) -> bool:
        name = "memory.events" if self._is_unified else "memory.oom_control"
        try:
            lines = (self._folders[0] / name).read_text().splitlines()
        except OSError:
            return False
        return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)

    def empty(self) -> None:
        """Kill whoever is left, and take the cage away."""
        for _ in range(100):
            members = _members(self._folders[0])
            for pid in members:
                _kill(pid)
            if not members and all(_remove(folder) for folder in self._folders):
                return
            time.sleep(0.01)


def sweep() -> None:
    """Take away the empty cages of judges that are gone."""
    for folder in [*ROOT.glob(f"{NAME}/*-*"), *ROOT.glob(f"*/{NAME}-*-*")]:
        pid = folder.name.removeprefix(f"{NAME}-").partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            _remove(folder)  # only what is empty can be


def _folders(name: str, *, is_unified: bool) -> list[Path]:
    """One for everything, or one for each thing that is counted."""
    if is_unified:
        return [ROOT / NAME / name]
    return [ROOT / kind / f"{NAME}-{name}" for kind in ("memory", "pids", "cpuacct")]


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _members(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
