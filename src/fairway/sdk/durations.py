"""Spans of time as people write them: `"2m"`, `"500ms"`, `"1h30m"`, seconds, a timedelta.

One pure parser, used wherever the SDK takes a duration. It knows no months, no years and no
negative spans.
"""

from __future__ import annotations

import re
from datetime import timedelta
from math import inf, isfinite
from typing import TypeAlias

Duration: TypeAlias = str | int | float | timedelta

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
SHOWN_MAX = 80  # characters of what was given
_EXAMPLES = "write it as '500ms', '30s', '2m', '1h30m', '1d', or as a number of seconds"


def seconds_of(duration: Duration) -> float:
    """The length in seconds; ValueError says how to write one."""
    if isinstance(duration, timedelta):
        return _checked(duration.total_seconds(), duration)
    if isinstance(duration, bool) or not isinstance(duration, str | int | float):
        raise ValueError(f"{duration!r} is no duration: {_EXAMPLES}")
    if isinstance(duration, str):
        return _seconds_of_text(duration)
    return _checked(_as_float(duration), duration)


def milliseconds_of(duration: Duration, at_most_ms: float = inf) -> int:
    """The length in whole milliseconds; a longer one counts as `at_most_ms`."""
    return round(min(_checked(seconds_of(duration) * 1000, duration), at_most_ms))


def _seconds_of_text(text: str) -> float:
    compact = text.replace(" ", "").lower()
    if not _WHOLE.fullmatch(compact):
        raise ValueError(f"{text!r} is no duration: {_EXAMPLES}")
    parts = _PART.findall(compact)
    return _checked(sum(float(amount) * _UNIT_SECONDS[unit] for amount, unit in parts), text)


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer beyond every float
        return inf


def _checked(seconds: float, given: Duration) -> float:
    if not isfinite(seconds) or seconds < 0:
        shown = repr(given)[:SHOWN_MAX]
        raise ValueError(f"{shown} is no duration: it must be finite and not negative")
    return seconds
