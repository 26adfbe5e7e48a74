"""When a server should be sent work, by how many shards are open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.services.readiness import START_US, are_enough

counts = st.integers(1, 64)


@given(counts, st.integers(0, 64), st.integers(0, 2 * START_US), st.booleans())
def test_shards_that_move_turn_nobody_away(
    shards: int, opened: int, since_us: int, was_whole: bool
) -> None:
    opened = min(opened, shards)
    found = are_enough(opened, shards, since_us, was_whole=was_whole)
    if opened == shards:
        assert found
    elif opened == 0:
        assert not found
    else:
        assert found == (was_whole or since_us > START_US)
