"""Who asks for another number of shards than there are is told; nobody else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ownership.shard_count_wish import unheeded

COUNTS = st.integers(1, 4096)


@given(st.none() | COUNTS, COUNTS, COUNTS)
def test_only_a_wish_that_was_never_heeded_is_told(
    wanted: int | None, founded: int, there: int
) -> None:
    told = unheeded(wanted, founded, there)
    assert (told is None) == (wanted is None or wanted in (founded, there))
    if told is None or wanted is None:
        return
    assert f"is {wanted}, and this database has {there} shards" in told.what
    assert (f"fairway shards split --to {wanted}" in told.remedy) == (wanted > there)
    assert ("never become fewer" in told.remedy) == (wanted < there)
