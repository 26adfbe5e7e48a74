"""What `bench processes` makes of what it measured."""

from __future__ import annotations

import pytest

from fairway.bench.processes import AIMS, KINDS, LOADS, PARTS, Cost, figures_of


def test_a_ratio_is_of_the_turns_own_first_kind() -> None:
    """A turn on a slow machine is slow for all."""
    costs = {
        (kind.name, load): [
            Cost(dict.fromkeys(PARTS, slow * (1.0 + 0.1 * kind.processes)), 100.0)
            for slow in (1, 5, 2)
        ]
        for kind in KINDS
        for load in LOADS
    }
    figures = figures_of(costs)
    assert figures["batch_1p_1s_us"] == pytest.approx(6.6)
    assert figures["batch_1p_64s_ratio"] == 1.0
    assert figures["single_4p_64s_ratio"] == pytest.approx(1.4 / 1.1, abs=0.001)
    assert set(AIMS) == {name for name in figures if name.endswith("_ratio")}
