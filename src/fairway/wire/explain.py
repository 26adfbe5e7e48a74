"""Why a job waits, on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Struct

from fairway.wire.doc import doc


class StartEstimate(Struct, kw_only=True):
    """When the job may start: a guess with its spread, no promise."""

    earliest_at: Annotated[datetime, doc("Hardly before this.")]
    likely_at: Annotated[datetime, doc("About then.")]
    latest_at: Annotated[datetime, doc("Hardly after this, if the load stays as it is.")]


class ShareReceived(Struct, kw_only=True):
    """Slot-time of the job's tenant in its pool, of late."""

    window_seconds: Annotated[float, doc("How far back this looks: up to a minute.")]
    received_slot_seconds: Annotated[float, doc("Slot-time that you got.")]
    entitled_slot_seconds: Annotated[float, doc("Your fair slot-time while you had work.")]


class Explained(Struct, kw_only=True):
    """Why a job is where it is."""

    id: Annotated[str, doc("The job.")]
    state: Annotated[str, doc("Where it stands.")]
    reason: Annotated[
        str,
        doc(
            "starting, slot, fair_share, capped, key_limit, paused, no_worker, not_due, rate,"
            " circuit_open, running, finished; held: for its tenant's home in another region."
        ),
    ]
    detail: Annotated[str, doc("The reason in a sentence.")]
    position: Annotated[
        int | None, doc("Its place among your jobs of the same type, priority and fair_key.")
    ]
    position_is_exact: Annotated[bool, doc("False beyond the first 10 000.")]
    tenants_ahead: Annotated[int, doc("Tenants whose turn comes first, about.")]
    running: Annotated[int, doc("Jobs of yours that run in this pool now.")]
    fair_slots: Annotated[float, doc("Slots that you may expect while all others keep working.")]
    run_seconds: Annotated[float, doc("How long a run of this type takes, about.")]
    start: Annotated[StartEstimate | None, doc("When it may start; null when nobody can say.")]
    share: Annotated[
        ShareReceived | None,
        doc("What you got against what you were due; null before the first minute."),
    ]
