"""Quantiles by nearest rank, and Jain's index."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.rig.quantile import jain, quantile


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
