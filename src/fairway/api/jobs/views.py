"""How a job looks to its tenant: numbers become names, times become dates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET, Raw, Struct

from fairway.core.failure.fingerprint import as_text
from fairway.core.failure.retry import Counters
from fairway.core.flows import NEVER, Kind, Needs
from fairway.core.ids import unix_ms_of
from fairway.core.insight.trace_context import traceparent_of
from fairway.core.job import JobRecord
from fairway.core.lifecycle import State
from fairway.core.object_storage.reference import referred
from fairway.core.scheduling.timing import OnLate
from fairway.core.unix_time import from_unix_ms
from fairway.services.jobs.flows import FlowRecord
from fairway.services.jobs.lookup import JobSight
from fairway.services.registry.tenants_and_keys import Directory
from fairway.wire.exchange import NULL
from fairway.wire.flows import FlowView
from fairway.wire.messages import CheckpointSeen, JobView


async def job_view(sight: JobSight, directory: Directory, *, whole: bool = True) -> JobView:
    """`whole` adds the payload; lists go without."""
    record = sight.record
    # a run is counted from its beginning: what a person sees run is not its nought-th
    under_way = int(record.state == State.RUNNING)
    started = record.started_at
    if started is None and record.finished_at is not None and record.ran_us is not None:
        started = record.finished_at - timedelta(microseconds=record.ran_us)
    large_payload, large_result = referred(record.payload), referred(record.result or b"")
    return JobView(
        id=record.id,
        type=await directory.type_name(record.type),
        pool=directory.pools.by_number[record.pool].name,
        state=State(record.state).label,
        priority=record.priority,
        attempts=record.attempts + under_way,
        deliveries=record.deliveries + under_way,
        created_at=from_unix_ms(unix_ms_of(record.id)),
        execute_at=None if record.execute_at == NEVER else record.execute_at,
        started_at=started,
        finished_at=record.finished_at,
        ran_seconds=None if record.ran_us is None else record.ran_us / 1e6,
        billable_seconds=_billed_us(record) / 1e6,
        unbilled_seconds=(record.unbilled_us or 0) / 1e6,
        timeout_seconds=None if record.timeout_ms is None else record.timeout_ms / 1000,
        late_seconds=_late_seconds(record.execute_at, started),
        not_after=record.not_after,
        on_late=None if record.on_late is None else OnLate(record.on_late).label,
        checkpoint=_checkpoint(sight),
        progress=_raw(sight.progress or _last_progress(record)),
        payload=Raw(record.payload) if whole and large_payload is None else UNSET,
        payload_bytes=None if large_payload is None else large_payload.size_bytes,
        result=_raw(record.result) if large_result is None else None,
        result_bytes=None if large_result is None else large_result.size_bytes,
        error=_raw(record.error),
        failures=_failures(record.failures),
        parent_id=record.parent,
        children=record.children or 0,
        fingerprint=None if record.fingerprint is None else as_text(record.fingerprint),
        tags=list(record.tags or ()),
        metadata=msgspec.json.decode(record.metadata) if record.metadata else {},
        traceparent=None if record.trace is None else traceparent_of(record.trace),
        history=[Raw(note) for note in record.history or ()] if whole else UNSET,
    )


class _Note(Struct):
    progress: Raw = NULL


_decode_note = msgspec.json.Decoder(_Note).decode


def _last_progress(record: JobRecord) -> bytes | None:
    """How far a job was that ended before its time."""
    if record.state not in (State.CANCELLED, State.DEAD) or not record.history:
        return None
    said = bytes(_decode_note(record.history[-1]).progress)
    return None if said == b"null" else said


def flow_view(found: FlowRecord, error: bytes | None = None) -> FlowView:
    return FlowView(
        id=found.id,
        kind=Kind(found.kind).name.lower(),
        state=found.label,
        on_all=Needs(found.needs).name.lower(),
        total=found.members,
        succeeded=found.succeeded,
        failed=found.failed,
        cancelled=found.cancelled,
        complete=not found.is_open,
        callback=found.waiting[0] if found.waiting else None,
        failed_job=found.last_failed,
        error=None if error is None else Raw(error),
        created_at=found.created_at,
        finished_at=found.finished_at,
    )


def _late_seconds(due: datetime | None, started: datetime | None) -> float | None:
    """A fact of two facts: when the run was due, and when it began."""
    if due is None or started is None or started < due:
        return None
    return (started - due).total_seconds()


def _failures(counts: Sequence[int] | None) -> dict[str, int]:
    """Failures by class, those that there were."""
    found = Counters(*counts)._asdict() if counts else {}
    return {name: count for name, count in found.items() if count}


def _billed_us(record: JobRecord) -> int:
    """Of all its runs; a success is not among those that are summed up in the row."""
    last_us = record.ran_us if record.state == State.SUCCEEDED else None
    return (record.billed_us or 0) + (last_us or 0)


def _checkpoint(sight: JobSight) -> CheckpointSeen | None:
    saved = sight.checkpoint
    if saved is None:
        return None
    return CheckpointSeen(
        number=saved.number, size_bytes=saved.facts.size_bytes, saved_at=saved.saved_at
    )


def _raw(text: bytes | None) -> Raw | None:
    return None if text is None else Raw(text)
