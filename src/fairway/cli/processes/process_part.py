"""What one of several server processes may hold in memory: its part of what the settings say.

Settings are of a server as a whole, however many processes it has. A part is never so small that
one large body, or one busy tenant's window, would not fit. Only bounds on memory are divided: what
a tenant may do is judged by the owner of its shard, whichever process that is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairway.core.server_processes import part_of
from fairway.runtime.settings import Settings

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
