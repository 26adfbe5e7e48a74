"""Dead letters, and what restrains failing jobs, as tenants see and steer them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Raw, Struct

from fairway.wire.doc import doc
from fairway.wire.messages import JobError

NULL = Raw(b"null")

COUNT_IS_EXACT = doc("False when there are more than a hundred thousand.")


class ReplayOne(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to replay one dead letter."""

    payload: Annotated[
        Raw, doc("Arguments in place of the job's own; null keeps them.", dict[str, Any] | None)
    ] = NULL


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
