"""A storage is used by the database that marked it, and by no other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.object_storage.storage_marker import (
    REFUSALS,
    MarkerState,
    make_marker,
    standing_of,
)

words = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=40)


@given(secret=words, nonce=words)
def test_what_a_server_marked_is_known_again_by_its_cluster(secret: str, nonce: str) -> None:
    marker = make_marker(secret, nonce)
    assert standing_of(None, None, secret) is MarkerState.FREE
    assert standing_of(None, marker, secret) is MarkerState.BEGUN
    assert standing_of(marker, marker, secret) is MarkerState.OURS


@given(secret=words, other=words, nonce=words, second=words)
def test_no_other_storage_and_no_other_database_passes(
    secret: str, other: str, nonce: str, second: str
) -> None:
    marker = make_marker(secret, nonce)
    assert standing_of(marker, None, secret) is MarkerState.MISSING
    if nonce != second:
        assert standing_of(marker, make_marker(secret, second), secret) is MarkerState.FOREIGN
    if secret != other:
        assert standing_of(None, marker, other) is MarkerState.FOREIGN


@given(found=st.text())
def test_what_is_no_marker_is_foreign(found: str) -> None:
    assert standing_of(None, found, "secret") in REFUSALS
