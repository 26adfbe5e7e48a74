"""When a job is wanted, as a program says it, and as the wire has it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict

from fairway.sdk.durations import Duration, seconds_of

OnLate = Literal["run", "skip", "flag"]


class TimeOptions(TypedDict, total=False):
    """The part of `job.options(...)` that is about time."""

    delay: Duration  # not before this long from now
    at: datetime  # not before this moment; instead of delay
    exact: bool  # due in more than an hour, do not spread it by up to a minute
    not_after: datetime  # the last moment to start
    on_late: OnLate  # what is done after it: skip (the default), flag or run


def time_fields(options: TimeOptions) -> dict[str, Any]:
    """The fields of a request; ValueError when two times are named, or one without its zone."""
    if "delay" in options and "at" in options:
        raise ValueError("give either delay= or at=, not both")
    if "on_late" in options and "not_after" not in options:
        raise ValueError("on_late= needs a not_after= to be late for")
    fields: dict[str, Any] = {}
    if "delay" in options:
        fields["delay_seconds"] = seconds_of(options["delay"])
    if "at" in options:
        fields["execute_at"] = with_zone(options["at"], "at")
    if "not_after" in options:
        fields["not_after"] = with_zone(options["not_after"], "not_after")
        fields["on_late"] = options.get("on_late")
    if "exact" in options:
        fields["exact"] = options["exact"]
    return fields


def with_zone(moment: datetime, name: str) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{name}= needs a time with its zone, such as datetime.now(UTC)")
    return moment
