"""The last of a disk: when jobs are refused, and when they come in again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backpressure.disk_reserve import is_low


@given(st.integers(0, 2000), st.integers(1, 1000), st.booleans())
def test_jobs_come_in_while_there_is_room_beside_the_reserve(
    free: int, reserve: int, was_low: bool
) -> None:
    found = is_low(free, reserve, was_low=was_low)
    assert found or free >= reserve
    assert not found or free < reserve + reserve // 10
    assert not found or was_low or free < reserve  # nobody is shut out before that


def test_a_little_room_does_not_open_the_door_again() -> None:
    assert is_low(999, 1000, was_low=False)
    assert is_low(1001, 1000, was_low=True)
    assert not is_low(1100, 1000, was_low=True)
