"""What `bench shards` makes of what it measured."""

from __future__ import annotations

from fairway.bench.shards import AIMS, MANY, ONE, PARTS, figures_of


def test_a_ratio_is_of_the_same_turn() -> None:
    """A turn on a slow machine is slow for both."""
    rates = {(name, ONE): [1000.0, 200.0, 500.0] for name in PARTS}
    rates |= {(name, MANY): [900.0, 196.0, 490.0] for name in PARTS}
    figures = figures_of(rates)
    assert (figures["single_many_per_s"], figures["single_one_per_s"]) == (490, 500)
    assert {figures[f"{name}_ratio"] for name in PARTS} == {0.98}
    assert AIMS.keys() <= figures.keys()
