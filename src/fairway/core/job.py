"""A job as the parts of the platform hand it around: frozen, narrow, cheap to make.

`QueuedJob` is a struct because tens of thousands a second are made straight from rows, and each is
looked at many times. It knows nothing of where it came from but a place to look first.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from fairway.core.ids import Epoch, JobId, PoolId, TenantId, TypeId, unix_ms_of

LIGHT_JOBS = 50
LIGHT_BYTES = 64 << 10
NO_PAYLOAD = b""  # of a job whose payload was not read; JSON text is never empty


class QueuedJob(Struct, frozen=True, order=True, gc=False):
    """What the dispatcher must know of a job that waits for a slot; the payload is JSON text.

    A job that ran when its owner changed comes without its payload (`NO_PAYLOAD`): only who sends
    it out again needs that, and reads it then.
    """

    id: JobId
    tenant: TenantId
    pool: PoolId
    type: TypeId
    priority: int
    lane: int  # of its fair_key; 0 without one
    epoch: Epoch  # of the last lease that was written down
    attempts: int
    deliveries: int
    timeout_ms: int | None
    payload: bytes
    failures: Sequence[int] | None = None  # counts by class, as `retry.Counters`; None: no failure
    timing: list[int | None] | None = None  # for `Timing.of`; None for a job that is due at once
    place: str | None = None  # where the store keeps its row, if it said so; a hint, no more
    limits: bytes | None = None  # of its tenant's own, packed (`key_limits.py`); None: it has none
    trace: bytes | None = None  # it belongs to one (`insight/trace_context.py`); None: to none


def due_ms_of(job: QueuedJob) -> int:
    """Since when it may run: since it was accepted, or since its own time came."""
    timing = job.timing
    return timing[0] or 0 if timing else unix_ms_of(job.id)


class JobMarks(NamedTuple):
    """Words of a tenant's own on a job: to find it by, to be shown with it, to hear of it."""

    tags: list[str] | None
    metadata: bytes | None  # JSON text
    events: bool | None = None  # somebody wants to hear what becomes of it; None: nobody

    @property
    def is_for_events(self) -> bool:
        """Whether it says that, and nothing else."""
        return self.events is True and self.tags is None and self.metadata is None


NO_MARKS = JobMarks(None, None)


_FOR_EVENTS = JobMarks(None, None, True)


def with_events(marks: JobMarks | None) -> JobMarks:
    return _FOR_EVENTS if marks is None else marks._replace(events=True)


def events_of(jobs: Iterable[QueuedJob], wanting: Container[TenantId]) -> dict[str, JobMarks]:
    """Marks of those whose tenants want to hear what becomes of them; they have no others."""
    return {job.id: with_events(None) for job in jobs if job.tenant in wanting}


class JobRecord(NamedTuple):
    """Everything the store knows of one job, for people and programs that ask."""

    id: JobId
    tenant: TenantId
    pool: PoolId
    type: TypeId
    priority: int
    lane: int
    state: int
    epoch: Epoch
    attempts: int
    deliveries: int
    timeout_ms: int | None
    execute_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    ran_us: int | None
    payload: bytes
    result: bytes | None
    error: bytes | None
    failures: Sequence[int] | None = None
    fingerprint: int | None = None  # set while the job is a dead letter
    not_after: datetime | None = None
    on_late: int | None = None
    billed_us: int | None = None  # slot-time of the runs before a success; None while none
    unbilled_us: int | None = None  # of runs that the platform cut short
    parent: JobId | None = None  # whose run started it
    children: int | None = None  # how many its success started
    children_ms: int | None = None  # the moment in their ids
    tags: Sequence[str] | None = None
    metadata: bytes | None = None  # JSON text
    history: Sequence[bytes] | None = None  # ends of runs but the first success, as JSON texts
    limits: bytes | None = None  # of its tenant's own, packed
    trace: bytes | None = None


def weight_bytes(job: QueuedJob) -> int:
    """What it takes of memory by its tenant's choice."""
    return len(job.payload) + len(job.limits or b"")


def weights_bytes(jobs: Iterable[QueuedJob]) -> int:
    """Of many: no call for each."""
    return sum([len(job.payload) + len(job.limits or b"") for job in jobs])


def is_heavy(jobs: int, size_bytes: int) -> bool:
    """Whether writing them takes much longer than writing one small job."""
    return jobs > LIGHT_JOBS or size_bytes > LIGHT_BYTES


class JobFilter(NamedTuple):
    """What to list; ids are bounds in time (`since` ≤ id < `before`)."""

    before: str
    since: str
    states: list[int] | None
    type: TypeId | None
    pool: PoolId | None
    limit: int
    tag: str | None = None
