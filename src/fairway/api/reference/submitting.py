"""How a tenant hands in work: one job, or many."""

from __future__ import annotations

from fairway.api.reference import shared
from fairway.api.reference.shape import Operation, Reply
from fairway.wire.messages import (
    BATCH_MAX,
    BatchReply,
    BatchRequest,
    JobAccepted,
    JobRequest,
    JobView,
)

_EMAIL = {"type": "email.send", "payload": {"to": "ada@example.com", "template": "welcome"}}
_BODY = ("INVALID_JSON", "INVALID_REQUEST", "INVALID_HEADER", "UNKNOWN_POOL", "PAYLOAD_TOO_LARGE",
         "TOO_MANY_VALUES", "UNSUPPORTED_MEDIA_TYPE", "REQUEST_TIMEOUT", "TOO_MANY_JOB_TYPES",
         "TOO_MANY_WAITING", "TOO_MANY_BYTES", "QUEUE_DEPTH_EXCEEDED", "TENANT_RATE_LIMIT_EXCEEDED",
         "NO_ROOM", "OVERLOADED", "STORAGE_UNAVAILABLE")  # fmt: skip

SUBMIT = Operation(
    name="submitJob",
    method="POST",
    path="/v1/jobs",
    summary="Submit a job",
    about="Answers 202 as soon as the job is on disk; a worker runs it later, at your fair share"
    " of slot-time. A job may run more than once, but only one run's result is recorded: use the"
    " job's id as the key for anything that must happen once.\n\n"
    "With `Prefer: wait=N` the same request brings the result, if the job ends in time.",
    key="tenant",
    parameters=(shared.IDEMPOTENCY_KEY, shared.PREFER_WAIT),
    body=JobRequest,
    body_example=_EMAIL,
    replies=(
        Reply(
            status=202,
            about="The job is on disk. (With `Prefer: wait`, the wait ended first, and the body is"
            " the whole job.)",
            kind=JobAccepted,
            headers=(
                shared.LOCATION, shared.REPLAYED, shared.PREFERENCE_APPLIED, shared.RATE_LIMIT,
                shared.RATE_LIMIT_POLICY,
            ),
            example={"id": shared.JOB_ID, "state": "queued"},
        ),
        Reply(
            status=200,
            about="The job is final. Only with `Prefer: wait`.",
            kind=JobView,
            headers=(
                shared.LOCATION, shared.ETAG, shared.REPLAYED, shared.PREFERENCE_APPLIED,
            ),
            example=shared.JOB_EXAMPLE,
        ),
    ),
    problems=(*_BODY, "IDEMPOTENCY_KEY_REUSED", "OBJECT_DAMAGED"),
)  # fmt: skip

SUBMIT_BATCH = Operation(
    name="submitBatch",
    method="POST",
    path="/v1/jobs/batch",
    summary="Submit many jobs",
    about=f"Up to {BATCH_MAX:,} jobs in one request, each with a status of its own: one bad job"
    " does not keep the others out, and pointers in its problem are relative to it. A limit of the"
    " tenant's, or a server that sheds load, refuses the whole batch.\n\n"
    "An `Idempotency-Key` covers every job by its place: sent again, the batch makes no doubles.",
    key="tenant",
    parameters=(shared.IDEMPOTENCY_KEY,),
    body=BatchRequest,
    body_example={"jobs": [_EMAIL, {"type": "report.build", "pool": "medium", "priority": 9}]},
    replies=(
        Reply(
            status=200,
            about="One item per job, in the order they were sent. Look at each `status`.",
            kind=BatchReply,
            headers=(shared.REPLAYED, shared.RATE_LIMIT, shared.RATE_LIMIT_POLICY),
            example={
                "accepted": 1,
                "items": [
                    {"status": 202, "id": shared.JOB_ID},
                    {
                        "status": 422,
                        "problem": {
                            "type": "/problems/unknown-pool",
                            "title": "There is no such pool",
                            "status": 422,
                            "code": "UNKNOWN_POOL",
                            "detail": "There is no pool 'huge'; there are short, medium, long.",
                            "errors": [{"pointer": "/pool", "detail": "There is no pool 'huge'."}],
                        },
                    },
                ],
            },
        ),
    ),
    problems=_BODY,
)
