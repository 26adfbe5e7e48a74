"""Jobs that stepped aside because a key of theirs is full: nobody behind them waits for that.

They lie under the key they wait for, those that name the same number in one line, the one that
would go first on top, and are not looked at again before there is a place for its line: who says 3
does not wait for one before it that says 1.

So many in all, and nobody has more than half of what the others leave: whoever comes last finds
room. A job that finds none stays in the store, and its stream with it (`limited.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from msgspec import Struct

from fairway.core.backlog.key_limits import KeyName
from fairway.core.backlog.priority import AGEING_MS
from fairway.core.backlog.streams import Stream
from fairway.core.ids import ShardId, TenantId
from fairway.core.job import QueuedJob, due_ms_of, weight_bytes
from fairway.core.ownership.tenant_shards import TenantShards

JOBS_TOTAL = 40_000
BYTES_TOTAL = 16 << 20
JOBS_PER_TENANT = 4_000
LINES_PER_KEY = 8  # a look at a key is a look at each

#: Its rank, if others wait in its line, and its id: who goes first comes first. Then the job, the
#: stream that it stepped out of, and its weight in bytes.
Entry: TypeAlias = tuple[int, str, QueuedJob, Stream | None, int]


class ParkedSize(Struct, gc=False):
    """What one tenant takes of it."""

    jobs: int = 0
    size_bytes: int = 0


class ParkedJobs:
    def __init__(self, jobs_total: int = JOBS_TOTAL, bytes_total: int = BYTES_TOTAL) -> None:
        self._jobs_total = jobs_total
        self._bytes_total = bytes_total
        self._under: dict[KeyName, dict[int, list[Entry]]] = {}  # by their number: heaps
        self.rooms: dict[TenantId, ParkedSize] = {}  # of tenants with any
        self._bytes = 0
        self.names: dict[str, KeyName] = {}  # job → what it waits for

    def __len__(self) -> int:
        return len(self.names)

    def count(self, tenant: TenantId) -> int:
        return self.rooms.get(tenant, _NOTHING_PARKED).jobs

    @property
    def keys(self) -> int:
        """How many keys somebody waits for."""
        return len(self._under)

    def waits_under(self, name: KeyName) -> bool:
        return name in self._under

    def most(self, tenant: TenantId) -> int:
        """How many jobs a tenant may have here, as things stand."""
        others = len(self.names) - self.count(tenant)
        return min(JOBS_PER_TENANT, (self._jobs_total - others) // 2)

    def has_room(self, tenant: TenantId, size_bytes: int = 0) -> bool:
        return self._has_place(self.rooms.get(tenant, _NOTHING_PARKED), size_bytes)

    def _has_place(self, room: ParkedSize, size_bytes: int) -> bool:
        mine, mine_bytes = room.jobs, room.size_bytes
        if mine >= JOBS_PER_TENANT or mine >= (self._jobs_total - len(self.names) + mine) // 2:
            return False  # as `most` says
        return mine_bytes + size_bytes <= (self._bytes_total - self._bytes + mine_bytes) // 2

    def put(self, name: KeyName, most: int, job: QueuedJob, stream: Stream | None = None) -> bool:
        """It starts when fewer than `most` places are taken; answers False where it has no room."""
        tenant, job_id, size_bytes = job.tenant, job.id, weight_bytes(job)
        room = self.rooms.get(tenant) or ParkedSize()
        if not self._has_place(room, size_bytes):
            return False
        entry, lines = (0, job_id, job, stream, size_bytes), self._under.get(name)
        if lines is None:
            self._under[name] = {most: [entry]}
        else:
            _join(_line_of(lines, most), entry)
        self.names[job_id] = name
        self.rooms[tenant] = room
        room.jobs += 1
        room.size_bytes += size_bytes
        self._bytes += size_bytes
        return True

    def take(self, name: KeyName, used: int) -> Entry | None:
        """Who goes next while so many places of this key are taken; it waits here no more."""
        lines = self._under.get(name)
        if lines is None:
            return None
        if len(lines) == 1:
            [most] = lines
        else:
            fitting = [most for most in lines if used < most]
            most = min(fitting, key=lambda one: _ranked(lines[one][0]), default=used)
        if used >= most:
            return None
        line = lines[most]
        entry = heappop(line)
        if not line:
            del lines[most]
        self._gone(name, entry)
        return entry

    def drop(self, ids: Iterable[str]) -> list[QueuedJob]:
        """Those of these jobs that are here are gone; a key is gone through once for all."""
        gone: dict[KeyName, set[str]] = defaultdict(set)
        for job_id in ids:
            if (name := self.names.get(job_id)) is not None:
                gone[name].add(job_id)
        return [job for name, each in gone.items() for job in self._drop(name, each)]

    def drop_shards(
        self, gone: Collection[ShardId], tenant_shards: TenantShards
    ) -> list[QueuedJob]:
        homes = {job: tenant_shards.of_job(name[0], job) for job, name in self.names.items()}
        return self.drop([job for job, shard in homes.items() if shard in gone])

    def drop_tenant(self, tenant: TenantId) -> list[QueuedJob]:
        return self.drop([job for job, name in self.names.items() if name[0] == tenant])

    def _drop(self, name: KeyName, ids: set[str]) -> list[QueuedJob]:
        lines, dropped = self._under[name], list[Entry]()
        for most, entries in list(lines.items()):
            dropped += [entry for entry in entries if entry[1] in ids]
            if left := [entry for entry in entries if entry[1] not in ids]:
                heapify(left)
                lines[most] = left
            else:
                del lines[most]
        for entry in dropped:
            self._gone(name, entry)
        return [entry[2] for entry in dropped]

    def _gone(self, name: KeyName, entry: Entry) -> None:
        _, job_id, job, _, size_bytes = entry
        if not self._under.get(name, True):
            del self._under[name]
        del self.names[job_id]
        room = self.rooms[job.tenant]
        room.jobs -= 1
        room.size_bytes -= size_bytes
        self._bytes -= size_bytes
        if not room.jobs:
            del self.rooms[job.tenant]


_NOTHING_PARKED = ParkedSize()


def _ranked(entry: Entry) -> Entry:
    """One that is alone in its line, as most are, needs no rank."""
    job = entry[2]
    return (due_ms_of(job) - job.priority * AGEING_MS, *entry[1:])


def _join(line: list[Entry], entry: Entry) -> None:
    if len(line) == 1:
        line[0] = _ranked(line[0])
    heappush(line, _ranked(entry) if line else entry)


def _line_of(lines: dict[int, list[Entry]], most: int) -> list[Entry]:
    """Where a job with this number waits: of very many numbers, with those of the next lower."""
    if most not in lines and len(lines) >= LINES_PER_KEY:
        if lower := [number for number in lines if number < most]:
            return lines[max(lower)]
        lines[most] = lines.pop(min(lines))
    return lines.setdefault(most, [])
