"""What may be forgotten, and how much is carried at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.retention import (
    CARRY_BYTES_MAX,
    CARRY_ROWS_MAX,
    CLOCKS_APART_SECONDS_MAX,
    Load,
    may_forget,
    next_pages,
)


@given(st.floats(-1e10, 1e10))
def test_nothing_is_forgotten_while_two_clocks_disagree(skew_seconds: float) -> None:
    assert may_forget(skew_seconds) == (abs(skew_seconds) <= CLOCKS_APART_SECONDS_MAX)
    assert may_forget(skew_seconds) == may_forget(-skew_seconds)


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(1, 700))
def test_a_walk_meets_every_page_once_even_while_the_table_grows(
    pages: int, grown: int, at_once: int
) -> None:
    met: list[int] = []
    page = 0
    while part := next_pages(page, pages if page < pages // 2 else pages + grown, at_once):
        met += part
        page = part.stop
    assert met == list(range(pages + grown if page >= pages // 2 else pages))
    assert all(len(next_pages(start, pages, at_once)) <= at_once for start in met[:5])


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 1 << 24)), max_size=5))
def test_what_is_small_is_small_in_every_way(parts: list[tuple[int, int]]) -> None:
    total = Load()
    for part in parts:
        total = total.plus(Load(*part))
    rows, bytes_ = sum(p[0] for p in parts), sum(p[1] for p in parts)
    assert total == (rows, bytes_)
    assert total.is_small == (rows <= CARRY_ROWS_MAX and bytes_ <= CARRY_BYTES_MAX)
