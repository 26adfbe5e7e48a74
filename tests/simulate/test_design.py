"""The design's fleet: the mix, exact means, the same arrivals for the same seed."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.pools import LONG, MEDIUM, SHORT
from fairway.simulate.design import (
    MIX,
    TIER_SHARES,
    Design,
    Runs,
    arrivals,
    home_of,
    tenants_of,
    wave,
)
from fairway.simulate.virtual_time import SECOND_US


def test_the_mix_is_that_of_the_design() -> None:
    shares = {pool: sum(one.share for one in MIX if one.pool is pool) for pool in (SHORT, MEDIUM)}
    assert shares == {SHORT: pytest.approx(0.9), MEDIUM: pytest.approx(0.09, rel=0.01)}
    minutes, hours = (one.share for one in MIX if one.pool is LONG)
    assert (minutes, hours) == (0.01, 0.0001)
    assert sum(one.share for one in MIX) == pytest.approx(1)
    assert sum(one.tenants for one in TIER_SHARES) == 110_000 - 0
    assert sum(one.load for one in TIER_SHARES) == pytest.approx(1)
    assert {home_of(one).name for one in MIX if one.name.startswith("declared")} == {"medium"}


@given(st.floats(0.001, 100), st.floats(1.5, 1000))
@tried(20)
def test_the_mean_of_runs_is_exact(least: float, factor: float) -> None:
    runs, steps = Runs(least, least * factor), 2_000
    drawn = [runs.draw((n + 0.5) / steps) for n in range(steps)]
    assert sum(drawn) / steps == pytest.approx(runs.mean, rel=0.01)
    assert min(drawn) >= runs.least
    assert max(drawn) <= runs.most * 1.000001


def test_arrivals_come_in_order_at_the_rate_and_the_same_again() -> None:
    design = Design(shards=4_096, seconds=600)
    tenants, loads = tenants_of(design)
    assert sum(loads) == pytest.approx(1)
    found = list(arrivals(design, tenants, loads))
    assert found == list(arrivals(design, tenants, loads))
    assert found[0] != next(iter(arrivals(Design(shards=4_096, seed=2), tenants, loads)))
    moments = [one.at_us for one in found]
    assert moments == sorted(moments)
    mean = sum(map(wave, range(10))) / 10
    counted = [one for one in found if one.counts]
    assert len(counted) / 600 == pytest.approx(design.jobs_per_second * mean, rel=0.35)
    assert all(one.due_us == 0 or one.due_us > one.at_us for one in counted)


def test_what_runs_already_when_the_hour_begins_fills_the_slots_of_the_mean() -> None:
    design = Design(shards=64)
    tenants, loads = tenants_of(design)
    before = [one for one in islice(arrivals(design, tenants, loads), 10_000) if not one.counts]
    busy = design.busy_slots(SHORT) + design.busy_slots(MEDIUM) + design.busy_slots(LONG)
    assert len(before) == pytest.approx(busy, rel=0.01)
    assert max(one.run_us for one in before) < 4 * 3600 * SECOND_US
