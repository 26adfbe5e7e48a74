"""What programs have used: processor time with all that they started, and memory (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")


KERNEL_THREAD = 0x0020_0000  # of a process's flags


class Entry(NamedTuple):
    pid: int
    parent: int
    flags: int
    seconds: float
    reaped_seconds: float  # of its children that have ended, with theirs


def tree_seconds(root: int) -> float:
    """Of a process and its living descendants, in user and system time."""
    return sum(entry.seconds for entry in _family(root))


def family_seconds(root: int) -> float:
    """The same with those that have ended: it never falls, whoever comes and goes."""
    return sum(entry.seconds + entry.reaped_seconds for entry in _family(root))


def run_seconds(root: int) -> float:
    """Of a process and its living descendants, to the nanosecond, as the scheduler counts."""
    return sum(_thread_nanoseconds(entry.pid) for entry in _family(root)) / 1e9


def _thread_nanoseconds(pid: int) -> int:
    """Of all threads that live."""
    total = 0
    with suppress(FileNotFoundError, ProcessLookupError):  # it ended while we looked
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(FileNotFoundError, ProcessLookupError):
                total += int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0])
    return total


def kernel_seconds() -> float:
    """Of the kernel's own threads; a container does not see them."""
    return sum(entry.seconds for entry in _entries() if entry.flags & KERNEL_THREAD)


def _family(root: int) -> list[Entry]:
    entries = {entry.pid: entry for entry in _entries()}
    children: dict[int, list[int]] = {}
    for entry in entries.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return [entries[pid] for pid in found if pid in entries]


def _entries() -> Iterator[Entry]:
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            text = Path("/proc", name, "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        fields = text.rpartition(")")[2].split()
        user, system, reaped_user, reaped_system = map(int, fields[11:15])
        yield Entry(
            pid=int(name),
            parent=int(fields[1]),
            flags=int(fields[6]),
            seconds=(user + system) / TICKS,
            reaped_seconds=(reaped_user + reaped_system) / TICKS,
        )


def memory_mb(pid: int, measure: str = "VmRSS") -> float:
    """What a process has in memory; with `VmHWM`, the most it ever had."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = next(line for line in text.splitlines() if line.startswith(measure))
    return int(found.split()[1]) / 1024
