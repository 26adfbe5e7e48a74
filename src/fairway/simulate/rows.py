"""The store of a simulation: rows of queued jobs by stream, and of those that are to run later.

It answers what PostgreSQL would be asked: the next jobs of a stream past a cursor, and whose time
has come. Nothing here decides; a row is there from acceptance to the end of its job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import islice

from fairway.core.backlog.streams import StreamKey, key_of
from fairway.core.ids import TenantId
from fairway.core.job import QueuedJob


class Rows:
    def __init__(self) -> None:
        self._queued: dict[StreamKey, dict[str, QueuedJob]] = {}

    def put(self, job: QueuedJob) -> None:
        """Written, or written anew."""
        self._queued.setdefault(key_of(job), {})[job.id] = job

    def drop(self, job: QueuedJob) -> None:
        stream = self._queued.get(key_of(job))
        if stream is not None:
            stream.pop(job.id, None)

    def after(
        self, key: StreamKey, cursor: str, most: int, runs: Callable[[str], bool]
    ) -> list[QueuedJob]:
        """The oldest jobs past a cursor that do not run."""
        stream = self._queued.get(key, {})
        ids = sorted(one for one in stream if one > cursor)
        return [stream[job_id] for job_id in islice((one for one in ids if not runs(one)), most)]

    def __len__(self) -> int:
        return sum(map(len, self._queued.values()))


class DueJobs:
    """Jobs that are to run later, in the order of their moments; due ones by tenant."""

    def __init__(self) -> None:
        self._later: list[tuple[int, str, QueuedJob]] = []
        self._due: dict[TenantId, deque[QueuedJob]] = {}

    def put(self, due_us: int, job: QueuedJob) -> None:
        heappush(self._later, (due_us, job.id, job))

    def __len__(self) -> int:
        return len(self._later) + sum(map(len, self._due.values()))

    @property
    def next_us(self) -> int | None:
        """When the first comes due that is not yet."""
        return self._later[0][0] if self._later else None

    def come_due(self, now_us: int) -> list[TenantId]:
        """Whose time has come; answers all tenants with such jobs."""
        while self._later and self._later[0][0] <= now_us:
            job = heappop(self._later)[2]
            self._due.setdefault(job.tenant, deque()).append(job)
        return list(self._due)

    def take(self, tenant: TenantId, most: int) -> list[QueuedJob]:
        mine = self._due[tenant]
        found = [mine.popleft() for _ in range(min(most, len(mine)))]
        if not mine:
            del self._due[tenant]
        return found
