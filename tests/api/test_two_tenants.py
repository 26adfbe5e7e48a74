"""Whatever one tenant says, uploads, runs or declares: another sees the same as without it.

A quiet tenant does what it does, once alone, and then again and again while an enemy plays every
message there is at random beside it. All that the quiet one can see, and all that operators and the
platform itself know of it, must be the same to the letter.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.api.enemy_tenant import DEEDS, EnemyTenant
from tests.api.house import House, own_house
from tests.api.quiet_tenant import QuietTenant
from tests.postgres import Server

EXAMPLES = int(os.environ.get("FAIRWAY_TWO_TENANTS_EXAMPLES", "10"))
STEPS = len(QuietTenant.STEPS)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
DEED = st.tuples(st.sampled_from(sorted(DEEDS)), st.integers(0, 59), VALUES)
PLAN = st.lists(st.lists(DEED, max_size=7), min_size=STEPS, max_size=STEPS)
Plan = list[list[tuple[str, int, Any]]]
NOTHING: Plan = [[] for _ in range(STEPS)]


@pytest.fixture(scope="module")
def street(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server for these two alone: what all tenants share is the same for each of them, too."""
    storage = f"file://{tmp_path_factory.mktemp('two')}"
    with own_house(postgres_server, "two_tenants", storage_url=storage) as house:
        yield house


class View(dict[str, Any]):
    """What the quiet tenant sees; short, where a failure shows it."""

    def __repr__(self) -> str:
        return f"<a view of {len(self)} parts>"


@pytest.fixture(scope="module")
def alone(street: House) -> View:
    """When nobody else is there."""
    return asyncio.run(seen(street, NOTHING))


async def seen(house: House, plan: Plan) -> View:
    """The quiet tenant's view in the end; the enemy plays beside each of its steps."""
    quiet = QuietTenant(house)
    enemy = EnemyTenant(house, quiet) if any(plan) else None
    try:
        for step, deeds in zip(QuietTenant.STEPS, plan, strict=True):
            work = [getattr(quiet, step)()]
            work += [enemy.play(deeds)] if enemy is not None else []
            await asyncio.gather(*work)
        return View(await quiet.view())
    finally:
        if enemy is not None:
            await enemy.leave()
        await quiet.leave()


def changed(alone: Any, beside: Any, place: str = "") -> list[str]:
    """Where two views differ, in words."""
    pairs: list[tuple[str, Any, Any]]
    if isinstance(alone, dict) and isinstance(beside, dict):
        names = [*alone, *(name for name in beside if name not in alone)]
        pairs = [(name, alone.get(name), beside.get(name)) for name in names]
    elif isinstance(alone, list) and isinstance(beside, list) and len(alone) == len(beside):
        pairs = [(str(n), *both) for n, both in enumerate(zip(alone, beside, strict=True))]
    else:
        return [] if alone == beside else [f"{place}: {alone!r} is {beside!r}"]
    return [one for name, a, b in pairs for one in changed(a, b, f"{place} > {name}")]


def test_the_quiet_tenant_sees_the_same_every_time(street: House, alone: View) -> None:
    assert changed(alone, asyncio.run(seen(street, NOTHING))) == []


def test_every_deed_at_once_changes_nothing_for_another(street: House, alone: View) -> None:
    """Each of them in each of its forms, at least once; which of them meet is left to chance."""
    deeds = [(name, number, {"n": number}) for number in range(6) for name in DEEDS]
    plan = [deeds[step::STEPS] for step in range(STEPS)]
    found = changed(alone, asyncio.run(seen(street, plan)))
    assert not found, "\n".join(found)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # an example takes seconds: as it is
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(plan=PLAN)
def test_an_enemy_changes_nothing_for_another(street: House, alone: View, plan: Plan) -> None:
    found = changed(alone, asyncio.run(seen(street, plan)))
    assert not found, "\n".join(found)
