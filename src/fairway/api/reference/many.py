"""Many jobs at once: cancel by filter, and what jobs used."""

from __future__ import annotations

from fairway.api.reference import shared
from fairway.api.reference.filters import FILTERS
from fairway.api.reference.shape import Operation, Reply
from fairway.wire.many import CancelledMany, CancelMany, Usage

_BY_NAME = {parameter.name: parameter for parameter in FILTERS}

CANCEL_MANY = Operation(
    name="cancelJobs",
    method="POST",
    path="/v1/jobs/cancel",
    summary="Cancel many jobs",
    about="Every job that has not ended and matches the filters, a thousand a call, newest first:"
    " go on with `next_cursor` until it is null. Those that wait are cancelled at once; those that"
    " run are asked to stop. With `dry_run` nothing is cancelled and `matched` counts up to"
    " 100 000.",
    key="tenant",
    parameters=tuple(
        _BY_NAME[name] for name in ("state", "type", "pool", "since", "until", "cursor")
    ),
    body=CancelMany,
    body_example={"dry_run": True},
    replies=(
        Reply(
            status=200,
            about="What became of this page of them.",
            kind=CancelledMany,
            example={"matched": 1000, "cancelled": 990, "asked_to_stop": 10,
                     "next_cursor": "AZgKXnwbcACAAASisbPU5Q"},
        ),
    ),
    problems=("INVALID_JSON", "INVALID_REQUEST", "INVALID_CURSOR", "UNKNOWN_POOL", "NOT_OWNER",
              *shared.SLOW, "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "REQUEST_TIMEOUT"),
)  # fmt: skip

USAGE = Operation(
    name="getUsage",
    method="GET",
    path="/v1/usage",
    summary="What your jobs used",
    about="Slot-seconds of the jobs that were submitted in some time, by pool, over all their runs."
    " Runs that the platform cut short (a worker died, a deploy) are not billed.",
    key="tenant",
    parameters=(_BY_NAME["since"], _BY_NAME["until"]),
    replies=(
        Reply(
            status=200,
            about="Slot-time by pool.",
            kind=Usage,
            example={
                "pools": [
                    {
                        "pool": "short",
                        "jobs": 120_000,
                        "billable_slot_seconds": 5400.25,
                        "unbilled_slot_seconds": 3.5,
                    }
                ]
            },
        ),
    ),
    problems=("INVALID_REQUEST", *shared.SLOW),
)
