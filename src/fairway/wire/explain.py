"""Why a job waits, on the wire."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class StartEstimate(Struct, kw_only=True):
    """When the job may start: a guess with its spread, no promise."""

    earliest_at: datetime
    likely_at: datetime
    latest_at: datetime


class ShareReceived(Struct, kw_only=True):
    """Slot-time of the job's tenant in its pool, of late."""

    window_seconds: float
    received_slot_seconds: float
    entitled_slot_seconds: float


class Explained(Struct, kw_only=True):
    """Why a job is where it is."""

    id: str
    state: str
    reason: str
    detail: str
    position: int | None
    position_is_exact: bool
    tenants_ahead: int
    running: int
    fair_slots: float
    run_seconds: float
    start: StartEstimate | None
    share: ShareReceived | None
