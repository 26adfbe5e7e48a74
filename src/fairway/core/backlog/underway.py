"""Jobs whose rows do not show yet how they stand: being inserted, or ended and not yet recorded.

A read shows the store as it was a moment ago: what is under way must not come in through it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fairway.core.backlog.reading import Reading
from fairway.core.backlog.streams import Stream
from fairway.core.ids import PoolId, ShardId, TenantId, shard_of
from fairway.core.job import QueuedJob
from fairway.core.ownership.tenant_shards import TenantShards


class JobsUnderway:
    def __init__(
        self, reading: Reading, parked: Mapping[str, object], tenant_shards: TenantShards
    ) -> None:
        self._reading = reading
        self._tenant_shards = tenant_shards
        self._parked = parked  # by id: they wait here for a place under a key
        # being written here: they arrive, a read must not bring them
        self.inserting_ids: set[str] = set()
        # ran here; the store shows them as queued until it is told
        self.unrecorded_ids: set[str] = set()
        self._elsewhere: dict[str, ShardId] = {}  # of these, where those are whose tenant was moved
        self._counts = 0  # of queued rows, that are under way
        # While there are: job → (pool, tenant), of what ran since and is not recorded.
        self._queue_of: dict[str, tuple[PoolId, TenantId]] = {}

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Queued rows are counted: until then it is remembered which queue each end is of."""
        self._counts += 1
        try:
            yield
        finally:
            self._counts -= 1
            if not self._counts:
                self._queue_of.clear()

    def unrecorded_queues(self) -> dict[str, tuple[PoolId, TenantId]]:
        """By job, of those that ran while somebody counts and that the store shows as queued."""
        return dict(self._queue_of)

    def ran(self, jobs: Sequence[QueuedJob]) -> None:
        """Their runs are over, which is not on disk yet."""
        self.unrecorded_ids.update([job.id for job in jobs])
        if self._counts:
            self._queue_of.update({job.id: (job.pool, job.tenant) for job in jobs})
        if self._tenant_shards.any_moved:
            for job in jobs:
                if (home := self._tenant_shards.elsewhere(job.tenant, job.id)) is not None:
                    self._elsewhere[job.id] = home

    def recorded(self, ids: Iterable[str]) -> None:
        self.unrecorded_ids.difference_update(ids)
        if self._queue_of:
            for job_id in ids:
                self._queue_of.pop(job_id, None)
        if self._elsewhere:
            for job_id in ids:
                self._elsewhere.pop(job_id, None)

    def unrecorded_shards(self) -> set[ShardId]:
        """Where the rows are that do not show yet how they stand."""
        return {*map(self._shard, self.unrecorded_ids)}

    def forget_shards(self, gone: Collection[ShardId]) -> set[str]:
        """They have other owners now; answers what is left of the others."""
        kept = {job_id for job_id in self.unrecorded_ids if self._shard(job_id) not in gone}
        self.unrecorded_ids = kept
        self._elsewhere = {job_id: at for job_id, at in self._elsewhere.items() if job_id in kept}
        self._queue_of = {job_id: of for job_id, of in self._queue_of.items() if job_id in kept}
        return kept

    def _shard(self, job_id: str) -> ShardId:
        moved = self._elsewhere.get(job_id) if self._elsewhere else None
        return shard_of(job_id) if moved is None else moved

    def news(
        self, jobs: list[QueuedJob], stream: Stream | None, held: Container[str], look: int
    ) -> list[QueuedJob]:
        """Those that are neither here nor under way; mostly all, which sets find out quickly."""
        ids: set[str] = {job.id for job in jobs}
        old = {job_id for job_id in ids if job_id in held}
        old |= (
            ids & self.inserting_ids
            | ids & self.unrecorded_ids
            | self._reading.ended_since(look, ids)
            | ids & self._parked.keys()
        )
        if stream is not None:
            old |= ids.intersection([job.id for job in stream.window])
        return [job for job in jobs if job.id not in old] if old else jobs

    def __contains__(self, job_id: str) -> bool:
        """Whether a row that says `queued` is about to be announced, waits here, or is old news."""
        return (
            job_id in self.inserting_ids
            or job_id in self.unrecorded_ids
            or job_id in self._parked
            or self._reading.is_old_news(job_id)
        )
