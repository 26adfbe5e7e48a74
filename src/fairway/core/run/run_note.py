"""One line of a job's history: how one run ended, who ran it, and what it said.

Written with the end of every run but a success, which the job's own record tells. Values in, JSON
text out; the store keeps it as it is.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple

PROGRESS_BYTES_MAX = 4096  # a job keeps fifty notes; what is longer is not kept


class RunNote(NamedTuple):
    delivery: int
    attempt: int
    outcome: str  # failed, lost, snoozed, cancelled, returned; replayed begins the count anew
    ended_at: datetime
    ran_us: int = 0
    worker: str = ""
    build: str = ""
    reason: str = ""  # what was decided
    error: bytes | None = None  # JSON text
    late_ms: int | None = None  # after its due time it began, if it had one
    progress: bytes | None = None  # JSON text: how far it was
    billable: bool = True  # False: the platform cut it short


def note_text(note: RunNote) -> bytes:
    facts: dict[str, str | int | float] = {
        "delivery": note.delivery,
        "attempt": note.attempt,
        "outcome": note.outcome,
        "ended_at": note.ended_at.isoformat(),
        "ran_seconds": note.ran_us / 1e6,
        "worker": note.worker,
        "build": note.build,
        "reason": note.reason,
        "billable": note.billable,
    }
    if note.late_ms is not None:
        facts["late_seconds"] = note.late_ms / 1000
    text = json.dumps(facts, separators=(",", ":")).encode()[:-1]
    if note.progress is not None and len(note.progress) <= PROGRESS_BYTES_MAX:
        text += b',"progress":' + note.progress
    if note.error is not None:
        text += b',"error":' + note.error
    return text + b"}"
