"""Which pool a type belongs in: measured, sticky, and calm at the border."""

from __future__ import annotations

import bisect
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.insight.duration_histogram import WINDOW, DurationHistogram
from fairway.core.pool_classifier import (
    HOUR_US,
    RUNS_MIN,
    STICKY_US,
    TENANTS_KEPT,
    VIOLATIONS_MAX,
    Move,
    PoolClassifier,
    Span,
    pool_for,
)

S = 1_000_000
SHORT, MEDIUM, LONG = PoolId(1), PoolId(2), PoolId(3)
SPANS = (
    Span(SHORT, 1 * S, 10 * S),
    Span(MEDIUM, 60 * S, 300 * S),
    Span(LONG, HOUR_US * 1000, HOUR_US * 1000),
)
TYPE, TENANT = TypeId(7), TenantId(1)

runs = st.lists(st.integers(0, 3 * HOUR_US), min_size=1, max_size=400)


def fed(pool: int, *ran_us: int) -> PoolClassifier:
    classifier = PoolClassifier(SPANS)
    for one in ran_us:
        classifier.observe(TYPE, PoolId(pool), TENANT, one)
    return classifier


# -- durations ---------------------------------------------------------------------------------


@given(runs)
def test_a_percentile_is_right_to_within_an_eighth(ran: list[int]) -> None:
    durations = DurationHistogram()
    for one in ran:
        durations.add(one)
    exact = sorted(ran)[ceil(len(ran) * 950 / 1000) - 1]
    assert abs(durations.percentile_us() - exact) <= max(exact // 8, 8)


@given(runs, st.integers(8, 3 * HOUR_US))
def test_the_share_over_a_bound_errs_by_one_bucket_at_most(ran: list[int], bound: int) -> None:
    durations = DurationHistogram()
    for one in ran:
        durations.add(one)
    ordered = sorted(ran)
    most = (len(ran) - bisect.bisect_right(ordered, bound)) * 1000 // len(ran)
    least = (len(ran) - bisect.bisect_right(ordered, bound + bound // 8 + 1)) * 1000 // len(ran)
    assert least <= durations.share_over(bound) <= most


def test_memory_stays_the_same_and_the_past_fades() -> None:
    durations = DurationHistogram()
    for n in range(20 * WINDOW):
        durations.add((n * 7919) % (4 * HOUR_US))
        assert durations.runs <= WINDOW
    assert len(durations._counts) < 400
    for _ in range(4 * WINDOW):
        durations.add(20 * S)
    assert 18 * S <= durations.percentile_us() <= 22 * S


# -- moves -------------------------------------------------------------------------------------


def test_a_type_declared_short_whose_p95_is_20_s_goes_to_medium() -> None:
    move = fed(SHORT, *[20 * S] * RUNS_MIN).judge(TYPE, 0)
    assert move is not None
    assert (move.before, move.after, move.reason) == (SHORT, MEDIUM, "drift")
    assert 18 * S <= move.p95_us <= 22 * S


def test_a_few_runs_say_nothing() -> None:
    assert fed(SHORT, *[20 * S] * (RUNS_MIN - 1)).judge(TYPE, 0) is None


def test_a_rare_long_run_moves_nobody() -> None:
    assert fed(SHORT, *[S // 10] * 97, *[20 * S] * 3).judge(TYPE, 0) is None


@given(runs, st.sampled_from([SHORT, MEDIUM, LONG]))
def test_a_type_never_moves_to_a_pool_that_its_p95_does_not_fit(ran: list[int], pool: int) -> None:
    classifier = fed(pool, *ran)
    move = classifier.judge(TYPE, 0)
    if move is not None:
        span = SPANS[move.after - 1]
        assert move.after != move.before
        assert move.p95_us <= span.fits_us
        assert len(ran) >= RUNS_MIN


@given(st.lists(st.integers(600_000, 1_900_000), min_size=2, max_size=6))
def test_at_the_border_it_moves_once_and_stays(phases: list[int]) -> None:
    """Runs of 0.6 to 1.9 s by turns, each for hours, are no reason to go back and forth."""
    classifier, moves, pool = PoolClassifier(SPANS), 0, SHORT
    classifier.declare(TYPE, SHORT)
    for phase, ran_us in enumerate(phases):
        for _ in range(3000):
            classifier.observe(TYPE, PoolId(pool), TENANT, ran_us)
        now_us = phase * 2 * HOUR_US
        move = classifier.judge(TYPE, now_us)
        if move is not None:
            moves, pool = moves + 1, move.after
            classifier.settled(TYPE, pool, now_us)
    assert moves <= 1


def test_a_move_stands_for_an_hour() -> None:
    classifier = fed(MEDIUM, *[S // 100] * 50)
    classifier.declare(TYPE, SHORT)
    classifier.settled(TYPE, MEDIUM, 1000)
    assert classifier.judge(TYPE, 1000 + STICKY_US - 1) is None
    move = classifier.judge(TYPE, 1000 + STICKY_US)
    assert move == Move(MEDIUM, SHORT, classifier.p95_us(TYPE), "drift")


@given(runs, st.sampled_from([SHORT, MEDIUM, LONG]))
def test_nothing_goes_to_a_faster_pool_than_it_was_declared_for(ran: list[int], pool: int) -> None:
    classifier = fed(pool, *ran)
    classifier.declare(TYPE, PoolId(pool))
    move = classifier.judge(TYPE, 0)
    assert move is None or move.after > pool


def test_overruns_move_a_type_that_is_mostly_quick() -> None:
    classifier = fed(SHORT, *[S // 100] * 2000)
    for n in range(VIOLATIONS_MAX):
        classifier.violated(TYPE, SHORT, TENANT, n * S)
    assert classifier.judge(TYPE, 100 * S) is None
    classifier.violated(TYPE, SHORT, TENANT, 100 * S)
    move = classifier.judge(TYPE, 100 * S)
    assert move is not None
    assert (move.after, move.reason) == (MEDIUM, "violations")


def test_overruns_of_another_hour_do_not_count() -> None:
    classifier = fed(SHORT, S)
    for _ in range(VIOLATIONS_MAX):
        classifier.violated(TYPE, SHORT, TENANT, 0)
    classifier.violated(TYPE, SHORT, TENANT, HOUR_US + 300 * S)
    assert classifier.judge(TYPE, HOUR_US + 300 * S) is None


def test_what_overran_keeps_a_type_from_going_back() -> None:
    """Quick but for a few of a minute: it was moved for those, and they still come."""
    classifier = fed(MEDIUM, *[S // 100] * 995, *[60 * S] * 5)
    classifier.declare(TYPE, SHORT)
    assert classifier.judge(TYPE, 0) is None


def test_an_overrun_of_the_slowest_pool_moves_nobody() -> None:
    classifier = fed(LONG, *[HOUR_US] * 50)
    for n in range(3 * VIOLATIONS_MAX):
        classifier.violated(TYPE, LONG, TENANT, n)
    assert classifier.judge(TYPE, 1000) is None


def test_a_pool_of_resources_is_not_measured() -> None:
    classifier = fed(9, *[20 * S] * 100)
    assert not classifier.measures(PoolId(9))
    assert classifier.judge(TYPE, 0) is None


def test_whose_jobs_they_were_is_kept_within_bounds() -> None:
    classifier = PoolClassifier(SPANS)
    for tenant in range(10 * TENANTS_KEPT):
        classifier.observe(TYPE, SHORT, TenantId(tenant), 5)
    latest = list(range(9 * TENANTS_KEPT, 10 * TENANTS_KEPT))
    assert classifier.tenants_of(TYPE) == latest
    assert classifier.tenants_of(TypeId(99)) == []


@pytest.mark.parametrize(
    ("asked", "measured", "right"),
    [(SHORT, None, SHORT), (SHORT, MEDIUM, MEDIUM), (LONG, MEDIUM, MEDIUM), (9, MEDIUM, 9)],
)
def test_the_clock_beats_a_declaration_among_pools_of_duration(
    asked: PoolId, measured: PoolId | None, right: PoolId
) -> None:
    assert pool_for(asked, measured, frozenset({SHORT, MEDIUM, LONG})) == right
