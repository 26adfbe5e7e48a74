"""Dead letters, and what restrains failing jobs, as tenants see and steer them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct

from fairway.wire.doc import doc
from fairway.wire.messages import JobError

NULL = Raw(b"null")

PerSecond = Annotated[int, Meta(ge=1, le=10_000)]

COUNT_IS_EXACT = doc("False when there are more than a hundred thousand.")


class ReplayOne(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to replay one dead letter."""

    payload: Annotated[
        Raw, doc("Arguments in place of the job's own; null keeps them.", dict[str, Any] | None)
    ] = NULL


class ReplayMany(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to replay all dead letters that the filters in the query match."""

    payload: Annotated[
        Raw, doc("Arguments in place of every job's own; null keeps them.", dict[str, Any] | None)
    ] = NULL
    per_second: Annotated[PerSecond, doc("At most so many go back to the queue in a second.")] = 100
    dry_run: Annotated[bool, doc("Only count.")] = False


class DiscardMany(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to discard all dead letters that the filters in the query match."""

    dry_run: Annotated[bool, doc("Only count.")] = False


class Matched(Struct, kw_only=True):
    """What a dry run found: how many dead letters match."""

    matched: Annotated[int, doc("How many dead letters match.")]
    is_exact: Annotated[bool, doc("False when there are more than a million.")]


class ActionView(Struct, kw_only=True):
    """A replay or a discard of many dead letters, and how far it has come."""

    id: Annotated[str, doc("The action's id.")]
    kind: Annotated[str, doc("replay or discard.")]
    state: Annotated[str, doc("running, done, aborted or failed.")]
    type: Annotated[str | None, doc("Only of this job type.")]
    pool: Annotated[str | None, doc("Only of this pool.")]
    fingerprint: Annotated[str | None, doc("Only of this cause.")]
    per_second: Annotated[int, doc("At most so many in a second.")]
    matched: Annotated[int, doc("How many matched when it began.")]
    done: Annotated[int, doc("How many are done.")]
    created_at: Annotated[datetime, doc("When it began; what died later is not part of it.")]
    finished_at: Annotated[datetime | None, doc("When it ended.")]
    error: Annotated[
        str | None,
        doc("Why it failed: the store refused it again and again. What was done stays done."),
    ]


class ActionList(Struct, kw_only=True):
    """The newest actions."""

    actions: Annotated[list[ActionView], doc("Newest first, at most 50.")]


class FailureGroup(Struct, kw_only=True):
    """Dead letters that died of the same cause, as far as can be told."""

    fingerprint: Annotated[
        str, doc("Stands for the cause: job type, error type, message, innermost frame.")
    ]
    type: Annotated[str, doc("The job type.")]
    count: Annotated[int, doc("How many dead letters.")]
    count_is_exact: Annotated[bool, COUNT_IS_EXACT]
    last_job: Annotated[str, doc("The newest job among them.")]
    last_died_at: Annotated[datetime, doc("When that one died.")]
    error: Annotated[Raw | None, doc("What that one died of.", JobError | None)]


class TypeCount(Struct, kw_only=True):
    """Dead letters of one job type."""

    type: Annotated[str, doc("The job type.")]
    count: Annotated[int, doc("How many dead letters.")]
    count_is_exact: Annotated[bool, COUNT_IS_EXACT]


class FailureGroups(Struct, kw_only=True):
    """Dead letters by cause and by job type, the largest first."""

    groups: Annotated[list[FailureGroup], doc("By cause, the largest first, at most 200.")]
    types: Annotated[list[TypeCount], doc("By job type, the largest first, at most 200.")]


class EventView(Struct, kw_only=True):
    """Something that a tenant should hear of."""

    id: Annotated[int, doc("Grows with time.")]
    at: Annotated[datetime, doc("When it happened.")]
    kind: Annotated[str, doc("Such as dependency_circuit_open or quarantine_imposed.")]
    subject: Annotated[str, doc("What it is about: a job type, a pool, a job.")]
    detail: Annotated[str, doc("What happened, in a sentence.")]


class EventList(Struct, kw_only=True):
    """A page of events, newest first; `next_cursor` is null on the last page."""

    events: Annotated[list[EventView], doc("Newest first.")]
    next_cursor: Annotated[
        str | None, doc("Ask for the next page with it; null on the last page.")
    ] = None


class CircuitView(Struct, kw_only=True):
    """A dependency that jobs of a type are kept from, until it is back."""

    type: Annotated[str, doc("The job type that is held.")]
    dependency: Annotated[str, doc("What it leans on and cannot reach.")]
    opened_at: Annotated[datetime, doc("Since when.")]
    next_probe_seconds: Annotated[float, doc("When a few jobs are tried next.")]


class QuarantineView(Struct, kw_only=True):
    """A job type that mostly fails: two tries a job."""

    type: Annotated[str, doc("The job type.")]
    since: Annotated[datetime, doc("Since when.")]


class Restraints(Struct, kw_only=True):
    """What holds your failing jobs back at this moment."""

    circuits: Annotated[
        list[CircuitView],
        doc("Dependencies that are away; their jobs wait without using attempts."),
    ]
    quarantines: Annotated[
        list[QuarantineView], doc("Job types that mostly fail; their jobs are tried twice at most.")
    ]
