"""What others did with this machine's processors during a run: other programs, other guests.

Linux counts the time of all processors (`/proc/stat`), and that of each process. What is not ours,
nor the kernel's own threads (which write our pages, too), is somebody else's; what was stolen, a
hypervisor gave to somebody else.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from fairway.rig.usage import family_seconds, kernel_seconds

SHARE_MAX = 0.05  # of all processors: beyond this, waits are others' doing as much as ours
TICKS = os.sysconf("SC_CLK_TCK")

Found = TypeVar("Found")


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
    def whole(self) -> float:
        return self.others + self.stolen

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


def passed(before: Spent | None, after: Spent | None) -> Spent | None:
    """Between two looks."""
    if before is None or after is None:
        return None
    return Spent(*(late - early for early, late in zip(before, after, strict=True)))


def without(spent: Spent | None, parts: Iterable[Spent | None]) -> Spent | None:
    """What is left of a time when parts of it do not count."""
    for part in parts:
        spent = passed(part, spent)
    return spent


def foreign_load(spent: Spent | None) -> ForeignLoad | None:
    """None where time does not pass, as in a sandbox that counts nothing."""
    if spent is None or spent.whole <= 0:
        return None
    others = max(0.0, spent.busy - spent.ours - spent.kernel)
    return ForeignLoad(others / spent.whole, max(0.0, spent.stolen) / spent.whole)


class Kept(NamedTuple, Generic[Found]):
    found: list[Found]
    left_out: list[Spent | None]  # what passed while those were made that are not among them


async def undisturbed(
    measure: Callable[[], Awaitable[Found]],
    count: int,
    look_at: Callable[[], Spent | None] = look,
) -> Kept[Found]:
    """So many measurements, and as many again at most for those that others disturbed.

    Which are kept is decided by others' load alone, never by what was found.
    """
    made: list[tuple[float, Found, Spent | None]] = []
    while len(made) < 2 * count and sum(busy <= SHARE_MAX for busy, _, _ in made) < count:
        before = look_at()
        found = await measure()
        spent = passed(before, look_at())
        load = foreign_load(spent)
        made.append((load.whole if load else 0.0, found, spent))
    order = sorted(range(len(made)), key=lambda at: made[at][0])
    kept = sorted(order[:count])
    return Kept([made[at][1] for at in kept], [made[at][2] for at in order[count:]])


def doubts(load: ForeignLoad | None) -> list[str]:
    """Why a run cannot be judged; nothing when it can, or when nobody knows of any load."""
    if load is None or load.whole <= SHARE_MAX:
        return []
    return [f"the machine was busy: {load.words}; {SHARE_MAX:.0%} in all are allowed"]
