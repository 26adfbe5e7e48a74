"""Growing pauses: doubled, never longer than the longest, and no outage is too long for them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backoff import DOUBLINGS_MAX, backoff_seconds


def test_a_pause_doubles_until_it_is_the_longest() -> None:
    assert [backoff_seconds(0.1, n, 1.0) for n in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(st.integers(0, 10**9))
def test_an_outage_of_any_length_has_a_pause(doublings: int) -> None:
    assert 0.1 <= backoff_seconds(0.1, doublings, 5.0) <= 5.0
    assert backoff_seconds(1.0, doublings, float("inf")) <= 2.0**DOUBLINGS_MAX
