"""What a process and everything that it started use, read from /proc; and how all of it is killed.

A runner takes in the orphans of its descendants (`confine.adopt_orphans`), so its tree is whole
even when a job starts daemons. Where there is no /proc, nothing is measured.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fairway.core.run.process_limits import Usage

PROC = Path("/proc")
_ROUNDS_MAX = 20
_TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def is_measurable() -> bool:
    return (PROC / "self" / "task" / str(os.getpid()) / "children").exists()


def tree(pid: int) -> list[int]:
    """This process and all its descendants, parents first."""
    found = [pid]
    for one in found:
        found += _children(one)
    return found


def usage_of(pid: int) -> Usage:
    """Memory is the resident set: shared pages count once in each process."""
    return _sum(tree(pid))


def usage_below(pid: int) -> Usage:
    """Of a reaper's tree: it counts for nothing but the processor time of those it buried."""
    root, *pids = tree(pid)
    used = _sum(pids)
    return used._replace(cpu_ms=used.cpu_ms + _sum([root]).cpu_ms)


def _sum(pids: list[int]) -> Usage:
    cpu_ms = memory_bytes = processes = 0
    for one in pids:
        fields = _stat(one)
        if fields and fields[0] != b"Z":
            cpu_ms += sum(map(int, fields[11:15])) * _TICK_MS  # its own and its buried children's
            processes += int(fields[17])  # threads
            memory_bytes += int(fields[21]) * _PAGE_BYTES
    return Usage(cpu_ms, memory_bytes, processes)


def cpu_ms_of(pid: int) -> int:
    """What this one process has used so far."""
    fields = _stat(pid)
    return sum(map(int, fields[11:13])) * _TICK_MS if fields else 0


def is_stopped(pid: int) -> bool:
    """By a signal; one that is looked at by a debugger is not."""
    return _stat(pid)[:1] == [b"T"]


def proportional_bytes_below(pid: int) -> int:
    """The memory of a reaper's tree with shared pages shared out; dear, so only in doubt."""
    return sum(_proportional_bytes(one) for one in tree(pid)[1:])


def memory_kills() -> int:
    """How many processes the kernel has killed on this machine for want of memory."""
    try:
        for line in (PROC / "vmstat").read_bytes().splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    except OSError:
        return 0
    return 0


def kill_descendants(pid: int, but: int | None = None) -> int:
    """SIGKILL to all that it started, until nothing is left; answers how many were killed."""
    killed: set[int] = set()
    for _ in range(_ROUNDS_MAX):
        living = [one for one in tree(pid)[1:] if one != but and _is_alive(one)]
        if not living:
            break
        for one in living:
            send(one, signal.SIGKILL)
        killed.update(living)
    return len(killed)


def kill_tree(pid: int) -> None:
    """All of it. The root is stopped first and killed last: what is orphaned comes to it."""
    send(pid, signal.SIGSTOP)
    kill_descendants(pid)
    send(pid, signal.SIGKILL)


class Orphans:
    """What dead runners left: children of this process that nobody here started."""

    def __init__(self) -> None:
        self._strangers: set[int] = set()

    def kill(self, known: set[int]) -> int:
        """Kill and bury who was a stranger at the last look, too: new runners have a name then."""
        strangers = set(_children(os.getpid())) - known
        doomed = strangers & self._strangers
        for pid in doomed:
            send(pid, signal.SIGKILL)
            _reap(pid)
        self._strangers = strangers
        return len(doomed)


def _children(pid: int) -> Iterator[int]:
    try:
        for task in (PROC / str(pid) / "task").iterdir():
            yield from map(int, (task / "children").read_text().split())
    except OSError:
        return  # it ended meanwhile


def _stat(pid: int) -> list[bytes]:
    """The fields after the command's name, which may be no text; none when it is gone."""
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []
    return fields


def _is_alive(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] not in (b"Z", b"X")


def _proportional_bytes(pid: int) -> int:
    try:
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return 0
    return 0


def send(pid: int, number: signal.Signals) -> None:
    """One that is gone, or runs as somebody else (a set-user-id program), keeps nothing else up."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
