"""Terms that end too far ahead: taken for dead only when they stand still for long enough."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import ShardId
from fairway.core.overlong_terms import OverlongTerms

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PATIENCE_US = 6_000_000


def test_an_end_that_stands_still_is_a_dead_owners() -> None:
    terms = OverlongTerms()
    ends = {ShardId(0): NOON, ShardId(1): NOON}
    assert terms.look(ends, 0, 10, PATIENCE_US) == {}
    assert terms.look(ends, PATIENCE_US + 9, PATIENCE_US + 9, PATIENCE_US) == {}
    assert terms.look(ends, PATIENCE_US + 10, PATIENCE_US + 10, PATIENCE_US) == ends


def test_one_that_was_gone_meanwhile_begins_anew() -> None:
    terms = OverlongTerms()
    terms.look({ShardId(0): NOON}, 0, 0, PATIENCE_US)
    terms.look({}, 1, 1, PATIENCE_US)
    assert terms.look({ShardId(0): NOON}, PATIENCE_US, PATIENCE_US, PATIENCE_US) == {}


@given(
    st.lists(
        st.tuples(st.integers(0, PATIENCE_US // 2), st.integers(0, PATIENCE_US), st.integers(0, 2)),
        max_size=30,
    )
)
def test_nobody_who_renewed_within_our_patience_is_taken_for_dead(
    looks: list[tuple[int, int, int]],
) -> None:
    terms, now_us, end, changed_us = OverlongTerms(), 0, NOON, 0
    for pause_us, question_us, renewed in looks:
        now_us += pause_us
        if renewed:
            end, changed_us = end + timedelta(seconds=renewed), now_us
        asked_us, now_us = now_us, now_us + question_us
        if terms.look({ShardId(0): end}, asked_us, now_us, PATIENCE_US):
            assert asked_us - changed_us >= PATIENCE_US
