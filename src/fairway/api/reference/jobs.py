"""What a tenant can do with jobs: hand them in, ask, list, follow, cancel."""

from __future__ import annotations

from fairway.api.reference import shared
from fairway.api.reference.filters import FILTERS
from fairway.api.reference.large import NEW_UPLOAD, READ_PAYLOAD, READ_RESULT
from fairway.api.reference.many import CANCEL_MANY, USAGE
from fairway.api.reference.shape import Group, Operation, Parameter, Reply, ReplyHeader
from fairway.api.reference.submitting import SUBMIT, SUBMIT_BATCH
from fairway.wire.explain import Explained
from fairway.wire.messages import JobList, JobView, Reschedule

LIST = Operation(
    name="listJobs",
    method="GET",
    path="/v1/jobs",
    summary="List jobs",
    about="Newest first, without payloads. Pages stay where they are while new jobs come in:"
    " follow `next_cursor`, or the `Link` header, until it is null.",
    key="tenant",
    parameters=FILTERS,
    replies=(
        Reply(
            status=200,
            about="A page of jobs.",
            kind=JobList,
            headers=(
                ReplyHeader(
                    name="Link",
                    about='The next page, as `rel="next"`. Absent on the last page.',
                    example='</v1/jobs?cursor=AZgKXnwbcACAAASisbPU5Q>; rel="next"',
                ),
            ),
            example={"jobs": [shared.LISTED_EXAMPLE], "next_cursor": "AZgKXnwbcACAAASisbPU5Q"},
        ),
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", "UNKNOWN_POOL", *shared.SLOW),
)

_UNCHANGED = Reply(
    status=304, about="The job has not changed since that `ETag`.", headers=(shared.ETAG,)
)

READ = Operation(
    name="getJob",
    method="GET",
    path="/v1/jobs/{id}",
    summary="Get a job",
    about="The job as it stands, with its payload, progress and result.\n\n"
    "To wait for the end, send `Prefer: wait=60`. To wait for the next change, send"
    " `If-None-Match` with the last `ETag` as well.",
    key="tenant",
    parameters=(shared.JOB_PATH, shared.PREFER_WAIT, shared.IF_NONE_MATCH),
    replies=(
        Reply(
            status=200,
            about="The job.",
            kind=JobView,
            headers=(shared.ETAG, shared.PREFERENCE_APPLIED),
            example=shared.JOB_EXAMPLE,
        ),
        _UNCHANGED,
    ),
    problems=("NOT_FOUND",),
)

HEAD = Operation(
    name="headJob",
    method="HEAD",
    path="/v1/jobs/{id}",
    summary="Ask whether a job changed",
    about="The headers of `GET`, without the body.",
    key="tenant",
    parameters=(shared.JOB_PATH, shared.PREFER_WAIT, shared.IF_NONE_MATCH),
    replies=(Reply(status=200, about="The job exists.", headers=(shared.ETAG,)), _UNCHANGED),
    problems=("NOT_FOUND",),
)

CANCEL = Operation(
    name="cancelJob",
    method="DELETE",
    path="/v1/jobs/{id}",
    summary="Cancel a job",
    about="A job that waits is cancelled at once. A job that runs is asked to stop: it becomes"
    " cancelled when its handler does, or ends as it would have.",
    key="tenant",
    parameters=(shared.JOB_PATH,),
    replies=(
        Reply(
            status=200,
            about="The job is cancelled.",
            kind=JobView,
            example=shared.QUEUED_EXAMPLE
            | {"state": "cancelled", "finished_at": "2026-01-31T12:00:01Z"},
        ),
        Reply(
            status=202,
            about="The job runs and has been asked to stop.",
            kind=JobView,
            example=shared.QUEUED_EXAMPLE
            | {"state": "running", "started_at": "2026-01-31T12:00:00.126Z"},
        ),
    ),
    problems=("NOT_FOUND", "CONFLICT", "NOT_OWNER", "OVERLOADED"),
)

RESCHEDULE = Operation(
    name="rescheduleJob",
    method="PATCH",
    path="/v1/jobs/{id}",
    summary="Move a job to another time",
    about="While a job is `scheduled`, before its first run or between two attempts, its time can"
    " be changed. Against the clock there is one winner: a job that was queued at the same moment"
    " stays queued, and this answers 409.",
    key="tenant",
    parameters=(shared.JOB_PATH,),
    body=Reschedule,
    body_example={"delay_seconds": 3600},
    replies=(
        Reply(
            status=200,
            about="The job with its new time.",
            kind=JobView,
            example=shared.QUEUED_EXAMPLE
            | {"state": "scheduled", "execute_at": "2026-01-31T13:00:00Z"},
        ),
    ),
    problems=(
        "INVALID_JSON", "INVALID_REQUEST", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE",
        "REQUEST_TIMEOUT", "NOT_FOUND", "CONFLICT", "NOT_OWNER", "OVERLOADED",
    ),
)  # fmt: skip

FOLLOW = Operation(
    name="followJob",
    method="GET",
    path="/v1/jobs/{id}/events",
    summary="Follow a job",
    about="Server-sent events: one for the job as it stands, then one for every change, until its"
    " final state ends the stream. `event` is the state, `id` the version, `data` the whole job."
    " A short run may be over before `running` could be shown.",
    key="tenant",
    parameters=(
        shared.JOB_PATH,
        Parameter(
            name="Last-Event-ID",
            place="header",
            about="The last `id` you have; what you know already is not sent again.",
            example=shared.VERSION,
        ),
    ),
    replies=(
        Reply(
            status=200,
            about="The stream.",
            media="text/event-stream",
            schema={},  # tools differ in what they mean: all of the text, or each event
            example=f'id: 1.0.0.0.0\nevent: queued\ndata: {{"id": "{shared.JOB_ID}", …}}\nretry:'
            f' 2000\n\nid: {shared.VERSION}\nevent: succeeded\ndata: {{"id":'
            f' "{shared.JOB_ID}", …}}\nretry: 2000\n',
        ),
        Reply(status=204, about="The job is final and you have its last event: stop asking."),
    ),
    problems=("NOT_FOUND", "TOO_MANY_STREAMS"),
)

EXPLAIN = Operation(
    name="explainJob",
    method="GET",
    path="/v1/jobs/{id}/explain",
    summary="Why does it wait?",
    about="The reason why a job is not running, its place in line, an estimate of its start with"
    " the spread, and the slot-time you got against what you were due over the last minute.",
    key="tenant",
    parameters=(shared.JOB_PATH,),
    replies=(
        Reply(
            status=200,
            about="The explanation.",
            kind=Explained,
            example={
                "id": shared.JOB_ID,
                "state": "queued",
                "reason": "slot",
                "detail": "All slots are busy; it starts when its turn comes.",
                "position": 12,
                "position_is_exact": True,
                "tenants_ahead": 3,
                "running": 4,
                "fair_slots": 4.5,
                "run_seconds": 0.31,
                "start": {
                    "earliest_at": "2026-01-31T12:00:00.412Z",
                    "likely_at": "2026-01-31T12:00:00.824Z",
                    "latest_at": "2026-01-31T12:00:01.958Z",
                },
                "share": {
                    "window_seconds": 48.2,
                    "received_slot_seconds": 211.0,
                    "entitled_slot_seconds": 216.9,
                },
            },
        ),
    ),
    problems=("NOT_FOUND", "NOT_OWNER", *shared.QUICK),
)

JOBS = Group(
    name="Jobs",
    about="Submit work and hear what became of it. These need a tenant's key.",
    operations=(
        SUBMIT, SUBMIT_BATCH, NEW_UPLOAD, LIST, READ, HEAD, READ_PAYLOAD, READ_RESULT,
        RESCHEDULE, CANCEL, CANCEL_MANY, FOLLOW, EXPLAIN, USAGE,
    ),
)  # fmt: skip
