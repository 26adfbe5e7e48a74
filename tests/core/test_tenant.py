"""A tenant's states: which acts lead where, for how long it can be brought back, what it hears."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import TenantId
from fairway.core.tenant import (
    TENANT_STATES,
    Tenant,
    TenantAct,
    TenantState,
    has_lapsed,
    limits_reached,
    state_after,
    suspended_sentence,
)

ACTS: tuple[TenantAct, ...] = ("suspend", "resume", "delete", "restore")
ORDER: tuple[TenantState, ...] = ("active", "suspended", "deleted")
acts, states = st.sampled_from(ACTS), st.sampled_from(TENANT_STATES)


@given(acts, states, st.booleans())
def test_an_act_that_is_repeated_changes_nothing_more(
    act: TenantAct, state: TenantState, may_suspend: bool
) -> None:
    after = state_after(act, state, may_suspend=may_suspend)
    if after is not None:
        assert state_after(act, after, may_suspend=may_suspend) == after


@given(states, st.lists(acts))
def test_nobody_goes_from_active_to_deleted_or_back_without_being_suspended(
    state: TenantState, done: list[TenantAct]
) -> None:
    walk = [state]
    for act in done:
        walk.append(state_after(act, walk[-1]) or walk[-1])
    places = [ORDER.index(one) for one in walk]
    assert all(abs(before - after) <= 1 for before, after in pairwise(places))


@given(acts, states)
def test_to_suspend_on_the_way_matters_to_a_deletion_alone(
    act: TenantAct, state: TenantState
) -> None:
    plain, along = state_after(act, state), state_after(act, state, may_suspend=True)
    assert along == ("deleted" if act == "delete" else plain)


def test_every_act_has_a_state_to_begin_in() -> None:
    allowed = {act: [one for one in ORDER if state_after(act, one)] for act in ACTS}
    assert allowed == {
        "suspend": ["active", "suspended"],
        "resume": ["active", "suspended"],
        "delete": ["suspended", "deleted"],
        "restore": ["suspended", "deleted"],
    }


@given(st.timedeltas(timedelta(0), timedelta(days=90)), st.integers(1, 60))
def test_a_deleted_tenant_lapses_once(age: timedelta, days: int) -> None:
    since, kept = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=days)
    assert has_lapsed(since, since + age, kept) == (age >= kept)
    assert not has_lapsed(None, since, kept)


@given(st.text(max_size=80))
def test_a_suspended_tenant_hears_the_reason_or_whom_to_ask(reason: str) -> None:
    told = suspended_sentence(reason)
    assert reason.rstrip() in told
    assert told.endswith(reason.rstrip() if reason.strip() else "platform.")


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.none() | st.integers(1, 3))
def test_a_limit_is_reached_when_one_more_would_not_fit(
    left: int, depth: int, running: int, cap: int | None
) -> None:
    tenant = Tenant(TenantId(1), "acme", 10, depth_limit=2, cap=cap)
    reached = limits_reached(tenant, jobs_left=left, depth=depth, running_most=running)
    assert ("rate_per_second" in reached) == (left == 0)
    assert ("depth_limit" in reached) == (depth + 1 > 2)
    assert ("cap" in reached) == (cap is not None and running + 1 > cap)
