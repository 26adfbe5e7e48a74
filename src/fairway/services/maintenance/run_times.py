"""How long runs of a job type take, as the recorder and the registry tell it.

It only listens: what becomes of a type whose runs do not fit its pool is `reclassifier.py`, and
what it deserves is decided in `core/pool_classifier.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.core.ids import TypeId
from fairway.core.job_type import JobType
from fairway.core.pool_classifier import PoolClassifier, Span
from fairway.core.pools import SHORT, Pool, PoolTable
from fairway.runtime.clock import Clock
from fairway.services.sessions.sessions import End
from fairway.services.store_clock import StoreClock

LARGE_BATCH = 64  # of one larger than this,
SAMPLE_STEP = 8  # every so many-th run is looked at
NEVER_US = 1 << 62


class RunTimes:
    def __init__(self, pools: PoolTable, store_clock: StoreClock, clock: Clock) -> None:
        self._store_clock = store_clock
        self._clock = clock
        self.classifier = PoolClassifier(tuple(map(span_of, pools.of_duration())))

    def observe(self, ends: Sequence[End]) -> None:
        """Runs that ended well are on disk; of many, some are looked at.

        How long they take at a tenant's own workers says nothing about everybody's.
        """
        if ends[0].decision is not None:
            return
        step = 1 if len(ends) <= LARGE_BATCH else SAMPLE_STEP
        for end in ends[::step]:
            job = end.lease.job
            if end.lease.session.tenant is None and self.classifier.measures(job.pool):
                self.classifier.observe(job.type, job.pool, job.tenant, end.ran_us)

    def learn(self, job_type: JobType) -> None:
        """A type was registered, or moved, here or by another server."""
        declared = job_type.facts.pool
        if declared is not None and self.classifier.measures(declared):
            self.classifier.declare(job_type.id, declared)
        elif job_type.measured_pool is not None:
            self.classifier.declare(job_type.id, SHORT.number)  # where it went without a word
        if job_type.measured_pool is None or job_type.moved_at is None:
            return
        since = self._store_clock.now() - job_type.moved_at
        moved_us = self._clock.now_us() - round(since.total_seconds() * 1e6)
        self.classifier.settled(job_type.id, job_type.measured_pool, moved_us)

    def forget(self, type_id: TypeId) -> None:
        """Nobody uses this type any more."""
        self.classifier.forget(type_id)


def span_of(pool: Pool) -> Span:
    fits_us, overrun_us = pool.fits_seconds, pool.overrun_seconds
    return Span(
        pool.number,
        round((fits_us or 0) * 1e6),
        NEVER_US if overrun_us is None else round(overrun_us * 1e6),
    )
