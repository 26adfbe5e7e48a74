"""Numbers of shards in few words: nothing is lost in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ownership.shard_sight import ranges


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([7], "7"), ([3, 2, 1, 0], "0-3"), ([0, 1, 5, 7, 8], "0-1, 5, 7-8")],
)
def test_neighbours_are_told_by_their_ends(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


@given(st.sets(st.integers(0, 300)))
def test_every_number_is_told_once(numbers: set[int]) -> None:
    told: list[int] = []
    for part in filter(None, ranges(numbers).split(", ")):
        low, _, high = part.partition("-")
        told += range(int(low), int(high or low) + 1)
    assert told == sorted(numbers)
