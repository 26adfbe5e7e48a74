"""What each field of the messages about failures means; joined to the rest in `field_notes.py`."""

from __future__ import annotations

DEAD_LETTER_NOTES: dict[str, dict[str, str]] = {
    "RunView": {
        "delivery": "Which delivery it was; a snooze or a hand-back gives its number back.",
        "attempt": "Which attempt it was, or would have been.",
        "outcome": "failed, lost, snoozed, cancelled, returned, or replayed.",
        "ended_at": "When the run was over.",
        "ran_seconds": "How long it took.",
        "worker": "Who ran it.",
        "build": "Which build of the code, as the worker says.",
        "reason": "What was decided because of it.",
        "billable": "False when the platform cut it short.",
        "progress": "How far it was, if it said so.",
        "error": "What it said, when it failed.",
    },
    "ReplayOne": {"payload": "Arguments in place of the job's own; null keeps them."},
    "ReplayMany": {
        "payload": "Arguments in place of every job's own; null keeps them.",
        "per_second": "At most so many go back to the queue in a second.",
        "dry_run": "Only count.",
    },
    "DiscardMany": {"dry_run": "Only count."},
    "Matched": {
        "matched": "How many dead letters match.",
        "is_exact": "False when there are more than a million.",
    },
    "ActionView": {
        "id": "The action's id.",
        "kind": "replay or discard.",
        "state": "running, done, aborted or failed.",
        "type": "Only of this job type.",
        "pool": "Only of this pool.",
        "fingerprint": "Only of this cause.",
        "per_second": "At most so many in a second.",
        "matched": "How many matched when it began.",
        "done": "How many are done.",
        "created_at": "When it began; what died later is not part of it.",
        "finished_at": "When it ended.",
        "error": "Why it failed: the store refused it again and again. What was done stays done.",
    },
    "ActionList": {"actions": "Newest first, at most 50."},
    "FailureGroup": {
        "fingerprint": "Stands for the cause: job type, error type, message, innermost frame.",
        "type": "The job type.",
        "count": "How many dead letters.",
        "count_is_exact": "False when there are more than a hundred thousand.",
        "last_job": "The newest job among them.",
        "last_died_at": "When that one died.",
        "error": "What that one died of.",
    },
    "TypeCount": {
        "type": "The job type.",
        "count": "How many dead letters.",
        "count_is_exact": "False when there are more than a hundred thousand.",
    },
    "FailureGroups": {
        "groups": "By cause, the largest first, at most 200.",
        "types": "By job type, the largest first, at most 200.",
    },
    "EventView": {
        "id": "Grows with time.",
        "at": "When it happened.",
        "kind": "Such as dependency_circuit_open or quarantine_imposed.",
        "subject": "What it is about: a job type, a pool, a job.",
        "detail": "What happened, in a sentence.",
    },
    "EventList": {
        "events": "Newest first.",
        "next_cursor": "Ask for the next page with it; null on the last page.",
    },
    "CircuitView": {
        "type": "The job type that is held.",
        "dependency": "What it leans on and cannot reach.",
        "opened_at": "Since when.",
        "next_probe_seconds": "When a few jobs are tried next.",
    },
    "QuarantineView": {"type": "The job type.", "since": "Since when."},
    "Restraints": {
        "circuits": "Dependencies that are away; their jobs wait without using attempts.",
        "quarantines": "Job types that mostly fail; their jobs are tried twice at most.",
    },
}
