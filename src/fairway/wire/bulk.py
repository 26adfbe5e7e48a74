"""Many jobs at once: actions on them, and what they used."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, json

from fairway.wire.doc import doc
from fairway.wire.messages import JobView


class CancelMany(Struct, kw_only=True, forbid_unknown_fields=True):
    """Cancel every job that matches the filters of the address."""

    dry_run: Annotated[bool, doc("Count them, cancel nothing.")] = False
    all: Annotated[bool, doc("Every job that has not ended; needed when no filter is given.")] = (
        False
    )


class CancelledMany(Struct, kw_only=True):
    """What became of a page of them; go on with `next_cursor` until it is null."""

    matched: Annotated[
        int, doc("Jobs of this page that matched; of a dry run, all, up to 100 000.")
    ]
    cancelled: Annotated[int, doc("Waited, and are cancelled now.")]
    asked_to_stop: Annotated[int, doc("Run; they end as cancelled, or as they would have.")]
    next_cursor: Annotated[
        str | None, doc("Send the same request with it for the next page; null when all are done.")
    ] = None


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
    missing: Annotated[list[str], doc("Ids of no jobs of yours.")]


class PoolUsage(Struct, kw_only=True):
    """What jobs of one pool used."""

    pool: Annotated[str, doc("The pool.")]
    jobs: Annotated[int, doc("Jobs that were submitted in that time.")]
    billable_slot_seconds: Annotated[float, doc("Slot-time of their runs that is billed.")]
    unbilled_slot_seconds: Annotated[float, doc("Of runs that the platform cut short.")]


class Usage(Struct, kw_only=True):
    """Slot-time of the jobs that were submitted in some time, by pool."""

    pools: Annotated[list[PoolUsage], doc("By pool; pools without jobs are left out.")]


decode_wait = json.Decoder(WaitForJobs).decode
