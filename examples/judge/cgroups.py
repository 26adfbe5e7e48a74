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
        try:
            if is_unified:
                return cls([_unified(memory_bytes, processes)], is_unified=True)
            return cls(_separate(memory_bytes, processes), is_unified=False)
        except OSError:
            return None

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


def _unified(memory_bytes: int, processes: int) -> Path:
    parent = ROOT / NAME
    parent.mkdir(exist_ok=True)
    _write(parent / "cgroup.subtree_control", "+memory +pids")
    folder = parent / secrets.token_hex(8)
    folder.mkdir()
    _write(folder / "memory.max", str(memory_bytes))
    _write(folder / "pids.max", str(processes))
    return folder


def _separate(memory_bytes: int, processes: int) -> list[Path]:
    name = f"{NAME}-{secrets.token_hex(8)}"
    folders = [ROOT / kind / name for kind in ("memory", "pids", "cpuacct")]
    for folder in folders:
        folder.mkdir()
    _write(folders[0] / "memory.limit_in_bytes", str(memory_bytes))
    _write(folders[1] / "pids.max", str(processes))
    return folders


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
