"""Streams: the queued jobs of one tenant in one pool and lane, of one type and priority, by id."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from fairway.core.ids import LOWEST_JOB_ID, PoolId, ShardId, TenantId, TypeId, id_before
from fairway.core.job import QueuedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLimits:
    jobs_total: int = 150_000
    bytes_total: int = 64 << 20
    jobs_per_stream: int = 4_000
    jobs_per_read: int = 400


class StreamKey(NamedTuple):
    tenant: TenantId
    pool: PoolId
    type: TypeId
    priority: int
    lane: int = 0


def key_of(job: QueuedJob) -> StreamKey:
    return StreamKey(job.tenant, job.pool, job.type, job.priority, job.lane)


#: The fields of its key, for many jobs: as `key_of`, without a call for each.
KEY_FIELDS = attrgetter("tenant", "pool", "type", "priority", "lane")


class Stream:
    """The head of a stream in memory, and how far it was read."""

    __slots__ = (
        "blocked",
        "cursor",
        "heavy",
        "key",
        "late",
        "look",
        "missed",
        "more",
        "reading",
        "rewound",
        "shard",
        "stayed",
        "type",
        "window",
    )

    def __init__(self, key: StreamKey, shard: ShardId) -> None:
        self.key = key
        self.type = key.type  # at hand: it is asked for with every job that is taken
        self.shard = shard
        self.window: deque[QueuedJob] = deque()
        self.cursor: str = LOWEST_JOB_ID  # everything up to here was in the window once
        self.heavy = False  # its last read met jobs that must be read by bytes
        self.more = False  # the store may hold jobs past the cursor
        self.reading = False
        self.look = 0  # the number of its last read
        self.missed = False  # a job arrived that a read under way may not see
        self.rewound = False  # the cursor went back while a read was under way
        self.late: str | None = None  # a job before the cursor that came during a read
        self.stayed = False  # for a whole round, in a crowd
        self.blocked = False  # is held, or no worker runs its type: takes no memory

    def rewind(self) -> None:
        """Read it again from its head; what a read under way finds past that is out of turn."""
        self.cursor, self.rewound = LOWEST_JOB_ID, self.reading

    def left_out(self, job_id: str) -> None:
        """This one came, and was left to a read."""
        # One older than the cursor (a retry that came due) would never be read again by it.
        if job_id <= self.cursor:
            self.rewind()
        elif self.reading:  # which may not see it, and bring younger ones
            self.look_back(job_id)

    def look_back(self, first: str) -> None:
        """The store has a job this old that was never here: the next read brings it.

        A read under way is not for nothing: hints may come faster than reads end.
        """
        if self.reading:
            self.late = first if self.late is None else min(self.late, first)
        elif first <= self.cursor:
            self.cursor = id_before(first)

    def read_up_to(self, last: str | None) -> None:
        """A read has ended; `last` is the newest job it brought."""
        late, self.late = self.late, None
        if last is not None:
            self.cursor = last
        if late is not None and late <= self.cursor:
            self.cursor = id_before(late)
