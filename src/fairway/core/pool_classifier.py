"""Which pool a job belongs in: as declared, unless the clock says otherwise.

    what the job asks for → what its type was registered with → what was measured, which beats both

Only pools of duration (short, medium, long) are measured: a job that asked for a resource, such as
`gpu`, stays with it. A type is looked at again when more than 1 % of its runs outlast its pool, and
moves to where its 95th percentile lies. A move stands for an hour. A type moves back only when it
is well inside the faster pool, so one that hovers at the border moves once and stays; and
never to a faster pool than was declared, for who declares a slow one has a reason. Apart from that,
a hundred gross overruns within an hour move it up at once.

Pure: facts and `now` in, a verdict out. It neither writes nor tells anybody.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.failure.sliding_window import SlidingCount
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.insight.duration_histogram import DurationHistogram

HOUR_US = 3_600_000_000
RUNS_MIN = 20  # fewer say nothing about a 95th percentile
DRIFT_SHARE = 10  # per mille of runs that outlast the pool
VIOLATIONS_MAX = 100  # in an hour
STICKY_US = HOUR_US
COMFORT = 2  # a faster pool must fit this many times over
TENANTS_KEPT = 100


class Span(NamedTuple):
    """A pool by duration: runs up to `fits_us` belong; past `overrun_us` they do harm."""

    pool: PoolId
    fits_us: int
    overrun_us: int


class Move(NamedTuple):
    """A verdict: this type goes from one pool to another, and why."""

    before: PoolId
    after: PoolId
    p95_us: int
    reason: str  # drift, violations


class TypeRecord:
    """What is known of one job type."""

    __slots__ = ("declared", "durations", "moved_us", "pool", "tenants", "violations")

    def __init__(self, pool: PoolId, moved_us: int | None = None) -> None:
        self.pool = pool  # where its jobs go now
        self.declared = pool  # it is never moved to a faster one
        self.moved_us = moved_us  # when the last move was made
        self.durations = DurationHistogram()
        self.violations = SlidingCount(HOUR_US)  # gross overruns: bad; of which pool, see `observe`
        self.tenants: dict[TenantId, None] = {}  # whose jobs these were, the latest last

    def seen(self, tenant: TenantId) -> None:
        self.tenants.pop(tenant, None)
        self.tenants[tenant] = None
        if len(self.tenants) > TENANTS_KEPT:
            del self.tenants[next(iter(self.tenants))]


class PoolClassifier:
    """All job types of the pools of duration, fastest first."""

    def __init__(self, spans: tuple[Span, ...]) -> None:
        self._spans = spans
        self._ranks = {span.pool: rank for rank, span in enumerate(spans)}
        self._types: dict[TypeId, TypeRecord] = {}

    def measures(self, pool: PoolId) -> bool:
        """Whether jobs of this pool are classified at all."""
        return pool in self._ranks

    def record_of(self, type_id: TypeId, pool: PoolId) -> TypeRecord:
        record = self._types.get(type_id)
        if record is None:
            record = self._types[type_id] = TypeRecord(pool)
        return record

    def declare(self, type_id: TypeId, pool: PoolId) -> None:
        """What whoever wrote the handler said."""
        self.record_of(type_id, pool).declared = pool

    def forget(self, type_id: TypeId) -> None:
        self._types.pop(type_id, None)

    def settled(self, type_id: TypeId, pool: PoolId, moved_us: int | None) -> None:
        """A type was moved, here or by another server; its counts begin anew."""
        record = self.record_of(type_id, pool)
        if (record.pool, record.moved_us) != (pool, moved_us):
            record.pool, record.moved_us = pool, moved_us
            record.violations.clear()

    def observe(self, type_id: TypeId, pool: PoolId, tenant: TenantId, ran_us: int) -> None:
        """A run of this type ended in a pool of duration."""
        record = self.record_of(type_id, pool)
        record.durations.add(ran_us)
        record.seen(tenant)

    def violated(self, type_id: TypeId, pool: PoolId, tenant: TenantId, now_us: int) -> None:
        """A run outlasts its pool by so much that others suffer."""
        record = self.record_of(type_id, pool)
        record.violations.add(now_us, bad=1)
        record.seen(tenant)

    def judge(self, type_id: TypeId, now_us: int) -> Move | None:
        """Where the type should go instead of where it is; None: it may stay."""
        record = self._types.get(type_id)
        if record is None or not self.measures(record.pool):
            return None
        if record.moved_us is not None and now_us - record.moved_us < STICKY_US:
            return None
        rank, p95_us = self._ranks[record.pool], record.durations.percentile_us()
        record.violations.slide(now_us)
        if record.violations.bad > VIOLATIONS_MAX and rank + 1 < len(self._spans):
            after = max(rank + 1, self._rank_for(record.durations))
            return Move(record.pool, self._spans[after].pool, p95_us, "violations")
        after = self._drifted(record, rank)
        if after == rank:
            return None
        return Move(record.pool, self._spans[after].pool, p95_us, "drift")

    def _drifted(self, record: TypeRecord, rank: int) -> int:
        durations = record.durations
        if durations.runs < RUNS_MIN:
            return rank
        right = self._rank_for(durations)
        if right > rank:
            span = self._spans[rank]
            return right if durations.share_over(span.fits_us) > DRIFT_SHARE else rank
        return self._fallen(record, rank)

    def _rank_for(self, durations: DurationHistogram) -> int:
        """The fastest pool that the 95th percentile fits."""
        p95_us = durations.percentile_us()
        fits = [n for n, span in enumerate(self._spans[:-1]) if p95_us <= span.fits_us]
        return fits[0] if fits else len(self._spans) - 1

    def _fallen(self, record: TypeRecord, rank: int) -> int:
        """The fastest pool that it fits with room to spare, with hardly an overrun there."""
        floor = self._ranks.get(record.declared, 0)
        for faster, span in list(enumerate(self._spans[:rank]))[floor:]:
            fits = record.durations.percentile_us() * COMFORT <= span.fits_us
            comfortable = record.durations.share_over(span.fits_us) * COMFORT <= DRIFT_SHARE
            harmless = record.durations.share_over(span.overrun_us) == 0
            if fits and comfortable and harmless:
                return faster
        return rank

    def types(self) -> list[TypeId]:
        return list(self._types)

    def tenants_of(self, type_id: TypeId) -> list[TenantId]:
        """Whose jobs of this type were seen lately."""
        return list(self._types[type_id].tenants) if type_id in self._types else []

    def p95_us(self, type_id: TypeId) -> int:
        record = self._types.get(type_id)
        return record.durations.percentile_us() if record else 0


def pool_for(asked: PoolId, measured: PoolId | None, measurable: frozenset[PoolId]) -> PoolId:
    """What was asked for, unless it is a pool of duration and the clock says otherwise."""
    return measured if measured is not None and asked in measurable else asked
