"""Many jobs at once: actions on them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct, json

from fairway.wire.doc import doc
from fairway.wire.messages import JobView

NULL = Raw(b"null")
PerSecond = Annotated[int, Meta(ge=1, le=10_000)]
FilterText = Annotated[str, Meta(max_length=1_000)]


class BulkFilters(
    Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, frozen=True
):
    """Which jobs: the filters of `GET /v1/jobs`, and a cause. What is left out does not narrow."""

    state: Annotated[
        FilterText | None,
        doc("One or more states, with commas between; of a cancel such as have not ended."),
    ] = None
    type: Annotated[FilterText | None, doc("A job type.")] = None
    pool: Annotated[FilterText | None, doc("A pool.")] = None
    tag: Annotated[FilterText | None, doc("A tag that it has.")] = None
    fingerprint: Annotated[
        FilterText | None, doc("A cause, from the groups of dead letters; not of a cancel.")
    ] = None
    since: Annotated[
        FilterText | None, doc("Submitted at or after this moment, with its zone.")
    ] = None
    until: Annotated[FilterText | None, doc("Submitted before this moment, with its zone.")] = None


class BulkRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """An act on every job that matches."""

    act: Annotated[
        Literal["cancel", "replay", "discard"],
        doc("cancel: jobs that have not ended. replay, discard: dead letters."),
    ]
    filter: Annotated[BulkFilters, doc("Which jobs.")] = BulkFilters()
    all: Annotated[bool, doc("Every job that the act can be done to; needed without a filter.")] = (
        False
    )
    dry_run: Annotated[bool, doc("Only count.")] = False
    per_second: Annotated[
        PerSecond | None,
        doc("At most so many in a second; a hundred for a replay, else ten thousand."),
    ] = None
    payload: Annotated[
        Raw,
        doc(
            "Of a replay: arguments in place of every job's own; null keeps them.",
            dict[str, Any] | None,
        ),
    ] = NULL


class BulkCount(Struct, kw_only=True):
    """What a dry run found."""

    matched: Annotated[int, doc("How many jobs match.")]
    is_exact: Annotated[
        bool,
        doc(
            "False when there may be more: beyond a million dead letters, 100 000 jobs that have"
            " not ended, or half a million jobs to look through for these."
        ),
    ]


class BulkActionView(Struct, kw_only=True):
    """An act on many jobs, and how far it has come."""

    id: Annotated[str, doc("The action's id.")]
    act: Annotated[str, doc("cancel, replay or discard.")]
    state: Annotated[str, doc("running, done, aborted or failed.")]
    filter: Annotated[BulkFilters, doc("Which jobs.")]
    per_second: Annotated[int, doc("At most so many in a second.")]
    matched: Annotated[int, doc("How many matched when it began.")]
    done: Annotated[int, doc("Cancelled, replayed or discarded.")]
    asked_to_stop: Annotated[
        int, doc("Of a cancel: they ran, and were asked to stop; most end as cancelled soon.")
    ]
    skipped: Annotated[int, doc("Ended or came back by themselves before their turn.")]
    failed: Annotated[int, doc("That the store refused to change.")]
    created_at: Annotated[datetime, doc("When it began; what came later is not part of it.")]
    finished_at: Annotated[datetime | None, doc("When it ended.")]
    error: Annotated[
        str | None, doc("What the store said when it last refused; what was done stays done.")
    ]


class BulkActionList(Struct, kw_only=True):
    """The newest actions."""

    actions: Annotated[list[BulkActionView], doc("Newest first, at most 50.")]


IDS_MAX = 1000


class WaitForJobs(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which of these jobs have ended, as soon as any has."""

    ids: Annotated[
        Annotated[list[str], Meta(min_length=1, max_length=IDS_MAX)],
        doc("Ids of your jobs; a thousand at most."),
    ]
    wait_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=60)], doc("For so long, if none has; a minute at most.")
    ] = 0
    caller: Annotated[
        Annotated[str, Meta(max_length=64)],
        doc(
            "A word of your own, for a process that asks anew with more ids: its earlier call is"
            " answered at once. Empty: this call stands alone."
        ),
    ] = ""
    all: Annotated[
        bool, doc("All of them as they stand, at once, not only those that have ended.")
    ] = False


class JobsEnded(Struct, kw_only=True):
    """Those that have ended; none when the wait is over."""

    jobs: Annotated[
        list[JobView],
        doc("As lists show them. Fewer than there are when they are many or heavy: ask again."),
    ]
    missing: Annotated[list[str], doc("Ids of no jobs of yours; of many the first, ask again.")]


decode_wait = json.Decoder(WaitForJobs).decode
