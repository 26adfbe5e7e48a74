"""What the dispatcher needs of others: to write, to read, and to look at the clock of a job.

All of it is given at birth. Where the other needs the dispatcher in turn, `services/engine.py`
makes both and stands between them. Nothing here may be left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from fairway.core.ids import ShardId
from fairway.services.sessions.sessions import End, Lease


class Sorted(NamedTuple):
    """Leases just granted: which may go out, and how the others end with nobody hearing of them."""

    in_time: list[Lease]
    late: list[End]


SortOut: TypeAlias = Callable[[list[Lease]], Sorted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    write_leases: Callable[[list[Lease]], None]  # their workers must not hear of them before that
    lazy_lease: Callable[[], None]  # the first that is to be written should it still run soon
    record_ends: Callable[[list[End]], None]  # of one kind: all succeeded, or none
    forget_ends: Callable[[Collection[ShardId]], None]  # that wait to be written: others own these
    want_reads: Callable[[], None]  # windows run low
    drop_expired: SortOut  # of jobs that have a last moment to start
