"""The broken stick finds the limit it was bent at, with noise and whatever steps were tried."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from fairway.lab.measure.bend import Point, find_bend, slope


@given(st.floats(1, 100), st.lists(st.floats(0.1, 300), min_size=3, max_size=20))
def test_an_ideal_stick_is_found_exactly(limit: float, loads: list[float]) -> None:
    loads = [*loads, limit * 1.5, limit * 2, limit / 2]
    bend = find_bend([Point(load, min(load, limit)) for load in loads])
    assert math.isclose(bend.limit, limit, rel_tol=1e-9)
    assert bend.error < 1e-6 * limit
    assert bend.served_up_to < bend.not_served_from


@given(st.integers(0, 1000))
def test_noise_of_two_percent_moves_it_less_than_that(seed: int) -> None:
    dice = random.Random(seed)
    loads = (2, 4, 5, 6, 6.5, 7, 8, 10, 12, 14)
    points = [Point(x, min(x, 6.6) * dice.uniform(0.98, 1.02)) for x in loads]
    assert abs(find_bend(points).limit - 6.6) < 0.02 * 6.6


def test_without_a_point_beyond_it_there_is_no_limit() -> None:
    bend = find_bend([Point(1, 1), Point(2, 2), Point(3, 2.99)])
    assert math.isnan(bend.limit)
    assert bend.served_up_to == 3
    assert bend.not_served_from == math.inf


def test_nothing_measured_is_nothing_found() -> None:
    assert math.isnan(find_bend([]).limit)


def test_a_slope_is_how_fast_it_grows() -> None:
    assert slope([(0, 1), (1, 3), (2, 5)]) == 2
    assert slope([(0, 4), (5, 4)]) == 0
    assert slope([]) == 0
