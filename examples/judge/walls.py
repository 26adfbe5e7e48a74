"""The walls of a sandbox as command lines: who drops what, what is seen, what is limited.

A command is put together from the outside in: stand back, give up the account, enter an own root
and own namespaces. Inside, the warden takes the last steps together with the program: it enters the
cage, takes its limits, gives up system calls.
"""

from __future__ import annotations

import math
import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from examples.judge.seccomp import filter_program
from examples.judge.trouble import SandboxUnavailable

if TYPE_CHECKING:
    from examples.judge.cgroups import Cage
    from examples.judge.sandbox import Task

HERE = Path(__file__).parent
#: Both run inside, where the judge's own interpreter may not be seen.
WARDEN, ROOMS = (HERE / name for name in ("warden.py", "rooms.py"))
ALONE = ("/usr/bin/python3", "-I", "-S", "-c")
NOBODY = "65534"
SCRATCH_BYTES = 32 << 20
SHARED_BYTES = 1 << 20
OPEN_FILES = 64
OWN_PROCESSES = 2  # those of the sandbox that count as the program's account
ADDRESS_SPACE_SLACK = 64 << 20  # what an interpreter maps and does not use
RUNTIME_BYTES = 160 << 20  # of a runtime that keeps its programs' memory apart from its own

#: What a program sees of the host, all of it read-only.
SEEN = (
    "/usr",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
)
LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
#: Where an own root is built, in a namespace where nobody else sees it.
BASES = ("/mnt", "/media", "/srv", "/opt")


class Level(Enum):
    """From the strongest to the weakest; all of them have the same walls around a submission."""

    BUBBLE_CAGED = "bubblewrap + seccomp + cgroup"
    ROOMS_CAGED = "namespaces + seccomp + cgroup"
    BUBBLE = "bubblewrap + seccomp"
    ROOMS = "namespaces + seccomp"

    @property
    def has_bubblewrap(self) -> bool:
        return self in (Level.BUBBLE_CAGED, Level.BUBBLE)

    @property
    def has_cage(self) -> bool:
        return self in (Level.BUBBLE_CAGED, Level.ROOMS_CAGED)


def levels(wanted: str) -> list[Level]:
    """All of them, or the one with this name."""
    found = [level for level in Level if not wanted or level.value == wanted]
    if not found:
        names = ", ".join(f'"{level.value}"' for level in Level)
        raise SandboxUnavailable(f'JUDGE_SANDBOX is "{wanted}"; it can be one of {names}')
    return found


def memory_limit(task: Task) -> int:
    return task.limits.memory_bytes + (RUNTIME_BYTES if task.own_memory else 0)


class Built:
    """A command with the open files it needs; all are closed when the block ends."""

    def __init__(self, level: Level, task: Task, cage: Cage | None) -> None:
        self._status, status = os.pipe()
        self.descriptors = [status]
        if cage is not None:
            self.descriptors += [os.open(door, os.O_WRONLY) for door in cage.doors]
        inside = (*ALONE, _call(WARDEN, _plan(level, task, self.descriptors), task.words))
        walls = _bubble(task) + inside if level.has_bubblewrap else _rooms(task, inside)
        self.words = _gently(task) + _account(task) + walls

    def told(self) -> list[str]:
        """What the warden said; none if it did not come to that. Waits until it is gone."""
        self._close_ours()
        with os.fdopen(self._status, "rb") as status:
            self._status = -1
            return status.read().decode(errors="replace").split(maxsplit=3)

    def _close_ours(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.pop())

    def __enter__(self) -> Built:
        return self

    def __exit__(self, *error: object) -> None:
        self._close_ours()
        if self._status >= 0:
            os.close(self._status)


def _call(text: Path, plan: dict[str, object], words: tuple[str, ...]) -> str:
    return f"{text.read_text('utf-8')}\nmain({plan!r}, {list(words)!r})\n"


def _plan(level: Level, task: Task, descriptors: list[int]) -> dict[str, object]:
    return {
        "status": descriptors[0],
        "doors": descriptors[1:],
        "filter": filter_program().hex(),
        "limits": _limits(level, task),
        "cpu_seconds": task.limits.cpu_seconds,
        "wall_seconds": task.limits.wall_seconds,
        "memory_bytes": 0 if level.has_cage else memory_limit(task),
    }


def _limits(level: Level, task: Task) -> dict[str, tuple[int, int]]:
    """Soft and hard ones of each process, by the kernel's names."""
    limits = task.limits
    cpu = math.ceil(limits.cpu_seconds)
    both = {
        "CORE": 0,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
        "NOFILE": OPEN_FILES,
        "FSIZE": limits.output_bytes + 1,
        "NPROC": limits.processes + OWN_PROCESSES,
    }
    if not level.has_cage and not task.own_memory:
        both["AS"] = limits.memory_bytes + ADDRESS_SPACE_SLACK
    return {"CPU": (cpu, cpu + 1)} | {name: (most, most) for name, most in both.items()}


def _gently(task: Task) -> tuple[str, ...]:
    return ("/usr/bin/nice", "-n", "10") if task.gently else ()


def _account(task: Task) -> tuple[str, ...]:
    """Root gives itself up first, so that even an escape would be nobody."""
    if os.geteuid() != 0:
        return ("/usr/bin/setpriv", "--no-new-privs")
    if not task.place.uid:
        raise ValueError("root runs no program as itself; the place has no user id")
    uid = str(task.place.uid)
    account = ("--reuid", uid, "--regid", uid, "--clear-groups")
    return ("/usr/bin/setpriv", *account, "--no-new-privs")


def _links() -> list[str]:
    return [name for name in LINKS if Path("/usr", name).is_dir()]


def _bubble(task: Task) -> tuple[str, ...]:
    seen = [word for path in SEEN for word in ("--ro-bind-try", path, path)]
    links = [word for name in _links() for word in ("--symlink", f"usr/{name}", f"/{name}")]
    folder = ("--bind" if task.may_write else "--ro-bind", str(task.place.folder), "/box")
    return (
        "/usr/bin/bwrap", "--unshare-all", "--unshare-user", "--disable-userns",
        "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL",
        "--uid", NOBODY, "--gid", NOBODY, "--hostname", "judge",
        *seen, *links, "--proc", "/proc", "--dev", "/dev",
        "--size", str(SHARED_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
        "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp", *folder, "--remount-ro", "/",
        "--chdir", "/box", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",
        "--setenv", "HOME", "/tmp", "--setenv", "LANG", "C.UTF-8", "--",
    )  # fmt: skip


def _rooms(task: Task, inside: tuple[str, ...]) -> tuple[str, ...]:
    folder = task.place.folder
    bases = [base for base in BASES if Path(base).is_dir() and Path(base) not in folder.parents]
    if not bases:
        raise SandboxUnavailable(f"a root is built on one of {', '.join(BASES)}; none is there")
    plan: dict[str, object] = {
        "base": bases[0],
        "seen": [path for path in SEEN if Path(path).exists()],
        "links": _links(),
        "folder": str(folder),
        "may_write": task.may_write,
        "scratch_bytes": SCRATCH_BYTES,
        "shared_bytes": SHARED_BYTES,
    }
    return (*ALONE, _call(ROOMS, plan, inside))
