"""How firmly this machine lets a worker hold its jobs to their limits; found out, never assumed.

The same words are in the worker's first log line, in `fairway check` and in the list of workers.
"""

from __future__ import annotations

import itertools
import os
import sys

from fairway.core.run.process_limits import RunLimits
from fairway.worker.limits import cgroups, usage
from fairway.worker.limits.cgroups import Home, Room

WATCHED = "watched"  # measured a few times a second by the keeper, over all of a run's processes
EACH = "rlimit of each process"
NOTHING = "nothing"


class EnforcementLevel:
    """What holds each limit here, and the means to make it hold."""

    def __init__(self, homes: list[Home], *, is_measurable: bool, is_linux: bool) -> None:
        self._homes = homes
        self._is_measurable = is_measurable
        self._is_linux = is_linux
        self._numbers = itertools.count(1)

    @classmethod
    def find(cls, cgroup: str | None = None) -> EnforcementLevel:
        homes = cgroups.find_homes(cgroup)
        cgroups.sweep(homes)
        is_linux = sys.platform == "linux"
        return cls(homes, is_measurable=usage.is_measurable(), is_linux=is_linux)

    def words(self) -> dict[str, str]:
        """Limit → what holds it."""
        grouped = {home.controller: f"cgroup v{home.version}" for home in self._homes}
        counted = [] if os.getuid() == 0 else ["rlimit of the user"]
        return {
            "memory": self._join(grouped.get("memory"), EACH),
            "cpu": self._join(EACH),
            "file_size": EACH,
            "open_files": EACH,
            "processes": self._join(grouped.get("pids"), *counted),
        }

    def _join(self, *means: str | None) -> str:
        there = [one for one in means if one] + [WATCHED] * self._is_measurable
        return ", ".join(there) or NOTHING

    def room_for(self, limits: RunLimits) -> Room | None:
        """A group of its own for a runner; None where there are none."""
        if not self._homes:
            return None
        return Room(self._homes, f"{cgroups.NAME}-{os.getpid()}-{next(self._numbers)}", limits)
