"""How many server processes there are, and what each may hold in memory: its part of the settings.

Settings are of a server as a whole, however many processes it has. A part is never so small that
one large body, or one busy tenant's window, would not fit. Only bounds on memory are divided: what
a tenant may do is judged by the owner of its shard, whichever process that is.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairway.core.server_processes import part_of, processes_by_cores
from fairway.runtime.settings import Settings

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
MB = 1 << 20
#: By setting: what a process needs however many there are.
LEAST = {
    "results_waiting_bytes_max": 32 * MB,
    "unread_bytes_max": 32 * MB,
    "window_bytes": 16 * MB,
    "window_jobs": 20_000,
}
BODIES_LEAST = 4  # of the largest that a request may have
UNEVEN = 2  # whoever is idle takes the next connection: one may have twice its part
CONNECTIONS_LEAST = 1000


def processes_wanted(settings: Settings) -> int:
    """As many as were asked for, else by the cores that this program may use."""
    return settings.server_processes or processes_by_cores(_cores())


def _cores() -> int:
    """Those that we may run on, or the processor time that a container may have."""
    cores = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = CPU_MAX.read_text().split()
        return min(cores, math.ceil(int(quota) / int(period)))  # `max` is no number: no limit
    return cores


def of_one_process(settings: Settings) -> Settings:
    """The settings of one of `server_processes`; with one they stay as they are."""
    processes = max(settings.server_processes, 1)
    parts: dict[str, Any] = {
        name: part_of(getattr(settings, name), processes, least) for name, least in LEAST.items()
    }
    bodies = settings.body_bytes_max * BODIES_LEAST
    parts["body_room_bytes_max"] = part_of(settings.body_room_bytes_max, processes, bodies)
    connections = part_of(settings.connections_max * UNEVEN, processes, CONNECTIONS_LEAST)
    parts["connections_max"] = min(settings.connections_max, connections)
    return replace(settings, **parts)
