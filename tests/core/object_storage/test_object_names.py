"""Names of objects: by day, then whose; and a run that lost its lease writes beside the next."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import Epoch
from fairway.core.object_storage.object_names import (
    ObjectFacts,
    ObjectScope,
    checkpoint_name,
    day_of,
    is_intact,
    object_name,
    owner_of,
)

DIGEST = bytes(range(32))
days = st.integers(0, 4_000_000_000).map(lambda at: day_of(datetime.fromtimestamp(at, UTC)))
scopes = st.builds(ObjectScope, days, st.integers(1, 1 << 31), st.uuids().map(str))
epochs = st.integers(0, (1 << 63) - 1)


@given(scopes, epochs, st.integers(0, 999_999))
def test_a_name_tells_whose_it_is(scope: ObjectScope, epoch: int, number: int) -> None:
    for name in (
        checkpoint_name(scope, Epoch(epoch), number, DIGEST),
        object_name("uploads", scope, "body"),
    ):
        assert owner_of(name) == (scope.tenant, scope.owner)
        assert name.split("/")[1] == scope.day


@given(scopes, epochs, epochs, st.integers(0, 999_999), st.integers(0, 999_999))
def test_checkpoints_sort_by_run_and_then_by_number(
    scope: ObjectScope, epoch: int, later: int, number: int, next_number: int
) -> None:
    """A run that lost its lease can only ever write before its successor's, never over them."""
    first = checkpoint_name(scope, Epoch(epoch), number, DIGEST)
    second = checkpoint_name(scope, Epoch(later), next_number, DIGEST)
    assert (first < second) == ((epoch, number) < (later, next_number))
    assert (first == second) == ((epoch, number) == (later, next_number))


def test_a_day_is_of_its_own_moment() -> None:
    assert day_of(datetime(2026, 1, 2, 23, 59, 59, tzinfo=UTC)) == "2026-01-02"


def test_what_was_read_is_what_was_written_or_not() -> None:
    facts = ObjectFacts("n", 5, DIGEST)
    assert is_intact(facts, 5, DIGEST)
    assert not is_intact(facts, 4, DIGEST)
    assert not is_intact(facts, 5, DIGEST[::-1])
