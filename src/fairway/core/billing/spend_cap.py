"""What a cap on a month's spending leads to, by what is spent and what the tenant was told.

A word when it is near, a word and some grace when it is reached, and then no new starts until it is
raised or the month is over.

    BELOW ──80 %──▶ NEAR ──100 %──▶ REACHED ──grace is over──▶ PAUSED
      ▲                                                          │
      └────────── raised above what is spent, or a new month ────┘
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from enum import IntEnum
from typing import NamedTuple

from fairway.core.billing.periods import month_of

NEAR_PERCENT = 80
GRACE_SECONDS_DEFAULT = 3_600


class Stage(IntEnum):
    BELOW = 0
    NEAR = 1
    REACHED = 2
    PAUSED = 3


class SpendCap(NamedTuple):
    cap_micros: int
    grace_seconds: int


class SpendState(NamedTuple):
    """How far a tenant was told; of an earlier month it means nothing."""

    month: date  # its first day
    stage: Stage = Stage.BELOW
    reached_at: datetime | None = None


def next_state(cap: SpendCap, state: SpendState, spent_micros: int, now: datetime) -> SpendState:
    """Where a tenant stands that has spent so much in the month of `now`."""
    month = month_of(now).first_day
    if state.month != month:
        state = SpendState(month)
    if spent_micros < cap.cap_micros:
        is_near = spent_micros * 100 >= cap.cap_micros * NEAR_PERCENT
        return SpendState(month, Stage.NEAR if is_near else Stage.BELOW)
    reached_at = state.reached_at or now
    is_over = now >= reached_at + timedelta(seconds=cap.grace_seconds)
    return SpendState(month, Stage.PAUSED if is_over else Stage.REACHED, reached_at)


def kinds_of(before: SpendState, after: SpendState) -> list[str]:
    """The kinds of events by which a tenant hears of it, in order. Nothing is told twice."""
    was = before.stage if before.month == after.month else Stage.BELOW
    found = []
    if before.stage is Stage.PAUSED and after.stage is not Stage.PAUSED:
        found.append("spend.resumed")
    if after.stage is Stage.NEAR and was is Stage.BELOW:
        found.append("spend.near")
    if after.stage >= Stage.REACHED and was < Stage.REACHED:
        found.append("spend.reached")
    if after.stage is Stage.PAUSED and was is not Stage.PAUSED:
        found.append("spend.paused")
    return found
