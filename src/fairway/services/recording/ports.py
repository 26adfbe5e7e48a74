"""What the recorder is given: how much it may hold, and whom it asks and tells. Decides nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from fairway.services.group_commit import Lingering
from fairway.services.sessions.sessions import End, Lease


class Bounds(NamedTuple):
    inline_bytes_max: int  # of a result; larger ones are kept elsewhere
    waiting_bytes_max: int  # of large results on their way there; and of small ones to their rows
    linger: Lingering  # of ends, for others


class RecorderPorts(NamedTuple):
    """Where large results go, and who hears what is on disk."""

    keep_result: Callable[[Lease, bytes], Awaitable[bytes]]
    on_ends: Callable[[Sequence[End]], None]
    on_scheduled: Callable[[], None]  # a retry is to be run later
