"""Flows on the wire: jobs that wait for others, made together and seen as one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from fairway.core.flows import AFTER_MAX, ARGUMENT_CHARACTERS_MAX, PAGE_MAX
from fairway.wire.doc import doc
from fairway.wire.messages import JobRequest

FlowKind = Literal["group", "chain"]
FlowState = Literal["running", "succeeded", "failed", "cancelled"]
OnAll = Literal["succeeded", "ended"]
ArgumentName = Annotated[str, Meta(min_length=1, max_length=ARGUMENT_CHARACTERS_MAX)]
NULL = Raw(b"null")  # raw JSON cannot be told from null on the way in


class FlowRequest(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A flow to accept: its jobs, and what follows them."""

    kind: Annotated[
        FlowKind, doc("`group`: all start at once; `chain`: each when the one before succeeded.")
    ]
    jobs: Annotated[
        list[Raw],
        doc(
            "The jobs, each as in a single submission but without times and uploads: up to 1 000,"
            " of a chain up to 100.",
            Annotated[list[JobRequest], Meta(min_length=1, max_length=PAGE_MAX)],
        ),
    ]
    arguments: Annotated[
        list[ArgumentName | None],
        doc("Of a chain: for each job, the argument that takes the result of the one before."),
    ] = []
    callback: Annotated[
        Raw, doc("Of a group: a job that starts when all have ended.", JobRequest | None)
    ] = NULL
    on_all: Annotated[
        OnAll,
        doc(
            "What the callback, or a job with `after`, waits for: that all succeed, or that all"
            " end, however."
        ),
    ] = "succeeded"
    after: Annotated[
        list[str],
        doc(
            "Ids of jobs that must end before the first of these starts: up to 100.",
            Annotated[list[str], Meta(max_length=AFTER_MAX)],
        ),
    ] = []
    more: Annotated[bool, doc("More jobs of the group come with `POST /v1/flows/{id}/jobs`.")] = (
        False
    )


class FlowPageRequest(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """More jobs of a group that was made with `more`."""

    start: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)], doc("How many jobs came before these.")
    ]
    jobs: Annotated[
        list[Raw],
        doc("Up to 1 000.", Annotated[list[JobRequest], Meta(max_length=PAGE_MAX)]),
    ]
    more: Annotated[bool, doc("False with the last page: then the group is complete.")] = False


class FlowAccepted(Struct, kw_only=True):
    """The flow is on disk."""

    id: Annotated[str, doc("The flow's stable id.")]
    jobs: Annotated[list[str], doc("The ids of its jobs, in the order they were sent.")]
    callback: Annotated[str | None, doc("The id of its callback, if it has one.")] = None


class FlowPageAccepted(Struct, kw_only=True):
    """These jobs of the flow are on disk."""

    jobs: Annotated[list[str], doc("Their ids, in the order they were sent.")]


class FlowView(Struct, kw_only=True):
    """A flow as its tenant sees it."""

    id: Annotated[str, doc("The flow's stable id.")]
    kind: Annotated[str, doc("group or chain.", FlowKind)]
    state: Annotated[
        str,
        doc(
            "running, succeeded, failed (a replay may mend it) or cancelled.",
            FlowState,
        ),
    ]
    on_all: Annotated[str, doc("What its callback waits for.", OnAll)]
    total: Annotated[int, doc("How many jobs it has.")]
    succeeded: Annotated[int, doc("How many of them succeeded.")]
    failed: Annotated[int, doc("How many are dead.")]
    cancelled: Annotated[int, doc("How many were cancelled, or expired.")]
    complete: Annotated[bool, doc("False while more jobs are to be added.")]
    callback: Annotated[str | None, doc("The id of its callback, if it has one.")] = None
    failed_job: Annotated[str | None, doc("The last of its jobs that did not succeed.")] = None
    error: Annotated[Raw | None, doc("Why that one did not.", dict[str, Any] | None)] = None
    created_at: Annotated[datetime, doc("When it was accepted.")]
    finished_at: Annotated[datetime | None, doc("Since when none of its jobs is under way.")] = None


class FlowList(Struct, kw_only=True):
    """A page of flows, without their errors; `next_cursor` is null on the last page."""

    flows: Annotated[
        list[FlowView],
        doc("The newest first. With filters a page may be short, and yet not the last."),
    ]
    next_cursor: Annotated[
        str | None, doc("Ask for the next page with it; null on the last page.")
    ] = None


class FlowReplayed(Struct, kw_only=True):
    """What became of the dead letters of a flow."""

    replayed: Annotated[int, doc("How many went back to the queue.")]
