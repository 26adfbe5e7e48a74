"""A length of time as people read it: one number and one unit, wherever it is said."""

from __future__ import annotations

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def span(length_seconds: float) -> str:
    """`3 min`: one unit that is easily read."""
    for size, unit in _UNITS:
        if length_seconds >= 2 * size:
            return f"{length_seconds / size:.0f} {unit}"
    if length_seconds < 1:
        return f"{max(length_seconds, 0) * 1000:.0f} ms"
    return f"{length_seconds:.{0 if length_seconds >= 10 else 1}f} s"
