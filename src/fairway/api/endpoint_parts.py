"""What several endpoints have in common: ids in paths, headers both ways, one example job."""

from __future__ import annotations

from typing import Any

from fairway.api.endpoint import Parameter, ReplyHeader, path
from fairway.api.http.headers import KEY_LENGTH_MAX, WAIT_MAX_SECONDS

JOB_ID = "01980a5e-7c1b-7000-8000-04a2b1c3d4e5"
TOKEN = "5f0c1e8a9b7d4c6e8f1a2b3c4d5e6f70"  # of a lease
VERSION = "3.50331649.1.1.0"

JOB_EXAMPLE: dict[str, Any] = {
    "id": JOB_ID,
    "type": "email.send",
    "pool": "short",
    "state": "succeeded",
    "priority": 5,
    "attempts": 1,
    "deliveries": 1,
    "created_at": "2026-01-31T12:00:00.123Z",
    "execute_at": None,
    "started_at": "2026-01-31T12:00:00.126Z",
    "finished_at": "2026-01-31T12:00:00.168Z",
    "ran_seconds": 0.042,
    "billable_seconds": 0.042,
    "unbilled_seconds": 0.0,
    "timeout_seconds": None,
    "late_seconds": None,
    "not_after": None,
    "on_late": None,
    "progress": None,
    "checkpoint": None,
    "payload": {"to": "ada@example.com", "template": "welcome"},
    "result": {"message_id": "m-8841"},
    "error": None,
    "failures": {},
    "parent_id": None,
    "children": 0,
    "fingerprint": None,
    "tags": ["welcome"],
    "metadata": {"request": "r-17"},
    "traceparent": None,
    "history": [],
}
WHOLE_ONLY = ("payload", "history")
LISTED_EXAMPLE = {name: value for name, value in JOB_EXAMPLE.items() if name not in WHOLE_ONLY}
QUEUED_EXAMPLE = JOB_EXAMPLE | {
    "state": "queued",
    "attempts": 0,
    "deliveries": 0,
    "started_at": None,
    "finished_at": None,
    "ran_seconds": None,
    "result": None,
}

WORKER_PATH = path("name", "The worker's name, for people.", "worker-1")
JOB_PATH = path(
    "id",
    "The job's id, from `Location` or from the reply that accepted it.",
    JOB_ID,
    "$JOB",
    schema={"type": "string", "format": "uuid"},
)
TRACEPARENT = Parameter(
    "header",
    "traceparent",
    "The trace that the job belongs to, by [W3C trace context](https://www.w3.org/TR/trace-context/):"
    " kept with it, handed to its handler and sent along with webhooks about it. One that is not"
    " well formed is ignored.",
    example="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
)
IDEMPOTENCY_KEY = Parameter(
    "header",
    "Idempotency-Key",
    "Makes it safe to send again: within 24 hours the same key with the same body answers"
    f" with the first job, and with another body it is refused. 1 to {KEY_LENGTH_MAX} printable"
    " ASCII characters, in quotes or without.",
    "order-4711-welcome",
    schema={"type": "string", "minLength": 1, "maxLength": KEY_LENGTH_MAX},
)
PREFER_WAIT = Parameter(
    "header",
    "Prefer",
    f"`wait=N` holds the reply for up to N seconds (at most {WAIT_MAX_SECONDS}) until the"
    " job is final, or until it differs from `If-None-Match`. When the wait is over the reply"
    " shows the job as it stands.",
    "wait=10",
)
IF_NONE_MATCH = Parameter(
    "header",
    "If-None-Match",
    "An `ETag` from an earlier reply: if the job has not changed since, the answer is an"
    " empty 304.",
    f'W/"{VERSION}"',
)

ACT_FOR = Parameter(
    "header",
    "Fairway-Tenant",
    "With an operator's key, in place of a tenant's: the tenant to act for. The operator's own"
    " permissions hold, and the audit names the operator. With a tenant's key it means nothing.",
    "acme",
)

LOCATION = ReplyHeader("Location", "Where to ask about the job.", f"/v1/jobs/{JOB_ID}")
ETAG = ReplyHeader(
    "ETag",
    "The version of the job: changes whenever anything you can see changes.",
    f'W/"{VERSION}"',
)
REPLAYED = ReplyHeader(
    "Idempotent-Replayed",
    "`true` when an earlier request with this key made the job. Absent otherwise.",
    "true",
)
PREFERENCE_APPLIED = ReplyHeader("Preference-Applied", "The wait that was honoured.", "wait=10")
#: Of what may go through very many rows.
SLOW = ("TOO_MANY_QUESTIONS", "QUESTION_TOO_LARGE", "OVERLOADED")
#: Of what is quick: a tenant's questions wait for each other.
QUICK = ("TOO_MANY_QUESTIONS", "OVERLOADED")
RETRY_AFTER = ReplyHeader("Retry-After", "Seconds to wait before trying again.", "5")
RATE_LIMIT = ReplyHeader(
    "RateLimit",
    "Jobs that you may submit at once now (`r`), and in how many seconds your full burst is"
    " there again (`t`).",
    '"jobs";r=940;t=1',
)
RATE_LIMIT_POLICY = ReplyHeader(
    "RateLimit-Policy",
    "Your burst (`q`) and the seconds in which it fills (`w`): `q / w` is your rate.",
    '"jobs";q=1000;w=10',
)
OWNER = ReplyHeader(
    "Fairway-Owner",
    "Another server owns your jobs and has taken these: the next ones get there sooner by this"
    " address. Follow it only where it names a host that you trust with your key.",
    "http://10.0.0.2:8700",
)
