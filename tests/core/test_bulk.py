"""Acts on many jobs: when one that gets nowhere is given up, and which jobs an act is for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.bulk import HELD_UP_SECONDS_MAX, HELD_UP_TRIES_MAX, is_hopeless, is_meant
from fairway.core.lifecycle import LIVE, State

NUMBERS = st.integers(0, 10_000)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_given_up_after_many_tries_and_a_long_time_and_never_taken_back(
    tries: int, seconds: int, more: int, later: int
) -> None:
    was = is_hopeless(tries, seconds)
    assert was == (tries >= HELD_UP_TRIES_MAX and seconds >= HELD_UP_SECONDS_MAX)
    assert not was or is_hopeless(tries + more, seconds + later)


def test_an_act_is_for_its_own_states() -> None:
    assert is_meant("cancel", [state.value for state in LIVE])
    assert not is_meant("cancel", [State.DEAD.value])
    assert is_meant("replay", [State.DEAD.value])
    assert not is_meant("discard", [State.QUEUED.value])
    assert is_meant("discard", None)
