"""What jobs did, counted by batch: by pool, job type and tenant for the minute, by pool for ever.

The dispatcher's loop calls this once a batch; a job costs it one look into a dictionary. There are
so many cells at most: what is new when they are full is counted for its pool alone. Of the second
half a tenant with many types has no more for each of them: its own are counted together there, so
that few tenants cannot hide the others. No clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.insight.buckets import add_to, bucket_of, count_in, sample_step
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State

CELLS_MAX = 20_000  # some ten megabytes
TENANT_CELLS = 100  # that each tenant may have when half of all are taken
OTHER_TYPE, OTHER_TENANT = TypeId(0), TenantId(0)

CellKey: TypeAlias = tuple[PoolId, TypeId, TenantId]

#: What is counted, in the order in which it is told.
COUNTED = ("accepted", "started", "succeeded", "failed", "retried", "dead", "ended")


class JobCounts:
    """Of jobs that came, and of runs that began and ended; a run that failed is retried, or its job
    is dead, or its job was cancelled or goes to another worker."""

    __slots__ = (*COUNTED, "pickup", "run", "whole")

    def __init__(self) -> None:
        self.accepted = self.started = self.succeeded = 0
        self.failed = self.retried = self.dead = 0
        self.ended = 0  # runs, however they ended
        self.pickup: list[int] = []  # from due to granted
        self.run: list[int] = []  # of runs that ended well
        self.whole: list[int] = []  # from due to recorded, of jobs that ended

    def add(self, other: JobCounts) -> None:
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        add_to(self.pickup, other.pickup)
        add_to(self.run, other.run)
        add_to(self.whole, other.whole)


class Cell(JobCounts):
    """Of one pool, type and tenant; it counts for its pool, too."""

    __slots__ = ("pool",)

    def __init__(self, pool: JobCounts) -> None:
        super().__init__()
        self.pool = pool


Cells: TypeAlias = dict[CellKey, Cell]


class Activity:
    def __init__(self, cells_max: int = CELLS_MAX) -> None:
        self._cells_max = cells_max
        self._cells: Cells = {}
        self._of_tenant: Counter[TenantId] = Counter()  # cells
        self.pools: dict[PoolId, JobCounts] = {}  # since the server began; they only grow

    def accepted(self, jobs: Iterable[QueuedJob]) -> None:
        """These are on disk."""
        cells = self._cells
        for job in jobs:
            key = (job.pool, job.type, job.tenant)
            cell = cells.get(key) or self._cell(key)
            cell.accepted += 1
            cell.pool.accepted += 1

    def started(self, jobs: Sequence[QueuedJob], waited_ms: Sequence[int]) -> None:
        """Leases on these were granted; `waited_ms` is of every `sample_step`-th of them."""
        cells = self._cells
        for job in jobs:
            key = (job.pool, job.type, job.tenant)
            cell = cells.get(key) or self._cell(key)
            cell.started += 1
            cell.pool.started += 1
        for job, ms in zip(jobs[:: sample_step(len(jobs))], waited_ms, strict=True):
            cell, bucket = cells[self._key(job)], bucket_of(ms)
            count_in(cell.pickup, bucket)
            count_in(cell.pool.pickup, bucket)

    def succeeded(self, jobs: Sequence[QueuedJob]) -> None:
        """Runs of these ended well, and that is on disk."""
        cells = self._cells
        for job in jobs:
            key = (job.pool, job.type, job.tenant)
            cell = cells.get(key) or self._cell(key)
            cell.succeeded += 1
            cell.ended += 1
            cell.pool.succeeded += 1
            cell.pool.ended += 1

    def took(self, job: QueuedJob, ran_ms: int | None, whole_ms: int) -> None:
        """How long one of those took, that were counted just now."""
        cell = self._cells[self._key(job)]
        for tally in (cell, cell.pool):
            if ran_ms is not None:
                count_in(tally.run, bucket_of(ran_ms))
            count_in(tally.whole, bucket_of(whole_ms))

    def settled(self, job: QueuedJob, state: State, *, is_failure: bool) -> None:
        """A run ended otherwise; its job goes on, or is over."""
        key = self._key(job)
        cell = self._cells.get(key) or self._cell(key)
        for tally in (cell, cell.pool):
            tally.ended += 1
            tally.failed += is_failure
            tally.retried += is_failure and state is not State.DEAD
            tally.dead += state is State.DEAD

    def take(self) -> Cells:
        """What was counted since the last time."""
        cells, self._cells = self._cells, {}
        self._of_tenant = Counter()
        return cells

    def _key(self, job: QueuedJob) -> CellKey:
        return self._let((job.pool, job.type, job.tenant))

    def _let(self, key: CellKey) -> CellKey:
        """The cell that this is counted in, there or to be made."""
        cells, (pool, _, tenant) = self._cells, key
        if key in cells:
            return key
        is_half_full = len(cells) >= self._cells_max // 2
        if is_half_full and self._of_tenant[tenant] >= TENANT_CELLS:
            key = (pool, OTHER_TYPE, tenant)
        return key if key in cells or len(cells) < self._cells_max else _other(pool)

    def _cell(self, key: CellKey) -> Cell:
        key = self._let(key)
        if (known := self._cells.get(key)) is not None:
            return known
        pool = self.pools.get(key[0])
        if pool is None:
            pool = self.pools[key[0]] = JobCounts()
        cell = self._cells[key] = Cell(pool)
        self._of_tenant[key[2]] += 1
        return cell


def _other(pool: PoolId) -> CellKey:
    return (pool, OTHER_TYPE, OTHER_TENANT)
