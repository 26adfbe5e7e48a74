"""What each field of the messages about tenants means; part of `field_notes.py`."""

from __future__ import annotations

_TERMS = {
    "weight": "Its share of slot-time beside the other tenants' weights.",
    "cap": "Jobs of one tenant that may run at once in one pool; null for no limit.",
    "rate_per_second": "Jobs that may be submitted a second, over time.",
    "burst": "Jobs that may be submitted at once after a pause.",
    "depth_limit": "Jobs that may wait at once; one more gets a 429.",
}
_FLOOR = {
    "floor_per_mille": "Part of the shared slots that a tenant with work holds at least;"
    " floors that add up to more than 800 shrink in proportion.",
}
_TENANT = _TERMS | {
    "tier": "Where values come from that the tenant has not of its own.",
    "reserved": "Pool → slots kept for this tenant even while idle.",
}
_IDENTITY = {"id": "The tenant's number.", "name": "Lower-case letters, digits and _.- only."}
_TIER = _TERMS | _FLOOR | {"group": "free: its tenants compete inside the free group's slice."}

TENANCY_NOTES: dict[str, dict[str, str]] = {
    "NewTenant": _TENANT | {"name": _IDENTITY["name"]},
    "TenantChange": _TENANT,
    "TenantView": _TENANT | _FLOOR | _IDENTITY,
    "TenantAdded": _TENANT | _FLOOR | _IDENTITY | {"api_key": "Its first key, shown once."},
    "TierTerms": _TIER,
    "TierView": _TIER | {"name": "Lower-case letters, digits and _- only."},
    "TierList": {"tiers": "The lightest first."},
    "Pause": {
        "tenant": "Jobs of this tenant.",
        "type": "Jobs of this type.",
        "pool": "Jobs of this pool.",
    },
    "PauseList": {"pauses": "Pauses in force."},
    "StartEstimate": {
        "earliest_at": "Hardly before this.",
        "likely_at": "About then.",
        "latest_at": "Hardly after this, if the load stays as it is.",
    },
    "ShareReceived": {
        "window_seconds": "How far back this looks: up to a minute.",
        "received_slot_seconds": "Slot-time that you got.",
        "entitled_slot_seconds": "Your fair slot-time while you had work.",
    },
    "Explained": {
        "id": "The job.",
        "state": "Where it stands.",
        "reason": "slot, fair_share, capped, paused, no_worker, not_due, rate, circuit_open,"
        " running, finished.",
        "detail": "The reason in a sentence.",
        "position": "Its place among your jobs of the same type, priority and fair_key.",
        "position_is_exact": "False beyond the first 10 000.",
        "tenants_ahead": "Tenants whose turn comes first, about.",
        "running": "Jobs of yours that run in this pool now.",
        "fair_slots": "Slots that you may expect while all others keep working.",
        "run_seconds": "How long a run of this type takes, about.",
        "start": "When it may start; null when nobody can say.",
        "share": "What you got against what you were due; null before the first minute.",
    },
    "Limits": _TERMS
    | {
        "tier": "Your tier.",
        "jobs_left": "Jobs that you may submit at once now.",
        "depth": "Jobs of yours that wait now.",
        "payload_bytes_max": "The largest payload of a job.",
        "payload_values_max": "Values in one payload; upload those with more.",
        "batch_jobs_max": "Jobs in one batch.",
        "batch_values_max": "Values in all jobs of a batch.",
        "refused": "Submissions refused since this server started, by code.",
    },
}
