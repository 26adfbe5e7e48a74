"""Spans of time in words: never more than two units, none of them too many, and true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.insight.span_words import span_in_words

_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3_600, "d": 86_400}
_ENDS = {"ms": 1_000, "s": 60, "min": 60, "h": 24}  # where the next unit begins


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (0.34, "340 ms"),
        (0.5, "500 ms"),
        (12.5, "12.5 s"),
        (59.96, "1 min"),
        (1205.4, "20 min 5 s"),
        (3600, "1 h"),
        (11_430, "3 h 10 min"),
        (187_200, "2 d 4 h"),
    ],
)
def test_by_example(seconds: float, words: str) -> None:
    assert span_in_words(seconds) == words


@given(st.floats(min_value=0, max_value=1e9))
def test_it_says_how_long_it_is(seconds: float) -> None:
    words = span_in_words(seconds).split()
    said = list(zip(map(float, words[::2]), words[1::2], strict=True))
    assert len(said) in (1, 2)
    assert all(number < _ENDS.get(unit, float("inf")) for number, unit in said)
    smallest = {"d": "h", "h": "min", "min": "s"}.get(said[0][1], "")
    slack = _SECONDS[smallest] if smallest else 0.05 * _SECONDS[said[0][1]] + 1e-9
    assert abs(sum(number * _SECONDS[unit] for number, unit in said) - seconds) <= slack
