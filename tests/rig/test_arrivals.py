"""Plans of arrivals: right rate, in order, the same for the same seed."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fairway.rig.arrivals import Shape, plan, skewed_weights

rates = st.floats(0.5, 200)
lengths = st.floats(0.1, 30)
shapes = st.sampled_from(["paced", "poisson"])


@given(rates, lengths, shapes, st.integers(0, 99))
def test_a_plan_is_ordered_within_its_time_and_repeatable(
    rate: float, length: float, shape: Shape, seed: int
) -> None:
    found = plan(rate, length, shape=shape, seed=seed)
    assert found == sorted(found)
    assert all(0 <= at <= length + 1 / rate for at in found)
    assert found == plan(rate, length, shape=shape, seed=seed)


@given(rates, lengths)
def test_paced_arrivals_have_exactly_their_rate(rate: float, length: float) -> None:
    found = plan(rate, length)
    assert len(found) == round(rate * length)
    assert all(n / rate <= at < (n + 1) / rate for n, at in enumerate(found))


def test_poisson_arrivals_have_their_rate_and_bunch() -> None:
    found = plan(100, 100, shape="poisson")
    assert abs(len(found) - 10_000) < 400
    gaps = [b - a for a, b in pairwise(found)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert 0.9 < spread / mean < 1.1  # an exponential's spread is its mean; paced has about 0.4


def test_another_seed_is_another_plan() -> None:
    assert plan(5, 5, seed=1) != plan(5, 5, seed=2)


def test_the_first_tenant_has_the_skew_over_the_last() -> None:
    weights = skewed_weights(50, 100)
    assert round(weights[0] / weights[-1]) == 100
    assert weights == sorted(weights, reverse=True)
    assert skewed_weights(1, 100) == [1]
