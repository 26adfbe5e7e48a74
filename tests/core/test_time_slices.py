"""Looks at all streams: cut by streams, for a tenant may have as many as ten thousand others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.core.backlog.test_backlog import POOL, exhaust, make
from tests.core.timed_backlog import TimedBacklog
from tests.steps import lines_of

from fairway.core.backlog.counts import Survey
from fairway.core.backlog.streams import WindowLimits, key_of
from fairway.core.ids import PoolId, ShardId, TenantId
from fairway.core.job import QueuedJob
from fairway.core.time_slices import LOOKED_AT_ONCE

POOLS = (POOL, PoolId(POOL + 1), PoolId(POOL + 2))
EACH = 2_000
LINES_PER_STREAM = 100


@pytest.fixture
def jobs() -> list[QueuedJob]:
    """One in every stream of a crowd in three pools."""
    return [
        make(pool * EACH + n, ms=n, pool=pool, lane=n % 1000, priority=n // 1000)
        for pool in POOLS
        for n in range(EACH)
    ]


def lines_of_each(steps: Iterator[None]) -> list[int]:
    over, seen, lines = object(), list[object](), list[int]()
    while not seen or seen[-1] is not over:
        lines.append(lines_of(lambda: seen.append(next(steps, over))))
    return lines


def check(lines: list[int]) -> None:
    assert len(lines) > len(POOLS) * EACH // LOOKED_AT_ONCE
    assert max(lines) < LINES_PER_STREAM * LOOKED_AT_ONCE


def test_a_crowd_is_surveyed_in_steps(jobs: list[QueuedJob]) -> None:
    backlog, found = TimedBacklog(WindowLimits()), Survey()
    backlog.arrived(jobs)
    check(lines_of_each(backlog.counts.surveying(found)))
    assert found.depth == dict.fromkeys(POOLS, EACH)
    assert len({*found.oldest_ms.values()}) == 1


def test_a_crowd_is_pruned_in_steps(jobs: list[QueuedJob]) -> None:
    backlog = TimedBacklog(WindowLimits())
    backlog.arrived(jobs)
    check(lines_of_each(backlog.pruning()))
    assert len([*backlog.counts.streams_of(TenantId(1), POOLS)]) == len(jobs), "they have work"
    backlog.remove_all([(job.id, key_of(job)) for job in jobs])
    check(lines_of_each(backlog.pruning()))
    assert [*backlog.counts.streams_of(TenantId(1), POOLS)] == []
    assert backlog.counts.pool_tenants() == []


def test_long_windows_are_given_up_a_few_at_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a crowd, streams that had their turn go with all that is in memory of them."""
    monkeypatch.setattr("fairway.core.backlog.deferred.STREAMS_MAX", 20)
    backlog = TimedBacklog(WindowLimits())
    jobs = [make(n, ms=n, lane=n // 500) for n in range(10_500)]  # one lane too many
    backlog.arrived(jobs)
    for _ in range(2):
        backlog.noticed(key_of(jobs[-1]), jobs[-500].id)
        held = [backlog.windows.jobs_held]
        held += [backlog.windows.jobs_held for _ in backlog.pruning()]
        held.append(backlog.windows.jobs_held)
    assert (held[0], held[-1]) == (10_000, 0)
    most = max(before - after for before, after in pairwise(held))
    assert most <= 5 * 500


@pytest.mark.parametrize("are_empty", [False, True])
def test_what_goes_during_a_look_does_no_harm(jobs: list[QueuedJob], are_empty: bool) -> None:
    backlog, found = TimedBacklog(WindowLimits()), Survey()
    backlog.arrived(jobs)
    if are_empty:
        backlog.remove_all([(job.id, key_of(job)) for job in jobs])
    pruning, surveying = backlog.pruning(), backlog.counts.surveying(found)
    next(pruning)
    next(surveying, None)
    backlog.forget_shard(ShardId(0))
    exhaust(pruning)
    exhaust(surveying)
    assert backlog.counts.pool_tenants() == []
    backlog.arrived(jobs[:3])
    assert backlog.counts.depth(TenantId(1), POOLS) == 3
