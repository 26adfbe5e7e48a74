"""Jobs that stepped aside because a key of theirs is full: nobody behind them waits for that.

They lie under the key they wait for, the one that would go first on top, and are not looked at
again before a place under it is free. So many in all, and nobody has more than half of what the
others leave: whoever comes last finds room. A job that finds none stays in the store, and its
stream with it (`limited.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from fairway.core.backlog.key_limits import KeyName
from fairway.core.backlog.priority import AGEING_MS
from fairway.core.ids import ShardId, TenantId, shard_of
from fairway.core.job import QueuedJob, due_ms_of

JOBS_TOTAL = 40_000
BYTES_TOTAL = 16 << 20
JOBS_PER_TENANT = 4_000

Entry: TypeAlias = tuple[int, str, QueuedJob]


class ParkedJobs:
    def __init__(self, jobs_total: int = JOBS_TOTAL, bytes_total: int = BYTES_TOTAL) -> None:
        self._jobs_total = jobs_total
        self._bytes_total = bytes_total
        self._under: dict[KeyName, list[Entry]] = {}  # heaps
        self._jobs_of: dict[TenantId, int] = defaultdict(int)
        self._bytes_of: dict[TenantId, int] = defaultdict(int)
        self._bytes = 0
        self.names: dict[str, KeyName] = {}  # job → what it waits for

    def __len__(self) -> int:
        return len(self.names)

    def count(self, tenant: TenantId) -> int:
        return self._jobs_of.get(tenant, 0)

    def waits_under(self, name: KeyName) -> bool:
        return name in self._under

    def most(self, tenant: TenantId) -> int:
        """How many jobs a tenant may have here, as things stand."""
        others = len(self.names) - self.count(tenant)
        return min(JOBS_PER_TENANT, (self._jobs_total - others) // 2)

    def has_room(self, tenant: TenantId, size_bytes: int = 0) -> bool:
        mine_bytes = self._bytes_of.get(tenant, 0)
        most_bytes = (self._bytes_total - self._bytes + mine_bytes) // 2
        return self.count(tenant) < self.most(tenant) and mine_bytes + size_bytes <= most_bytes

    def put(self, name: KeyName, job: QueuedJob) -> None:
        rank = due_ms_of(job) - job.priority * AGEING_MS
        heappush(self._under.setdefault(name, []), (rank, job.id, job))
        self.names[job.id] = name
        self._count(job, +1)

    def first(self, name: KeyName) -> QueuedJob | None:
        """Who goes next of those that wait for this key; it stays."""
        entries = self._under.get(name)
        return entries[0][2] if entries else None

    def take(self, name: KeyName) -> QueuedJob:
        """`first`, which waits here no more."""
        entries = self._under[name]
        job = heappop(entries)[2]
        if not entries:
            del self._under[name]
        del self.names[job.id]
        self._count(job, -1)
        return job

    def drop(self, ids: Iterable[str]) -> list[QueuedJob]:
        """Those of these jobs that are here are gone; a key is gone through once for all."""
        gone: dict[KeyName, set[str]] = defaultdict(set)
        for job_id in ids:
            if (name := self.names.get(job_id)) is not None:
                gone[name].add(job_id)
        return [job for name, each in gone.items() for job in self._drop(name, each)]

    def drop_shard(self, shard: ShardId) -> list[QueuedJob]:
        return self.drop([job_id for job_id in self.names if shard_of(job_id) == shard])

    def _drop(self, name: KeyName, ids: set[str]) -> list[QueuedJob]:
        entries = self._under.pop(name)
        if left := [entry for entry in entries if entry[1] not in ids]:
            heapify(left)
            self._under[name] = left
        dropped = [entry[2] for entry in entries if entry[1] in ids]
        for job in dropped:
            del self.names[job.id]
            self._count(job, -1)
        return dropped

    def _count(self, job: QueuedJob, sign: int) -> None:
        self._jobs_of[job.tenant] += sign
        self._bytes_of[job.tenant] += sign * len(job.payload)
        self._bytes += sign * len(job.payload)
        if not self._jobs_of[job.tenant]:
            del self._jobs_of[job.tenant], self._bytes_of[job.tenant]
