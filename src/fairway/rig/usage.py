"""What programs have used: processor time with all that they started, and memory (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")


class Entry(NamedTuple):
    pid: int
    parent: int
    seconds: float


def tree_seconds(root: int) -> float:
    """Of a process and its living descendants, in user and system time."""
    entries = list(_entries())
    children: dict[int, list[int]] = {}
    for entry in entries:
        children.setdefault(entry.parent, []).append(entry.pid)
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    wanted = set(found)
    return sum(entry.seconds for entry in entries if entry.pid in wanted)


def _entries() -> Iterator[Entry]:
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            text = Path("/proc", name, "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        fields = text.rpartition(")")[2].split()
        yield Entry(int(name), int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS)


def memory_mb(pid: int, measure: str = "VmRSS") -> float:
    """What a process has in memory; with `VmHWM`, the most it ever had."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = next(line for line in text.splitlines() if line.startswith(measure))
    return int(found.split()[1]) / 1024
