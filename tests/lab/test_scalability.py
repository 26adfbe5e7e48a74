"""The universal scalability law gives back what it was made from, and never less than nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.lab.measure.scalability import Law, fit

sizes = (1, 2, 3, 4, 6, 8)


@given(st.floats(1, 1e4), st.floats(0, 0.5), st.floats(0, 0.05))
def test_a_law_is_found_from_its_own_points(rate: float, contention: float, cost: float) -> None:
    law = Law(rate, contention, cost)
    found = fit([(n, law.at(n)) for n in sizes])
    assert all(math.isclose(found.at(n), law.at(n), rel_tol=1e-6) for n in sizes)


def test_linear_growth_has_no_contention_and_no_peak() -> None:
    law = fit([(1, 6.6), (2, 13.2), (3, 19.8), (4, 26.4)])
    assert law.rate == pytest.approx(6.6)
    assert law.contention == pytest.approx(0, abs=1e-9)
    assert law.peak == math.inf


def test_growth_beyond_linear_is_read_as_none_lost() -> None:
    """Noise can make four look like more than four ones; a share below zero would be nonsense."""
    law = fit([(1, 6.5), (2, 13.2), (3, 20.0), (4, 26.8)])
    assert law.contention == 0
    assert law.coherence == 0


def test_a_peak_is_where_more_is_slower() -> None:
    law = Law(100, 0.05, 0.01)
    assert law.peak == pytest.approx(9.75, abs=0.01)
    assert law.at(law.peak) > law.at(law.peak * 1.3)
    assert law.at(law.peak) > law.at(law.peak / 1.3)
