"""What tenants send and get: submissions, job views, lists.

Field docs are the API's docs: `/openapi.json` is made from these types. Payloads and results stay
raw JSON text from edge to edge; nobody in between takes them apart.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from fairway.core.backlog.key_limits import LIMITS_PER_JOB
from fairway.core.lifecycle import BY_LABEL
from fairway.wire.doc import doc
from fairway.wire.key_limits import JobLimit
from fairway.wire.problems import Problem
from fairway.wire.unique import UniqueRequest

# `$` alone would let a line end pass: it stands before one as well as at the very end.
END = r"$(?!\n)"
JOB_TYPE_PATTERN = r"^[A-Za-z][A-Za-z0-9_.:-]{0,127}" + END
POOL_PATTERN = r"^[a-z][a-z0-9_-]{0,31}" + END
JOB_TYPE_WORDS = "up to 128 letters (A-Z, a-z), digits and _ . : - and begin with a letter"
POOL_WORDS = "up to 32 small letters (a-z), digits and _ - and begin with a letter"

JobType = Annotated[str, Meta(pattern=JOB_TYPE_PATTERN, examples=["email.send"])]
PoolName = Annotated[str, Meta(pattern=POOL_PATTERN, examples=["short"])]
Priority = Annotated[int, Meta(ge=0, le=9)]
TAG_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:/=-]{0,63}" + END
TAGS_MAX, METADATA_MAX = 10, 16
Tag = Annotated[str, Meta(pattern=TAG_PATTERN, examples=["nightly"])]
MetadataKey = Annotated[str, Meta(pattern=TAG_PATTERN)]
MetadataValue = Annotated[str, Meta(max_length=256)]
FairKey = Annotated[str, Meta(min_length=1, max_length=255, examples=["customer-17"])]
TimeoutSeconds = Annotated[float, Meta(gt=0, le=7 * 24 * 3600)]

Moment = Annotated[datetime, Meta(tz=True)]
DelaySeconds = Annotated[float, Meta(ge=0, le=5 * 366 * 24 * 3600)]
OnLate = Literal["run", "skip", "flag"]

EMPTY_OBJECT = Raw(b"{}")
BATCH_MAX = 10_000

DELAY_SECONDS = doc("Not before this long from now. Instead of execute_at.")


class JobRequest(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A job to accept. `payload` is the object of arguments that the handler gets."""

    type: Annotated[JobType, doc("Which handler runs it, such as email.send.")]
    payload: Annotated[
        Raw,
        doc(
            "The handler's arguments by name. At most 8 MB and 100 000 values, 64 levels"
            " deep, no key twice.",
            dict[str, Any],
        ),
    ] = EMPTY_OBJECT
    payload_upload: Annotated[
        str | None, doc("In place of a payload: the id of an upload, which may be larger.")
    ] = None
    pool: Annotated[
        PoolName | None, doc("The class of workers to run it; without it, its type's, else short.")
    ] = None
    priority: Annotated[Priority, doc("Order among your own jobs only: 9 goes before 0.")] = 5
    fair_key: Annotated[
        FairKey | None,
        doc("Whose job it is among your own customers: they share your part evenly."),
    ] = None
    timeout_seconds: Annotated[
        TimeoutSeconds | None,
        doc("A run that takes longer is stopped and counts as a failed attempt."),
    ] = None
    execute_at: Annotated[
        Moment | None, doc("Not before this moment. One that has passed means now.")
    ] = None
    delay_seconds: Annotated[DelaySeconds | None, DELAY_SECONDS] = None
    exact: Annotated[
        bool, doc("Due in more than an hour, a job is spread by up to a minute unless this is set.")
    ] = False
    not_after: Annotated[Moment | None, doc("The last moment to start.")] = None
    on_late: Annotated[
        OnLate | None,
        doc("What is done after it: skip (the default), flag (run, with an event), or run."),
    ] = None
    tags: Annotated[
        list[Tag], Meta(max_length=TAGS_MAX), doc("Words to find it by, in lists.")
    ] = []
    metadata: Annotated[
        dict[MetadataKey, MetadataValue],
        Meta(max_length=METADATA_MAX),
        doc("Words of your own about it, shown with it as they are."),
    ] = {}
    limits: Annotated[
        list[JobLimit] | None,
        doc(
            "What it waits for beside a slot: so many jobs with a key at once (at_most), or"
            " so many starts in a while (count, per_seconds). Four of them at most.",
            Annotated[list[JobLimit], Meta(max_length=LIMITS_PER_JOB)] | None,
        ),
    ] = None
    unique: Annotated[
        UniqueRequest | None, doc("One job of its kind at a time, by a key of yours.")
    ] = None
    events: Annotated[
        bool,
        doc(
            "Whether what becomes of it is written to your log of events (`GET /v1/events`), where"
            " that is not done for all your jobs."
        ),
    ] = False


class Reschedule(Struct, kw_only=True, forbid_unknown_fields=True):
    """Another time for a scheduled job: `execute_at` or `delay_seconds`."""

    execute_at: Annotated[Moment | None, doc("Not before this moment.")] = None
    delay_seconds: Annotated[DelaySeconds | None, DELAY_SECONDS] = None
    exact: Annotated[
        bool, doc("Due in more than an hour, it is spread by up to a minute unless this is set.")
    ] = False


class BatchRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Up to 10 000 jobs in one call; each gets its own status."""

    jobs: Annotated[
        list[Raw],
        doc(
            "The jobs, each as in a single submission.",
            Annotated[list[JobRequest], Meta(min_length=1, max_length=BATCH_MAX)],
        ),
    ]
    idempotency_keys: Annotated[
        list[str] | None,
        doc(
            "A key for each job, in their order, as its Idempotency-Key would be if it came alone."
            " Instead of the header."
        ),
    ] = None
    traceparents: Annotated[
        list[str] | None,
        doc(
            "The trace of each job, in their order, as its traceparent would be if it came alone."
            " One that is empty, not well formed or missing is the header's."
        ),
    ] = None


class JobAccepted(Struct, kw_only=True, gc=False):
    """The job is on disk."""

    id: Annotated[str, doc("The job's stable id.")]
    state: Annotated[
        str, doc("Where it starts; a replay says the same, whatever became of the job since.")
    ] = "queued"


class BatchItem(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One job of a batch: 202 with its id, or the problem that kept it out."""

    status: Annotated[int, doc("202, or the status this job alone would have got.")]
    id: Annotated[str | None, doc("The job's id, when it was accepted.")] = None
    problem: Annotated[dict[str, Any] | None, doc("Why it was not.", Problem | None)] = None


class BatchReply(Struct, kw_only=True):
    """One item per job, in the order they were sent."""

    accepted: Annotated[int, doc("How many of the items were accepted.")]
    items: Annotated[list[BatchItem], doc("One per job, in the order they were sent.")]


class JobError(Struct, kw_only=True, omit_defaults=True):
    """Why the last run failed, and what was decided because of it."""

    failure: Annotated[
        str, doc("The failure class: app_error, permanent, worker_crash, timeout and so on.")
    ] = ""
    reason: Annotated[
        str, doc("What was decided: retrying, parked, permanent, poison, attempts_exhausted, …")
    ] = ""
    type: Annotated[str, doc("The kind of error, such as ValueError.")] = ""
    message: Annotated[str, doc("What it said.")] = ""
    stack: Annotated[
        str, doc("Where it happened, in the handler and below; the end of it, if it is long.")
    ] = ""
    dependency: Annotated[str, doc("Which dependency failed, when the class is dependency.")] = ""


class RunView(Struct, kw_only=True):
    """One run of a job that was no success, or a replay."""

    delivery: Annotated[
        int, doc("Which delivery it was; a snooze or a hand-back gives its number back.")
    ]
    attempt: Annotated[int, doc("Which attempt it was, or would have been.")]
    outcome: Annotated[str, doc("failed, lost, snoozed, cancelled, returned, or replayed.")]
    ended_at: Annotated[datetime, doc("When the run was over.")]
    ran_seconds: Annotated[float, doc("How long it took.")]
    worker: Annotated[str, doc("Who ran it.")]
    build: Annotated[str, doc("Which build of the code, as the worker says.")]
    reason: Annotated[str, doc("What was decided because of it.")]
    billable: Annotated[bool, doc("False when the platform cut it short.")] = True
    progress: Annotated[Raw | None, doc("How far it was, if it said so.")] = None
    error: Annotated[Raw | None, doc("What it said, when it failed.", JobError | None)] = None


class CheckpointSeen(Struct, kw_only=True):
    """The newest checkpoint of a job: where its next run would begin."""

    number: Annotated[int, doc("Counts the checkpoints of one run, from one.")]
    size_bytes: Annotated[int, doc("How large the state is.")]
    saved_at: Annotated[datetime, doc("Since when it is safe.")]


class JobView(Struct, kw_only=True):
    """A job as its tenant sees it."""

    id: Annotated[str, doc("The job's stable id.")]
    type: Annotated[str, doc("Which handler runs it.")]
    pool: Annotated[str, doc("The class of workers that runs it.")]
    state: Annotated[
        str, doc("Where it stands. The last four are final.", Literal[tuple(BY_LABEL)])
    ]
    priority: Annotated[int, doc("Order among your own jobs.")]
    attempts: Annotated[int, doc("Runs that the job itself answered for, and the one under way.")]
    deliveries: Annotated[
        int,
        doc("Times it was given to a worker; a crash, a hand-back and a snooze cost only these."),
    ]
    created_at: Annotated[datetime, doc("When it was accepted.")]
    execute_at: Annotated[
        datetime | None, doc("When it is or was last due; null for a job that was due at once.")
    ] = None
    started_at: Annotated[datetime | None, doc("When the last run began.")] = None
    finished_at: Annotated[datetime | None, doc("When it became final.")] = None
    ran_seconds: Annotated[float | None, doc("How long the last run took.")] = None
    billable_seconds: Annotated[float, doc("Slot-time of all its runs that is billed.")] = 0.0
    unbilled_seconds: Annotated[
        float, doc("Of runs that the platform cut short: a worker died, a deploy.")
    ] = 0.0
    timeout_seconds: Annotated[
        float | None, doc("The limit of one run, if it has one of its own.")
    ] = None
    late_seconds: Annotated[float | None, doc("How long after execute_at the last run began.")] = (
        None
    )
    not_after: Annotated[datetime | None, doc("The last moment to start.")] = None
    on_late: Annotated[str | None, doc("What is done after it: run, skip or flag.")] = None
    progress: Annotated[
        Raw | None,
        doc("What the handler last said of itself; kept when a job is cancelled or dead."),
    ] = None
    checkpoint: Annotated[
        CheckpointSeen | None,
        doc("Where its next run would begin, if it saved one. Lists go without."),
    ] = None
    payload: Annotated[Raw | UnsetType, doc("The arguments. Lists go without.", dict[str, Any])] = (
        UNSET
    )
    payload_bytes: Annotated[
        int | None, doc("So large that it is not here: GET /v1/jobs/{id}/payload.")
    ] = None
    result: Annotated[Raw | None, doc("What the handler returned.")] = None
    result_bytes: Annotated[
        int | None, doc("So large that it is not here: GET /v1/jobs/{id}/result.")
    ] = None
    error: Annotated[Raw | None, doc("Why the last failed run failed.", JobError | None)] = None
    failures: Annotated[dict[str, int], doc("How often it failed, by class.")] = {}
    parent_id: Annotated[str | None, doc("The job whose run started it, if one did.")] = None
    children: Annotated[int, doc("How many jobs its run started: GET /v1/jobs/{id}/children.")] = 0
    fingerprint: Annotated[
        str | None, doc("Stands for the cause of death, while it is a dead letter.")
    ] = None
    tags: Annotated[list[str], doc("Words to find it by.")] = []
    metadata: Annotated[dict[str, str], doc("Words of yours about it.")] = {}
    traceparent: Annotated[
        str | None, doc("The trace it belongs to (W3C trace context). Lists go without.")
    ] = None
    history: Annotated[
        list[Raw] | UnsetType,
        doc(
            "Runs that were no success, and replays: the last fifty. Lists go without.",
            list[RunView],
        ),
    ] = UNSET
    held_in: Annotated[
        str | UnsetType,
        doc("The region that holds it until its tenant's home takes it; only while one does.", str),
    ] = UNSET
    held_for: Annotated[str | UnsetType, doc("That home, beside held_in.", str)] = UNSET


class JobList(Struct, kw_only=True):
    """A page of jobs, newest first; `next_cursor` is null on the last page."""

    jobs: Annotated[list[JobView], doc("Newest first.")]
    next_cursor: Annotated[
        str | None, doc("Ask for the next page with it; null on the last page.")
    ] = None


decode_job = msgspec.json.Decoder(JobRequest).decode
decode_reschedule = msgspec.json.Decoder(Reschedule).decode
decode_batch = msgspec.json.Decoder(BatchRequest).decode
encode = msgspec.json.Encoder().encode
