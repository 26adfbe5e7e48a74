"""Invented worlds for the property tests: tenants, loads, naps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.core.fair_simulation import ENDLESS, SECOND, Load, Simulation

from fairway.core.fair_share.fairness import Entitlement

weights = st.sampled_from([1, 2, 3, 5, 10, 10, 10, 100])
run_times = st.integers(50_000, 4 * SECOND)


@st.composite
def loads(draw: st.DrawFn, *, jobs: int = ENDLESS, most: int = 5) -> dict[int, Load]:
    """Two or more tenants that always have work, known rightly or wrongly."""
    return {
        tenant: Load(
            terms=Entitlement(weight=draw(weights)),
            run_us=tuple(draw(st.lists(run_times, min_size=1, max_size=3))),
            believed_us=draw(st.none() | st.integers(1_000, 30 * SECOND)),
            jobs=jobs if jobs == ENDLESS else draw(st.integers(1, jobs)),
        )
        for tenant in range(1, draw(st.integers(2, most)) + 1)
    }


slots = st.integers(1, 12)
moments = st.integers(0, 20 * SECOND)
turns_us = st.sampled_from([0, 500, 100_000, SECOND])  # these pools are small and their jobs long


@st.composite
def naps(draw: st.DrawFn, tenants: int = 5) -> list[tuple[int, int, int]]:
    """Tenants that fall asleep for a while: who, when, how long."""
    nap = st.tuples(st.integers(1, tenants), moments, st.integers(1, 8 * SECOND))
    return draw(st.lists(nap, max_size=8))


def with_naps(sim: Simulation, plan: list[tuple[int, int, int]]) -> Simulation:
    for tenant, from_us, nap_us in plan:
        if tenant in sim.loads:
            sim.at(from_us, lambda who=tenant: sim.sleep(who))  # type: ignore[misc]
            sim.at(from_us + nap_us, lambda who=tenant: sim.wake(who))  # type: ignore[misc]
    return sim


def known(loads: dict[int, Load]) -> dict[int, Load]:
    """The same world, where the scheduler knows the longest run of each tenant."""
    return {t: replace(load, believed_us=max(load.run_us)) for t, load in loads.items()}


def with_terms(loads: dict[int, Load], field: str, values: list[int]) -> dict[int, Load]:
    """The same world, where one field of the terms differs from tenant to tenant."""
    changed = {}
    for (tenant, load), value in zip(loads.items(), values, strict=False):
        terms: dict[str, Any] = {field: value}
        changed[tenant] = replace(load, terms=replace(load.terms, **terms))
    return changed
