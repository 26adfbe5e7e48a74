"""Leases: epochs only ever grow, across grants, terms and owners that wrote nothing down."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.lease import TERM_SHIFT, may_adopt, next_epoch, term_of

terms = st.integers(1, 1 << 30)
grants = st.integers(0, 50)


@given(st.lists(st.tuples(st.integers(1, 5), grants, st.booleans()), min_size=1, max_size=20))
def test_epochs_strictly_grow_whoever_grants(steps: list[tuple[int, int, bool]]) -> None:
    """Each owner grants several times; only some of its grants were ever written down."""
    term = stored = newest = 0
    for gap, count, is_written in steps:
        term += gap
        known = stored
        for _ in range(count):
            epoch = next_epoch(known, term)
            assert epoch > newest
            assert term_of(epoch) == term
            newest = known = epoch
        if is_written:
            stored = known


@given(terms, st.integers(1, 1000))
def test_the_first_grant_of_a_term_passes_every_grant_before(term: int, earlier: int) -> None:
    last_of_before = (term - 1 << TERM_SHIFT) + earlier
    assert next_epoch(0, term) > last_of_before
    assert next_epoch(last_of_before, term) > last_of_before


@given(terms, grants, st.integers(1, 3))
def test_a_newer_owner_adopts_what_was_never_written(term: int, stored: int, ahead: int) -> None:
    epoch = next_epoch(0, term) + stored
    assert may_adopt(epoch - 1, epoch, term + ahead)
    assert may_adopt(0, epoch, term + ahead)


@given(terms, grants)
def test_what_was_passed_is_never_adopted(term: int, count: int) -> None:
    epoch = next_epoch(0, term) + count
    assert not may_adopt(epoch + 1, epoch, term + 1)  # a later grant is on disk
    assert not may_adopt(epoch, epoch, term + 1)  # its own end is on disk
    assert not may_adopt(0, epoch, term)  # this owner's own grants are in its memory
    assert not may_adopt(0, epoch, max(term - 1, 0))  # from the future
