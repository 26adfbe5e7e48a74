"""What is kept beside the key of a batch: which of its jobs were made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.services.submit.refused_places import (
    is_same_body,
    made_places,
    refused_places,
    with_refused,
)

DIGESTS = st.binary(min_size=32, max_size=32)


@tried()
@given(DIGESTS, st.lists(st.booleans(), min_size=1, max_size=300))
def test_places_come_back_as_they_were(digest: bytes, are_made: list[bool]) -> None:
    refused = [place for place, is_made in enumerate(are_made) if not is_made]
    made = [place for place, is_made in enumerate(are_made) if is_made]
    kept = with_refused(digest, refused)
    assert (kept == digest) is (not refused)
    assert refused_places(kept) == refused
    assert made_places(kept, len(made)) == made
    assert len(kept) <= 32 + (len(are_made) + 7) // 8


@tried()
@given(DIGESTS, DIGESTS, st.sets(st.integers(0, 99)), st.sets(st.integers(0, 99)))
def test_a_batch_is_the_same_when_its_body_is(
    one: bytes, other: bytes, refused: set[int], by_then: set[int]
) -> None:
    assert is_same_body(with_refused(one, refused), with_refused(one, by_then))
    assert is_same_body(with_refused(one, refused), with_refused(other, refused)) is (one == other)
