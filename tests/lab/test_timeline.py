"""Depth, rates and quantiles from the lives of jobs; quantiles; and when a run is not believed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.lab.measure.quantile import jain, quantile
from fairway.lab.measure.timeline import Life, rate_of, timeline
from fairway.lab.measure.validity import complaints

spans = st.tuples(*(st.floats(0, 5) for _ in range(4)))


@given(st.lists(spans, max_size=40))
def test_what_is_offered_is_completed_and_the_queue_ends_empty(
    gaps: list[tuple[float, float, float, float]],
) -> None:
    lives = [Life(a, a + b, a + b + c, a + b + c + d) for a, b, c, d in gaps]
    moments = timeline(lives, 0, 21, 1)
    assert sum(m.offered for m in moments) == len(lives)
    assert sum(m.completed for m in moments) == len(lives)
    assert moments[-1].depth == 0
    assert all(m.depth >= 0 for m in moments)


def test_depth_counts_who_is_accepted_and_not_started() -> None:
    lives = [Life(0, 0.1, 0.1, 2), Life(0, 0.1, 2.5, 4), Life(0, 0.1, 3.5, 5)]
    assert [m.depth for m in timeline(lives, 0, 5, 1)] == [2, 2, 1, 0, 0]
    assert [m.completed for m in timeline(lives, 0, 5, 1)] == [0, 0, 1, 0, 1]


def test_a_rate_counts_its_left_edge_and_not_its_right() -> None:
    assert rate_of([1, 2, 2.5, 3], 1, 3) == 1.5


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0.01, 1))
def test_a_quantile_was_measured_and_covers_its_share(values: list[float], q: float) -> None:
    found = quantile(values, q)
    assert found in values
    assert sum(value <= found for value in values) >= q * len(values) - 1e-9


def test_the_99th_of_a_hundred_is_the_99th() -> None:
    assert quantile(range(1, 101), 0.99) == 99
    assert quantile([7], 0.5) == 7
    assert math.isnan(quantile([], 0.5))


def test_jain_is_one_for_equal_shares_and_one_nth_for_one_who_has_all() -> None:
    assert jain([3, 3, 3, 3]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)


def test_a_generator_on_time_has_nothing_to_answer_for() -> None:
    assert complaints([0.001] * 1000, 1000) == []


def test_a_generator_behind_its_plan_makes_the_run_invalid() -> None:
    (why,) = complaints([0.001] * 900 + [0.2] * 100, 1000)
    assert "fell behind" in why
    assert "200 ms" in why


def test_requests_that_were_never_sent_make_the_run_invalid() -> None:
    (why,) = complaints([0.001] * 900, 1000)
    assert "100 of 1000" in why
