"""How much of an outbox comes in, and when it is full."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backpressure.outbox_room import (
    WAITING_BYTES_MAX,
    WAITING_JOBS_MAX,
    is_full,
    jobs_to_move,
)

numbers = st.integers(0, 1 << 40)


@given(numbers, numbers, numbers, numbers)
def test_no_bound_is_crossed_and_no_room_is_left(
    most: int, tokens_left: int, depth: int, depth_limit: int
) -> None:
    count = jobs_to_move(most, tokens_left=tokens_left, depth=depth, depth_limit=depth_limit)
    assert 0 <= count <= min(most, tokens_left)
    assert not count or depth + count <= depth_limit
    assert count in (most, tokens_left, depth_limit - depth) or depth > depth_limit


@given(st.integers(0, 3 * WAITING_JOBS_MAX), st.integers(0, 3 * WAITING_BYTES_MAX))
def test_full_at_the_bound_and_open_again_at_half_of_it(jobs: int, size_bytes: int) -> None:
    beyond = jobs > WAITING_JOBS_MAX or size_bytes > WAITING_BYTES_MAX
    half = 2 * jobs > WAITING_JOBS_MAX or 2 * size_bytes > WAITING_BYTES_MAX
    assert is_full(jobs, size_bytes, was_full=False) == beyond
    assert is_full(jobs, size_bytes, was_full=True) == half
