"""The runs of a job as its row and its history tell of them, to the microsecond."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from fairway.core.lifecycle import State
from fairway.core.run.billing import SKIPPED
from fairway.core.run.outcome import OutcomeKind

NO_RUNS = (SKIPPED, "replayed")  # lines of a history that tell of no run


class RunEnd(NamedTuple):
    ended_at: datetime
    outcome: str  # as the history says it
    ran_us: int
    is_billed: bool


class _Entry(msgspec.Struct):
    """What is read of a line of the history."""

    outcome: str = ""
    ended_at: datetime | None = None
    ran_seconds: float = 0.0
    billable: bool = True


_decode = msgspec.json.Decoder(_Entry).decode


def ends_of(
    state: int, finished_at: datetime | None, ran_us: int | None, history: Sequence[bytes]
) -> list[RunEnd]:
    """The success last; the history keeps the newest fifty of the others."""
    found = [end for entry in history if (end := _end_of(entry)) is not None]
    if state == State.SUCCEEDED and finished_at is not None:
        found.append(RunEnd(finished_at, OutcomeKind.SUCCEEDED.value, ran_us or 0, is_billed=True))
    return found


def _end_of(text: bytes) -> RunEnd | None:
    try:
        entry = _decode(text)
    except msgspec.DecodeError:  # a line that cannot be read hides no other
        return None
    if entry.ended_at is None or entry.outcome in NO_RUNS:
        return None
    ran_us = round(entry.ran_seconds * 1e6)
    return RunEnd(entry.ended_at, entry.outcome, ran_us, entry.billable)
