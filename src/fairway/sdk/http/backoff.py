"""When to ask a server again: full jitter, its own `Retry-After` first, and an end to patience.

Pure: the clock and the dice are handed in.
"""

from __future__ import annotations

from math import isfinite

from fairway.core.backoff import backoff_seconds

BASE_SECONDS = 0.1
CAP_SECONDS = 5.0


def pause_seconds(tries: int, retry_after_seconds: float | None, sample: float) -> float:
    """The pause after the n-th try, counted from one; `sample` is uniform in [0, 1).

    A server that names a time is believed; chance is added on top so that its callers do not
    all come back at once.
    """
    spread = backoff_seconds(BASE_SECONDS, tries, CAP_SECONDS) * sample
    return spread if retry_after_seconds is None else retry_after_seconds + spread


def parse_retry_after(header: str | None, unix_seconds: float) -> float | None:
    """Seconds from now, from a number or an HTTP date; None when it says nothing readable."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        return _until_date(header, unix_seconds)
    return max(0.0, seconds) if isfinite(seconds) else None


def _until_date(header: str, unix_seconds: float) -> float | None:
    from email.utils import parsedate_to_datetime  # rare, and slow to import

    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - unix_seconds)
    except ValueError:
        return None
