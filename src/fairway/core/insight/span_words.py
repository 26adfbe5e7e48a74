"""A span of time in words for sentences: 340 ms, 12.5 s, 20 min 5 s, 3 h 10 min, 2 d 4 h.

Two units at most: nobody who hears of twenty minutes asks for tenths of seconds.
"""

from __future__ import annotations

from typing import Final

_UNITS: Final = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def span_in_words(length_seconds: float) -> str:
    """Rounded to what its size deserves; less than nothing is nothing."""
    length = max(length_seconds, 0.0)
    if length and length < 0.9995:
        return f"{_short(length * 1000)} ms"
    if length < 59.95:
        return f"{_short(length)} s"
    whole = round(length)
    for size, name, part, part_name in _UNITS:
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{whole} s"


def _short(number: float) -> str:
    """A tenth, where there is one."""
    return f"{number:.1f}".removesuffix(".0")
