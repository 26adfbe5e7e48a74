"""What `bench shards` makes of what it measured."""

from __future__ import annotations

import random
from math import isnan

from fairway.bench.shards import AIMS, MANY, ONE, PARTS, Rates, doubts_of, figures_of, turn


def rates_of(many: list[float], one: list[float]) -> Rates:
    return {(name, which): rates for name in PARTS for which, rates in ((MANY, many), (ONE, one))}


def test_a_ratio_is_of_the_same_pair() -> None:
    """A pair on a slow machine is slow for both."""
    figures = figures_of(rates_of([980.0, 196.0, 490.0], [1000.0, 200.0, 500.0]))
    assert (figures["single_many_per_s"], figures["single_one_per_s"]) == (490, 500)
    assert {figures[f"{name}_ratio"] for name in PARTS} == {0.98}
    assert AIMS.keys() <= figures.keys()
    assert doubts_of(figures) == []


def test_a_ratio_is_the_mean_of_the_middle_half() -> None:
    """The machine may stand still for a whole slice."""
    many = [20.0, 50.0, 96.0, 98.0, 99.0, 101.0, 300.0, 400.0]
    figures = figures_of(rates_of(many, [100.0] * 8))
    assert {figures[f"{name}_ratio"] for name in PARTS} == {0.985}
    assert {figures[f"{name}_within"] for name in PARTS} == {0.028}


def test_a_ratio_is_right_to_within_what_is_said() -> None:
    """Of 200 runs on a machine that is uneven by a tenth."""
    dice = random.Random(7)
    right = 0
    for _ in range(200):
        figures = figures_of(rates_of([dice.gauss(98, 10) for _ in range(80)], [100.0] * 80))
        assert 0.01 < figures["batch_within"] < 0.04
        right += abs(figures["batch_ratio"] - 0.98) <= figures["batch_within"]
    assert 180 <= right < 200


def test_an_uneven_machine_is_told() -> None:
    figures = figures_of(rates_of([80.0, 90.0, 110.0, 120.0], [100.0] * 4))
    assert doubts_of(figures)[0] == (
        "the machine was too uneven: batch is known to within 0.16 only"
    )


def test_who_goes_first_changes() -> None:
    assert (turn(0), turn(1), turn(2)) == ((ONE, MANY), (MANY, ONE), (ONE, MANY))


def test_what_was_not_measured_is_no_figure() -> None:
    rates = rates_of([100.0, 100.0], [100.0, 100.0])
    rates["burn", ONE] = [0.0, 100.0]
    figures = figures_of(rates)
    assert isnan(figures["burn_ratio"])
    assert not AIMS["burn_ratio"].holds(figures["burn_ratio"])
    assert figures["batch_ratio"] == 1.0
