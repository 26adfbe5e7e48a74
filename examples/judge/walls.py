"""The walls of a sandbox as command lines: who drops what, what is seen, what is limited.

A command is put together from the outside in: enter the cage, stand back, give up the account, take
limits, enter the namespaces, take the last limit inside them, run the program.
"""

from __future__ import annotations

import math
import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from examples.judge.seccomp import as_descriptor, filter_program

if TYPE_CHECKING:
    from examples.judge.cgroups import Cage
    from examples.judge.sandbox import Task

NOBODY = "65534"
OWN_PROCESSES = 6  # those of the sandbox itself, inside the cage
SCRATCH_BYTES = 32 << 20
OPEN_FILES = 64
ADDRESS_SPACE_SLACK = 64 << 20  # what an interpreter maps and does not use

ENTER_CAGE = (
    'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1" || exit 125; shift; n=$((n-1)); done;'
    ' exec "$@"'
)
#: What a program sees of the host, all of it read-only.
SEEN = (
    "/usr",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
)
LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


class Level(Enum):
    """From the strongest to the weakest."""

    CAGED = "bubblewrap + seccomp + cgroup"
    BUBBLE = "bubblewrap + seccomp"
    NAMESPACES = "namespaces"

    @property
    def has_status(self) -> bool:
        """Whether it says by itself how the program ended, apart from how the sandbox did."""
        return self is not Level.NAMESPACES


class Built:
    """A command with the open files it needs; they are closed when the block ends."""

    def __init__(self, level: Level, task: Task, cage: Cage | None, status: int) -> None:
        self._filter = -1
        self.descriptors: tuple[int, ...] = (status,)
        inner = _limited_inside(task) + tuple(task.words)
        if level is Level.NAMESPACES:
            walls = _namespaces(task) + inner
        else:
            walls = self._bubble(task, status) + inner
        self.words = _cage(cage) + _gently(task) + _account() + _limits(level, task) + walls

    def _bubble(self, task: Task, status: int) -> tuple[str, ...]:
        program = filter_program()
        guard: tuple[str, ...] = ()
        if program is not None:
            self._filter = as_descriptor(program)
            self.descriptors += (self._filter,)
            guard = ("--seccomp", str(self._filter))
        return (*_bubble(task), "--json-status-fd", str(status), *guard, "--")

    def __enter__(self) -> Built:
        return self

    def __exit__(self, *error: object) -> None:
        if self._filter >= 0:
            os.close(self._filter)


def _cage(cage: Cage | None) -> tuple[str, ...]:
    if cage is None:
        return ()
    return ("/bin/sh", "-c", ENTER_CAGE, "sh", str(len(cage.doors)), *cage.doors)


def _gently(task: Task) -> tuple[str, ...]:
    return ("/usr/bin/nice", "-n", "10") if task.gently else ()


def _account() -> tuple[str, ...]:
    """Root gives itself up first, so that even an escape would be nobody."""
    nobody = ("--reuid", NOBODY, "--regid", NOBODY, "--clear-groups") if os.geteuid() == 0 else ()
    return ("/usr/bin/setpriv", *nobody, "--no-new-privs")


def _limits(level: Level, task: Task) -> tuple[str, ...]:
    limits = task.limits
    cpu = math.ceil(limits.cpu_seconds)
    words = [
        "/usr/bin/prlimit", "--core=0", f"--nofile={OPEN_FILES}", f"--cpu={cpu}:{cpu + 1}",
        f"--fsize={limits.output_bytes + 1}", "--memlock=0",
    ]  # fmt: skip
    if level is not Level.CAGED and not task.own_memory:
        words.append(f"--as={limits.memory_bytes + ADDRESS_SPACE_SLACK}")
    return tuple(words)


def _limited_inside(task: Task) -> tuple[str, ...]:
    """Processes are counted by user and namespace, so this one is taken inside."""
    return ("/usr/bin/prlimit", f"--nproc={task.limits.processes}")


def _bubble(task: Task) -> tuple[str, ...]:
    seen = [word for path in SEEN for word in ("--ro-bind-try", path, path)]
    links = [
        word
        for name in LINKS
        if Path("/usr", name).is_dir()
        for word in ("--symlink", f"usr/{name}", f"/{name}")
    ]
    folder = ("--bind" if task.may_write else "--ro-bind", str(task.folder), "/box")
    return (
        "/usr/bin/bwrap", "--unshare-all", "--unshare-user", "--disable-userns",
        "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--uid", NOBODY, "--gid", NOBODY, "--hostname", "judge",
        *seen, *links, "--proc", "/proc", "--dev", "/dev",
        "--size", str(1 << 20), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
        "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp", *folder, "--remount-ro", "/",
        "--chdir", "/box", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",
        "--setenv", "HOME", "/tmp", "--setenv", "LANG", "C.UTF-8",
    )  # fmt: skip


def _namespaces(task: Task) -> tuple[str, ...]:
    return (
        "/usr/bin/unshare", "--user", "--pid", "--net", "--ipc", "--uts", "--mount",
        "--fork", "--kill-child", "--mount-proc",
        "/usr/bin/env", "-i", "-C", str(task.folder), "PATH=/usr/bin:/bin", "LANG=C.UTF-8",
    )  # fmt: skip
