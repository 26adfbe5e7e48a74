"""Whatever happened is counted once for its pool, and once in one cell; cells are bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import Epoch, JobId, PoolId, TenantId, TypeId
from fairway.core.insight.activity import COUNTED, TENANT_CELLS, Activity, JobCounts
from fairway.core.insight.buckets import sample_step
from fairway.core.insight.minutes import (
    LINES_MAX,
    TENANT_TYPES_MAX,
    ActivityLine,
    LineKind,
    Minute,
    Subject,
)
from fairway.core.insight.sight import Levels
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State

subjects = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5))


def job(subject: tuple[int, int, int]) -> QueuedJob:
    pool, type_, tenant = subject
    return QueuedJob(
        JobId("0" * 8 + "-0000-7000-8000-" + "0" * 12),
        TenantId(tenant),
        PoolId(pool),
        TypeId(type_),
        0,
        0,
        Epoch(0),
        0,
        0,
        None,
        b"{}",
    )


def exhaust(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


def minute_of(activity: Activity) -> Minute:
    minute = Minute()
    exhaust(minute.adding(activity.take()))
    return minute


def lines_of(
    minute: Minute, levels: Mapping[tuple[LineKind, Subject], Levels]
) -> list[ActivityLine]:
    found: list[ActivityLine] = []
    exhaust(minute.telling(levels, found))
    return found


@given(st.lists(st.lists(subjects, min_size=1, max_size=20), max_size=10), st.integers(0, 8))
def test_sums_of_every_kind_are_the_same_sum(
    batches: list[list[tuple[int, int, int]]], cells_max: int
) -> None:
    activity, pools = Activity(cells_max), Counter[int]()
    for batch in batches:
        jobs = [job(one) for one in batch]
        activity.accepted(jobs)
        activity.started(jobs, [7] * len(jobs[:: sample_step(len(jobs))]))
        activity.succeeded(jobs)
        activity.took(jobs[0], 5, 9)
        pools.update(one[0] for one in batch)
    assert {pool: counts.accepted for pool, counts in activity.pools.items()} == pools
    ever = {pool: _values(counts) for pool, counts in activity.pools.items()}
    minute = minute_of(activity)
    of_pools = minute.sums[LineKind.POOL]
    assert {pool: _values(one) for (pool, _, _), one in of_pools.items()} == ever
    for kind in (LineKind.POOL, LineKind.TYPE, LineKind.TENANT):
        total = JobCounts()
        for one in minute.sums[kind].values():
            total.add(one)
        assert total.accepted == total.started == total.succeeded == sum(pools.values())
        assert sum(total.run) == sum(total.whole) == len(batches)
    assert activity.take() == {}, "a minute is told once"


def _values(counts: JobCounts) -> list[object]:
    return [getattr(counts, name) for name in (*COUNTED, "pickup", "run", "whole")]


@given(st.lists(subjects, max_size=100), st.integers(0, 6))
def test_cells_are_bounded_and_nothing_is_lost(
    came: list[tuple[int, int, int]], cells_max: int
) -> None:
    activity = Activity(cells_max)
    activity.accepted([job(one) for one in came])
    cells = activity.take()
    assert len(cells) <= cells_max + 3, "and one more for each pool"
    assert sum(cell.accepted for cell in cells.values()) == len(came)


def test_few_tenants_with_many_types_do_not_hide_the_others() -> None:
    """Nothing of theirs is lost either: it is counted as theirs, without the type."""
    cells_max = 4 * TENANT_CELLS
    activity, loud, quiet = Activity(cells_max), (1, 2), range(3, 30)
    jobs = [job((1, type_, tenant)) for type_ in range(1, cells_max) for tenant in loud]
    activity.accepted(jobs)
    activity.accepted([job((1, 1, tenant)) for tenant in quiet])
    activity.started(jobs, [7] * len(jobs[:: sample_step(len(jobs))]))
    minute = minute_of(activity)
    of_tenant = {tenant: one for (_, _, tenant), one in minute.sums[LineKind.TENANT].items()}
    assert {tenant: of_tenant[TenantId(tenant)].accepted for tenant in quiet} == dict.fromkeys(
        quiet, 1
    )
    for tenant in loud:
        counts = of_tenant[TenantId(tenant)]
        assert counts.accepted == counts.started == len(jobs) // 2


def test_one_tenant_with_many_types_leaves_lines_to_the_others() -> None:
    activity = Activity()
    for type_ in range(1, 2 * TENANT_TYPES_MAX):
        activity.accepted([job((1, type_, 1))] * 3)
    activity.accepted([job((1, 500, tenant)) for tenant in range(2, 12)])
    lines = lines_of(minute_of(activity), {})
    kept = Counter(line.subject[2] for line in lines if line.kind is LineKind.TENANT_TYPE)
    assert kept == {1: TENANT_TYPES_MAX - 10} | dict.fromkeys(range(2, 12), 1)


def test_types_of_one_tenant_leave_lines_to_those_of_others() -> None:
    activity = Activity()
    for type_ in range(1, 2 * LINES_MAX):
        activity.accepted([job((1, type_, 1))] * 3)
    others = range(1000, 1000 + LINES_MAX // 2)
    activity.accepted([job((1, type_, 2 + type_ % 7)) for type_ in others])
    lines = lines_of(minute_of(activity), {})
    kept = {line.subject[1] for line in lines if line.kind is LineKind.TYPE}
    assert kept >= set(others)
    assert len(kept) == LINES_MAX + 1, "and one for the rest"
    accepted = [line.counts.accepted for line in lines if line.kind is LineKind.TYPE]
    assert sum(accepted) == 3 * (2 * LINES_MAX - 1) + len(others), "nothing is lost"


def test_a_run_that_failed_is_retried_or_its_job_is_dead() -> None:
    activity, one = Activity(), job((1, 1, 1))
    activity.settled(one, State.SCHEDULED, is_failure=True)
    activity.settled(one, State.DEAD, is_failure=True)
    activity.settled(one, State.QUEUED, is_failure=False)
    activity.settled(one, State.CANCELLED, is_failure=False)
    counts = activity.pools[PoolId(1)]
    assert (counts.ended, counts.failed, counts.retried, counts.dead) == (4, 2, 1, 1)


@given(st.integers(1, 2 * LINES_MAX))
def test_lines_of_a_minute_are_bounded_and_the_rest_is_one_of_them(tenants: int) -> None:
    activity = Activity()
    activity.accepted([job((1, 1, tenant)) for tenant in range(1, tenants + 1)])
    activity.accepted([job((1, 1, tenants))] * 5)  # the busiest is named
    minute = minute_of(activity)
    lines = lines_of(minute, {})
    assert len({(line.kind, line.subject) for line in lines}) == len(lines)
    kept = {line.subject: line.counts for line in lines if line.kind is LineKind.TENANT}
    assert len(kept) == min(tenants, LINES_MAX + 1)
    assert sum(counts.accepted for counts in kept.values()) == tenants + 5
    assert (0, 0, tenants) in kept


def test_what_waits_is_told_of_who_did_nothing() -> None:
    subject = (PoolId(2), TypeId(0), TenantId(0))
    (line,) = lines_of(Minute(), {(LineKind.POOL, subject): Levels(3, 0, 8, 1200)})
    assert (line.subject, line.levels.queued, line.counts.accepted) == (subject, 3, 0)
