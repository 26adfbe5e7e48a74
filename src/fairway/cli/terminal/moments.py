"""Times as people write and read them: `1h` ago, `yesterday`, "3 min"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fairway.core.errors import InvalidRequest
from fairway.core.insight.spans import span as span
from fairway.sdk.durations import seconds_of

_DAYS_BACK = {"today": 0, "yesterday": 1}


def past(text: str | None, name: str, now: datetime) -> str | None:
    """`1h` (that long ago), `today`, `yesterday`, or a date and time: as the API has it."""
    return None if text is None else _moment(text, name, now, -1).isoformat()


def future(text: str | None, name: str, now: datetime) -> str | None:
    """`10m` (that long from now), or a date and time: as the API has it."""
    return None if text is None else _moment(text, name, now, 1).isoformat()


def _moment(text: str, name: str, now: datetime, sign: int) -> datetime:
    if text in _DAYS_BACK and sign < 0:
        day = now.astimezone() - timedelta(days=_DAYS_BACK[text])
        return day.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        return now + timedelta(seconds=sign * seconds_of(text))
    except (ValueError, OverflowError):
        pass
    try:  # without a zone, the reader's own is meant
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"--{name} {text[:64]}: write how long, as in 30m, 2h or 1d, or a time, as in"
            " 2026-01-31T12:00."
        ) from None


def seconds(text: str | None, name: str) -> float | None:
    """`10m` as seconds; a bare number is one of seconds."""
    if text is None:
        return None
    try:
        return float(text) if text.isascii() and text.isdigit() else seconds_of(text)
    except ValueError as error:
        raise InvalidRequest(f"{name}: {error}.") from None


def age(moment: str | None, now: datetime | None = None) -> str:
    """How long ago that was; `in 3 min` for what is yet to come."""
    if not moment:
        return "–"
    gone_seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()
    return span(gone_seconds) if gone_seconds > -1 else f"in {span(-gone_seconds)}"


def local(moment: str | None) -> str:
    """To the second, in the reader's own zone."""
    return "–" if not moment else f"{datetime.fromisoformat(moment).astimezone():%F %T %Z}"
