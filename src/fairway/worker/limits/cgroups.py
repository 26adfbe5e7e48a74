"""Control groups: the kernel's own hold on a job's memory and processes, version 2 or 1.

A tree of groups belongs to whoever made it. So groups are made only below one that is ours: the
one the operator names (FAIRWAY_CGROUP), one that is delegated to this process (systemd marks it),
or the root as a container sees it. Elsewhere there are none, and the worker says so.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from fairway.core.run.process_limits import RunLimits

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
MOUNTS = Path("/proc/self/mounts")
NAME = "fairway"
CONTROLLERS = ("memory", "pids")
_DELEGATED = ("trusted.delegate", "user.delegate")
_KILL_ROUNDS_MAX = 50
OWN_PROCESSES = 1  # the reaper above a runner: no part of what a job may have


@dataclass(frozen=True, slots=True)
class Home:
    """Where groups with this controller may be made."""

    controller: str
    version: int
    path: Path


class Room:
    """The groups of one runner."""

    def __init__(self, homes: list[Home], name: str, limits: RunLimits) -> None:
        self._homes = {home.controller: home for home in homes}
        self._name = name
        self._paths = sorted({home.path / name for home in homes})
        for path in self._paths:
            path.mkdir()
        self._set(limits)

    def _set(self, limits: RunLimits) -> None:
        if "memory" in self._homes and limits.memory_bytes is not None:
            is_new = self._homes["memory"].version == 2
            name = "memory.max" if is_new else "memory.limit_in_bytes"
            self._write("memory", name, limits.memory_bytes)
            swap = (
                ("memory.swap.max", 0)
                if is_new
                else ("memory.memsw.limit_in_bytes", limits.memory_bytes)
            )
            with contextlib.suppress(OSError):  # a kernel that does not count swap
                self._write("memory", *swap)
        if "pids" in self._homes and limits.processes is not None:
            self._write("pids", "pids.max", limits.processes + OWN_PROCESSES)

    def take_in(self, pid: int) -> None:
        for path in self._paths:
            (path / "cgroup.procs").write_text(str(pid))

    def kills_for_memory(self) -> int:
        """How often the kernel killed in here because the memory ran out."""
        if "memory" not in self._homes:
            return 0
        is_new = self._homes["memory"].version == 2
        return self._count(
            "memory", "memory.events" if is_new else "memory.oom_control", "oom_kill"
        )

    def refused_processes(self) -> int:
        """How often a process or thread was refused."""
        return self._count("pids", "pids.events", "max") if "pids" in self._homes else 0

    def kill(self) -> None:
        for path in self._paths:
            _kill_all(path)

    def remove(self) -> bool:
        """False while the kernel still buries what was in here: try again."""
        try:
            for path in self._paths:
                if path.exists():
                    path.rmdir()
        except OSError:
            return False
        return True

    def _write(self, controller: str, file: str, number: int) -> None:
        (self._homes[controller].path / self._name / file).write_text(str(number))

    def _count(self, controller: str, file: str, word: str) -> int:
        try:
            text = (self._homes[controller].path / self._name / file).read_text()
        except OSError:
            return 0
        found = [line.split() for line in text.splitlines()]
        return next((int(line[1]) for line in found if line[0] == word), 0)


def find_homes(named: str | None = None) -> list[Home]:
    """One home for each controller that can be used; a named group is made if need be."""
    found = []
    for controller in CONTROLLERS:
        for version, mount, own in _groups_of(controller):
            path = mount / named.strip("/") if named else mount / own.strip("/")
            is_ours = bool(named) or own == "/" or _is_delegated(path)
            if is_ours and _is_usable(path, controller, version):
                found.append(Home(controller, version, path))
                break
    return found


def sweep(homes: list[Home]) -> None:
    """Remove what workers that were killed left behind."""
    for path in {home.path for home in homes}:
        for left in path.glob(f"{NAME}-*-*"):
            keeper = left.name.split("-")[1]
            if keeper.isdigit() and not Path("/proc", keeper).exists():
                with contextlib.suppress(OSError):
                    left.rmdir()


def _groups_of(controller: str) -> list[tuple[int, Path, str]]:
    """(version, where its hierarchy is mounted, the group of this process in it)."""
    try:
        lines = [line.split(":", 2) for line in MEMBERSHIP.read_text().splitlines()]
        mounts = [line.split() for line in MOUNTS.read_text().splitlines()]
    except OSError:
        return []  # not Linux
    found = []
    for _, controllers, own in lines:
        for mount in mounts:
            where, kind, options = Path(mount[1]), mount[2], mount[3].split(",")
            if kind == "cgroup2" and not controllers and _offers(where, controller):
                found.append((2, where, own))
            elif (
                kind == "cgroup" and controller in controllers.split(",") and controller in options
            ):
                found.append((1, where, own))
    return sorted(found, reverse=True)


def _offers(mount: Path, controller: str) -> bool:
    try:
        return controller in (mount / "cgroup.controllers").read_text().split()
    except OSError:
        return False


def _is_delegated(path: Path) -> bool:
    for mark in _DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(path, mark) == b"1":
                return True
    return False


def _is_usable(path: Path, controller: str, version: int) -> bool:
    """Whether a group with this controller can be made in there: by making one."""
    probe = path / f"{NAME}-{os.getpid()}-probe"
    try:
        path.mkdir(exist_ok=True)
        if version == 2:
            _hand_down(path, controller)
        probe.mkdir(exist_ok=True)
        try:
            limit = {("memory", 2): "memory.max", ("memory", 1): "memory.limit_in_bytes"}
            return os.access(probe / limit.get((controller, version), "pids.max"), os.W_OK)
        finally:
            probe.rmdir()
    except OSError:
        return False


def _hand_down(path: Path, controller: str) -> None:
    """Version 2 gives a controller to groups below one only when no process is in that one."""
    control = path / "cgroup.subtree_control"
    if controller in control.read_text().split():
        return
    try:
        control.write_text(f"+{controller}")
    except OSError:
        leaf = path / f"{NAME}-keeper"
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text(str(os.getpid()))
        control.write_text(f"+{controller}")


def _kill_all(path: Path) -> None:
    with contextlib.suppress(OSError):
        (path / "cgroup.kill").write_text("1")  # version 2, Linux 5.14
        return
    for _ in range(_KILL_ROUNDS_MAX):
        try:
            pids = [int(line) for line in (path / "cgroup.procs").read_text().split()]
        except OSError:
            return
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
