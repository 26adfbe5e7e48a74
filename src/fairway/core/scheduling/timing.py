"""When a job is due, until when it may start, and what a late start means.

Moments are whole milliseconds since 1970; `now` and samples are handed in. A job that is due at
once and has no last moment has no timing at all, and costs nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

HERD_AFTER_MS = 3_600_000  # a job due later than this is not expected to the second
HERD_SPREAD_MS = 60_000  # so it is spread by up to this much, either way


class OnLate(IntEnum):
    """What to do with a job whose last moment passed before it could start."""

    RUN = 0  # run it all the same
    SKIP = 1  # do not run it: it ends as expired
    FLAG = 2  # run it, and say so

    @property
    def label(self) -> str:
        return self.name.lower()


BY_LABEL = {rule.label: rule for rule in OnLate}


class Timing(NamedTuple):
    """The times of one job."""

    due_ms: int
    not_after_ms: int | None = None
    on_late: int = OnLate.RUN

    @classmethod
    def of(cls, row: Sequence[int | None]) -> Timing:
        """From the three numbers that a job carries; the rule is absent without a last moment."""
        due_ms, not_after_ms, on_late = row
        return cls(due_ms or 0, not_after_ms, OnLate.RUN if on_late is None else on_late)

    @property
    def row(self) -> list[int | None]:
        rule = None if self.not_after_ms is None else int(self.on_late)
        return [self.due_ms, self.not_after_ms, rule]


class Wish(NamedTuple):
    """When a job is wanted: at a moment, after a while, or (with neither) at once."""

    due_ms: int | None = None
    delay_ms: int = 0
    not_after_ms: int | None = None
    on_late: int | None = None
    exact: bool = False


def timing_of(wish: Wish, now_ms: int, sample: float) -> Timing:
    """The times of a job that is accepted now."""
    due_ms = now_ms + wish.delay_ms if wish.due_ms is None else wish.due_ms
    if not wish.exact:
        due_ms = spread_ms(due_ms, now_ms, sample)
    if wish.not_after_ms is None:
        return Timing(due_ms)
    rule = OnLate.SKIP if wish.on_late is None else wish.on_late
    return Timing(min(due_ms, max(wish.not_after_ms, 0)), wish.not_after_ms, rule)


def spread_ms(due_ms: int, now_ms: int, sample: float) -> int:
    """The due time of a job that was not asked for to the second; `sample` is from [0, 1)."""
    if due_ms - now_ms <= HERD_AFTER_MS:
        return due_ms
    return due_ms + round((2 * sample - 1) * HERD_SPREAD_MS)


def lateness_ms(timing: Timing, now_ms: int) -> int:
    """How long after its time a run begins."""
    return max(now_ms - timing.due_ms, 0)


def is_too_late(timing: Timing, now_ms: int) -> bool:
    """Whether the last moment to start has passed."""
    return timing.not_after_ms is not None and now_ms > timing.not_after_ms


def may_start(timing: Timing, now_ms: int) -> bool:
    """False only for a job that is too late and was to be skipped then."""
    return not (timing.on_late == OnLate.SKIP and is_too_late(timing, now_ms))
