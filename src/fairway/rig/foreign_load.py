"""What others did with this machine's processors during a run: other programs, other guests.

Linux counts the time of all processors (`/proc/stat`), and that of each process. What is not ours,
nor the kernel's own threads (which write our pages, too), is somebody else's; what was stolen, a
hypervisor gave to somebody else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from fairway.rig.usage import family_seconds, kernel_seconds

SHARE_MAX = 0.05  # of all processors: beyond this, waits are others' doing as much as ours
TICKS = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """Seconds of processor time since the machine's start."""

    whole: float  # of all processors, idle or not
    busy: float  # in programs and on their behalf
    stolen: float
    ours: float  # this process and all it started
    kernel: float


class ForeignLoad(NamedTuple):
    """Shares of all processors' time during a run."""

    others: float
    stolen: float

    @property
    def words(self) -> str:
        return (
            f"other programs had {self.others:.1%} of the processors' time,"
            f" other guests {self.stolen:.1%}"
        )


def look() -> Spent | None:
    """Where the counters stand now; None where there are none."""
    try:
        return read(Path("/proc/stat").read_text(), family_seconds(os.getpid()), kernel_seconds())
    except OSError:
        return None


def read(stat: str, ours: float, kernel: float) -> Spent | None:
    """From the first line of `/proc/stat`: the sum over all processors."""
    name, *ticks = stat.partition("\n")[0].split()
    if name != "cpu" or len(ticks) < 8:
        return None
    user, nice, system, idle, iowait, irq, softirq, stolen = (int(one) / TICKS for one in ticks[:8])
    busy = user + nice + system
    whole = busy + idle + iowait + irq + softirq + stolen
    return Spent(whole, busy, stolen, ours, kernel)


def foreign_load(before: Spent | None, after: Spent | None) -> ForeignLoad | None:
    """Between two looks. None where time does not pass, as in a sandbox that counts nothing."""
    if before is None or after is None:
        return None
    spent = Spent(*(late - early for early, late in zip(before, after, strict=True)))
    if spent.whole <= 0:
        return None
    others = max(0.0, spent.busy - spent.ours - spent.kernel)
    return ForeignLoad(others / spent.whole, max(0.0, spent.stolen) / spent.whole)


def doubts(load: ForeignLoad | None) -> list[str]:
    """Why a run cannot be judged; nothing when it can, or when nobody knows of any load."""
    if load is None or load.others + load.stolen <= SHARE_MAX:
        return []
    return [f"the machine was busy: {load.words}; {SHARE_MAX:.0%} in all are allowed"]
