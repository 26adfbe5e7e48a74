"""A cap leads where it should, whatever is spent when, and nobody hears a thing twice."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.billing.periods import month_of
from fairway.core.billing.spend_cap import SpendCap, SpendState, Stage, kinds_of, next_state

BEGIN = datetime(2026, 1, 20, tzinfo=UTC)
NEVER = SpendState(date(1970, 1, 1))

looks = st.lists(
    st.tuples(st.integers(0, 3 * 24 * 60), st.integers(0, 150), st.integers(0, 150)), max_size=20
)


@given(looks, st.integers(0, 48 * 3600))
def test_every_look_says_what_follows_from_the_facts(
    steps: list[tuple[int, int, int]], grace_seconds: int
) -> None:
    state, now = NEVER, BEGIN
    for minutes, spent, cap_micros in steps:
        now += timedelta(minutes=minutes)
        cap, before = SpendCap(cap_micros, grace_seconds), state
        state = next_state(cap, state, spent, now)
        assert state.month == month_of(now).first_day
        assert (state.stage >= Stage.REACHED) == (spent >= cap_micros)
        assert (state.stage >= Stage.REACHED) == (state.reached_at is not None)
        if state.stage < Stage.REACHED:
            assert (state.stage is Stage.NEAR) == (spent * 5 >= cap_micros * 4)
        else:
            assert state.reached_at is not None
            assert month_of(state.reached_at) == month_of(now)
            over = now - state.reached_at >= timedelta(seconds=grace_seconds)
            assert (state.stage is Stage.PAUSED) == over
        kinds = kinds_of(before, state)
        assert len(kinds) == len(set(kinds))
        was_paused = before.stage is Stage.PAUSED
        assert ("spend.resumed" in kinds) == (was_paused and state.stage is not Stage.PAUSED)
        if before.month == state.month:
            is_new = state.stage is Stage.PAUSED and not was_paused
            assert ("spend.paused" in kinds) == is_new


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_second_look_at_the_same_facts_says_nothing(spent: int, cap_micros: int) -> None:
    cap = SpendCap(cap_micros, 60)
    once = next_state(cap, NEVER, spent, BEGIN)
    again = next_state(cap, once, spent, BEGIN)
    assert (again, kinds_of(once, again)) == (once, [])


def test_the_way_of_a_month() -> None:
    cap, state, heard = SpendCap(100, 3600), NEVER, []
    for minutes, spent in ((0, 10), (1, 80), (2, 99), (3, 100), (62, 120), (63, 120), (64, 125)):
        before, state = state, next_state(cap, state, spent, BEGIN + timedelta(minutes=minutes))
        heard.append((minutes, kinds_of(before, state)))
    assert [(at, kinds) for at, kinds in heard if kinds] == [
        (1, ["spend.near"]),
        (3, ["spend.reached"]),
        (63, ["spend.paused"]),
    ]
    raised = next_state(SpendCap(200, 3600), state, 125, BEGIN + timedelta(minutes=65))
    assert (raised.stage, kinds_of(state, raised)) == (Stage.BELOW, ["spend.resumed"])
    turned = next_state(cap, state, 0, datetime(2026, 2, 1, tzinfo=UTC))
    assert (turned.stage, kinds_of(state, turned)) == (Stage.BELOW, ["spend.resumed"])
