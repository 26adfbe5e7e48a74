"""Bounds on what a worker says: cut with a mark, or replaced by a note that is JSON itself."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from fairway.wire.bounds import (
    CUT,
    LIMIT_CHARACTERS_MAX,
    LIMITS_MAX,
    PROGRESS_BYTES_MAX,
    cut,
    cut_limits,
    shown_progress,
)


@given(st.text(), st.integers(1, 50))
def test_a_text_is_whole_or_marked(text: str, most: int) -> None:
    shown = cut(text, most)
    assert len(shown) <= most
    assert (shown == text) if len(text) <= most else shown.endswith(CUT)
    assert text.startswith(shown.removesuffix(CUT))
    assert cut(shown, most) == shown


@given(st.dictionaries(st.text(), st.text(), max_size=5), st.integers(0, 2 * LIMITS_MAX))
def test_limits_are_cut_in_number_and_in_length(limits: dict[str, str], more: int) -> None:
    given_limits = limits | {f"limit {n}": "x" * 1000 for n in range(more)}
    shown = cut_limits(given_limits)
    assert len(shown) == min(len(given_limits), LIMITS_MAX)
    assert all(len(text) <= LIMIT_CHARACTERS_MAX for pair in shown.items() for text in pair)
    assert list(shown)[:1] == list(given_limits)[:1]


words = st.text(st.characters(exclude_categories=("Cc", "Cs")))  # others cannot be stored
values = st.recursive(st.integers(-(2**53), 2**53) | words, st.lists)


@given(values, st.integers(0, 3))
def test_progress_is_shown_as_it_is_or_as_a_note(value: object, broken: int) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()[broken:]
    shown = shown_progress(text)
    assert len(shown) <= PROGRESS_BYTES_MAX + 100
    said = json.loads(shown)
    assert shown == text or list(said) == ["omitted"]
    if not broken and len(text) <= PROGRESS_BYTES_MAX:
        assert shown == text


def test_progress_too_long_says_how_long_it_was() -> None:
    text = json.dumps("x" * PROGRESS_BYTES_MAX).encode()
    assert json.loads(shown_progress(text)) == {
        "omitted": f"{len(text)} bytes; at most {PROGRESS_BYTES_MAX} are kept"
    }
