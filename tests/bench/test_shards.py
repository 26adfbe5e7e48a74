"""What `bench shards` makes of what it measured."""

from __future__ import annotations

from math import isnan, nan

import pytest

from fairway.bench.shards import AIMS, MANY, ONE, PARTS, Pace, figures_of


def paces(*rates: float, us: float = 20.0) -> list[Pace]:
    return [Pace(rate, us) for rate in rates]


def test_a_ratio_is_of_the_same_turn() -> None:
    """A turn on a slow machine is slow for both."""
    found = {(name, ONE): paces(1000.0, 200.0, 500.0) for name in PARTS}
    found |= {(name, MANY): paces(900.0, 196.0, 490.0) for name in PARTS}
    figures = figures_of(found)
    assert (figures["single_many_per_s"], figures["single_one_per_s"]) == (490, 500)
    assert {figures[f"{name}_ratio"] for name in PARTS} == {0.98}
    assert AIMS.keys() <= figures.keys()


@pytest.mark.parametrize("slower", [1.0, 1.25, 2.0])
def test_a_ratio_does_not_say_that_the_machine_was_slow(slower: float) -> None:
    """While it is, what is the same for both takes as much longer."""
    found = {(name, ONE): paces(*[1000.0] * 3) for name in PARTS}
    rates = [980.0, 980.0 / slower, 980.0 / slower]
    found |= {(name, MANY): [Pace(rate, 20.0 * 980.0 / rate) for rate in rates] for name in PARTS}
    figures = figures_of(found)
    assert {figures[f"{name}_ratio"] for name in PARTS} == {0.98}
    assert {figures[f"{name}_rate_ratio"] for name in PARTS} == {round(0.98 / slower, 3)}


def test_a_ratio_is_the_mean_of_the_middle_half() -> None:
    """The machine may stand still for a whole turn."""
    found = {(name, ONE): paces(*[100.0] * 8) for name in PARTS}
    rates = (20.0, 50.0, 96.0, 98.0, 99.0, 101.0, 300.0, 400.0)
    found |= {(name, MANY): paces(*rates) for name in PARTS}
    figures = figures_of(found)
    assert {figures[f"{name}_ratio"] for name in PARTS} == {0.985}
    assert {figures[f"{name}_spread"] for name in PARTS} == {0.05}


def test_what_was_not_measured_is_no_figure() -> None:
    found = {(name, which): paces(100.0, 100.0) for name in PARTS for which in (ONE, MANY)}
    found["burn", MANY] = [Pace(100.0, nan), Pace(100.0, 20.0)]
    figures = figures_of(found)
    assert isnan(figures["burn_ratio"])
    assert not AIMS["burn_ratio"].holds(figures["burn_ratio"])
    assert figures["batch_ratio"] == 1.0
