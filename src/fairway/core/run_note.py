"""One line of a job's history: how one run ended, who ran it, and what it said.

Written with the end of every run but a success, which the job's own record tells. Values in, JSON
text out; the store keeps it as it is.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple


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
    }
    if note.late_ms is not None:
        facts["late_seconds"] = note.late_ms / 1000
    text = json.dumps(facts, separators=(",", ":")).encode()
    return text if note.error is None else text[:-1] + b',"error":' + note.error + b"}"
