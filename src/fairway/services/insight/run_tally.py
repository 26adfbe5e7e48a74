"""Counts what runs came to, a batch at a time, as the recorder tells it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from fairway.core.ids import PoolId
from fairway.core.insight.buckets import sample_step
from fairway.core.job import due_ms_of
from fairway.core.lifecycle import State
from fairway.core.pools import PoolTable
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import Metrics
from fairway.services.sessions.sessions import End


class RunTally:
    def __init__(
        self,
        pools: PoolTable,
        metrics: Metrics,
        clock: Clock,
        also: Callable[[Sequence[End]], None],
    ) -> None:
        self._pools = pools
        self._metrics = metrics
        self._activity = metrics.activity
        self._clock = clock
        self._also = also  # who hears of the same ends

    def observe(self, ends: Sequence[End]) -> None:
        """These are on disk: all of them ended well, or none did."""
        if ends[0].decision is None:
            self._activity.succeeded([end.lease.job for end in ends])
            self._time(ends)
        else:
            self._settle(ends)
        self._also(ends)

    def _settle(self, ends: Sequence[End]) -> None:
        for end in ends:
            if (decision := end.decision) is None:
                continue
            job, is_failure = end.lease.job, end.failure is not None
            self._activity.settled(job, decision.state, is_failure=is_failure)
            name = self._pools.by_number[job.pool].name
            if decision.state.is_final:
                self._time([end])
            elif is_failure:
                self._metrics.retried.labels(name).inc()
            if decision.state is State.DEAD:
                self._metrics.dead.labels(name).inc()

    def _time(self, ends: Sequence[End]) -> None:
        """How long some of them took, from when they were due."""
        now_ms = self._clock.unix_ms()
        by_pool: dict[PoolId, list[float]] = defaultdict(list)
        for end in ends[:: sample_step(len(ends))]:
            job, is_success = end.lease.job, end.decision is None
            whole_ms = max(now_ms - due_ms_of(job), 0)
            self._activity.took(job, end.ran_us // 1000 if is_success else None, whole_ms)
            by_pool[job.pool].append(whole_ms / 1000)
        for pool, seconds in by_pool.items():
            self._metrics.end_to_end.observe_many(self._pools.by_number[pool].name, seconds)
