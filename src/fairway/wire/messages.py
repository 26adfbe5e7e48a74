"""What tenants send and get: submissions, job views, lists.

Field docs are the API's docs: `/openapi.json` is made from these types. Payloads and results stay
raw JSON text from edge to edge; nobody in between takes them apart.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

# `$` alone would let a line end pass: it stands before one as well as at the very end.
END = r"$(?!\n)"
JOB_TYPE_PATTERN = r"^[A-Za-z][A-Za-z0-9_.:-]{0,127}" + END
POOL_PATTERN = r"^[a-z][a-z0-9_-]{0,31}" + END
JOB_TYPE_WORDS = "up to 128 letters (A-Z, a-z), digits and _ . : - and begin with a letter"
POOL_WORDS = "up to 32 small letters (a-z), digits and _ - and begin with a letter"

JobType = Annotated[str, Meta(pattern=JOB_TYPE_PATTERN, examples=["email.send"])]
PoolName = Annotated[str, Meta(pattern=POOL_PATTERN, examples=["short"])]
Priority = Annotated[int, Meta(ge=0, le=9)]
FairKey = Annotated[str, Meta(min_length=1, max_length=255, examples=["customer-17"])]
TimeoutSeconds = Annotated[float, Meta(gt=0, le=7 * 24 * 3600)]

Moment = Annotated[datetime, Meta(tz=True)]
DelaySeconds = Annotated[float, Meta(ge=0, le=5 * 366 * 24 * 3600)]
OnLate = Literal["run", "skip", "flag"]

EMPTY_OBJECT = Raw(b"{}")
BATCH_MAX = 10_000


class JobRequest(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A job to accept. `payload` is the object of arguments that the handler gets."""

    type: JobType
    payload: Raw = EMPTY_OBJECT
    payload_upload: str | None = None
    pool: PoolName | None = None
    priority: Priority = 5
    fair_key: FairKey | None = None
    timeout_seconds: TimeoutSeconds | None = None
    execute_at: Moment | None = None
    delay_seconds: DelaySeconds | None = None
    exact: bool = False
    not_after: Moment | None = None
    on_late: OnLate | None = None


class Reschedule(Struct, kw_only=True, forbid_unknown_fields=True):
    """Another time for a scheduled job: `execute_at` or `delay_seconds`."""

    execute_at: Moment | None = None
    delay_seconds: DelaySeconds | None = None
    exact: bool = False


class BatchRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Up to 10 000 jobs in one call; each gets its own status."""

    jobs: list[Raw]


class JobAccepted(Struct, kw_only=True, gc=False):
    """The job is on disk."""

    id: str
    state: str = "queued"


class BatchItem(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One job of a batch: 202 with its id, or the problem that kept it out."""

    status: int
    id: str | None = None
    problem: dict[str, Any] | None = None


class BatchReply(Struct, kw_only=True):
    """One item per job, in the order they were sent."""

    accepted: int
    items: list[BatchItem]


class JobError(Struct, kw_only=True, omit_defaults=True):
    """Why the last run failed, and what was decided because of it."""

    failure: str = ""
    reason: str = ""
    type: str = ""
    message: str = ""
    stack: str = ""
    dependency: str = ""


class RunView(Struct, kw_only=True):
    """One run of a job that was no success, or a replay."""

    delivery: int
    attempt: int
    outcome: str
    ended_at: datetime
    ran_seconds: float
    worker: str
    build: str
    reason: str
    billable: bool = True
    progress: Raw | None = None
    error: Raw | None = None


class CheckpointSeen(Struct, kw_only=True):
    """The newest checkpoint of a job: where its next run would begin."""

    number: int
    size_bytes: int
    saved_at: datetime


class JobView(Struct, kw_only=True):
    """A job as its tenant sees it."""

    id: str
    type: str
    pool: str
    state: str
    priority: int
    attempts: int
    deliveries: int
    created_at: datetime
    execute_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    ran_seconds: float | None = None
    billable_seconds: float = 0.0
    unbilled_seconds: float = 0.0
    timeout_seconds: float | None = None
    late_seconds: float | None = None
    not_after: datetime | None = None
    on_late: str | None = None
    progress: Raw | None = None
    checkpoint: CheckpointSeen | None = None
    payload: Raw | UnsetType = UNSET
    payload_bytes: int | None = None
    result: Raw | None = None
    result_bytes: int | None = None
    error: Raw | None = None
    failures: dict[str, int] = {}
    fingerprint: str | None = None
    history: list[Raw] | UnsetType = UNSET


class JobList(Struct, kw_only=True):
    """A page of jobs, newest first; `next_cursor` is null on the last page."""

    jobs: list[JobView]
    next_cursor: str | None = None


decode_job = msgspec.json.Decoder(JobRequest).decode
decode_reschedule = msgspec.json.Decoder(Reschedule).decode
decode_batch = msgspec.json.Decoder(BatchRequest).decode
encode = msgspec.json.Encoder().encode
