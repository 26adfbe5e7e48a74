"""What each field of the messages about pools and job types means; part of `field_notes.py`."""

from __future__ import annotations

_POOL = {
    "slots": "Slots that a worker offers there unless it says otherwise.",
    "lease_mode": "durable: on disk before the worker hears of it. lazy: only if the run lasts.",
    "lease_seconds": "A worker silent for this long has lost its jobs there.",
    "run_mode": "How jobs run that do not say; null: a coroutine in the loop, a function in a"
    " thread.",
    "checkpoint": "Whether jobs keep checkpoints; expected: it is noted when a long one has none.",
    "attempts": "Attempts before a failing job is dead, unless its type says otherwise.",
    "pickup_target_seconds": "How soon a job should start when its tenant has slots free.",
    "labels": "A worker must have all of these for its slots to count.",
    "reserved_per_mille": "Part of the slots that floors of tenants may claim together.",
}
_TYPE = {
    "pool": "Where its jobs go unless they say otherwise.",
    "timeout_seconds": "The limit of one run, as its workers keep it.",
    "attempts": "Attempts before a failing job is dead; null: by its pool.",
    "dependency": "What it leans on, such as stripe.",
    "warm_key": "Workers that keep this ready are preferred.",
    "version": "Of the handler, for people.",
    "schema": "JSON Schema of the payload, checked when a job is submitted.",
}
_CHECKPOINT = {
    "number": "Counts the checkpoints of one run, from one.",
    "size_bytes": "How large the state is.",
    "saved_at": "Since when it is safe.",
}

REGISTRY_NOTES: dict[str, dict[str, str]] = {
    "CancelMany": {"dry_run": "Count them, cancel nothing."},
    "CancelledMany": {
        "matched": "Jobs of this page that matched; of a dry run, all, up to 100 000.",
        "cancelled": "Waited, and are cancelled now.",
        "asked_to_stop": "Run; they end as cancelled, or as they would have.",
        "next_cursor": "Send the same request with it for the next page; null when all are done.",
    },
    "PoolUsage": {
        "pool": "The pool.",
        "jobs": "Jobs that were submitted in that time.",
        "billable_slot_seconds": "Slot-time of their runs that is billed.",
        "unbilled_slot_seconds": "Of runs that the platform cut short.",
    },
    "Usage": {"pools": "By pool; pools without jobs are left out."},
    "PoolTerms": _POOL,
    "PoolView": _POOL
    | {
        "name": "The pool's name.",
        "fits_seconds": "The longest run that belongs in it; null for a pool of resources.",
    },
    "PoolList": {"pools": "Every pool."},
    "TypeSettings": _TYPE,
    "TypeView": _TYPE
    | {
        "name": "The job type.",
        "registered": "Whether a worker or an operator ever said anything of it.",
        "measured_pool": "Where the clock says it belongs; beats what was declared.",
        "measured_p95_seconds": "95 % of its runs took no longer, when it was moved.",
        "moved_at": "When it was moved; it stays for an hour at least.",
    },
    "TypeList": {"job_types": "By name."},
    "AuditView": {
        "id": "Grows with every change.",
        "at": "When.",
        "actor": "The public part of the key that did it, or platform.",
        "action": "What was done.",
        "subject": "To which pool or job type.",
        "detail": "A sentence.",
    },
    "AuditList": {
        "entries": "Newest first.",
        "next_before": "Ask for the next page with it; null on the last page.",
    },
    "UploadMade": {
        "id": "Submit a job with it as `payload_upload`.",
        "url": "PUT the payload there, as it is, without a key. It is a secret.",
        "expires_at": "Until when.",
        "size_bytes_max": "The most that it takes.",
    },
    "CheckpointSeen": _CHECKPOINT,
    "CheckpointSave": {
        "job": "The job.",
        "tenant": "From its lease.",
        "epoch": "From its lease.",
        "token": "From its lease.",
        "number": "Counts the checkpoints of this run, from one.",
        "state": "Any JSON: what the next run needs to go on from here.",
    },
    "CheckpointSaved": _CHECKPOINT,
    "CheckpointFound": _CHECKPOINT
    | {
        "state": "What was saved.",
        "lost": "How many newer checkpoints were saved and cannot be read any more.",
    },
}
