"""What several operations have in common: ids in paths, headers both ways, one example job."""

from __future__ import annotations

from typing import Any

from fairway.api.http.headers import KEY_LENGTH_MAX, WAIT_MAX_SECONDS
from fairway.api.reference.shape import Parameter, ReplyHeader

JOB_ID = "01980a5e-7c1b-7000-8000-04a2b1c3d4e5"
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
    "fingerprint": None,
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

JOB_PATH = Parameter(
    name="id",
    place="path",
    about="The job's id, from `Location` or from the reply that accepted it.",
    example=JOB_ID,
    schema={"type": "string", "format": "uuid"},
    shell="$JOB",
)
IDEMPOTENCY_KEY = Parameter(
    name="Idempotency-Key",
    place="header",
    about="Makes it safe to send again: within 24 hours the same key with the same body answers"
    f" with the first job, and with another body it is refused. 1 to {KEY_LENGTH_MAX} printable"
    " ASCII characters, in quotes or without.",
    example="order-4711-welcome",
    schema={"type": "string", "minLength": 1, "maxLength": KEY_LENGTH_MAX},
)
PREFER_WAIT = Parameter(
    name="Prefer",
    place="header",
    about=f"`wait=N` holds the reply for up to N seconds (at most {WAIT_MAX_SECONDS}) until the"
    " job is final, or until it differs from `If-None-Match`. When the wait is over the reply"
    " shows the job as it stands.",
    example="wait=10",
)
IF_NONE_MATCH = Parameter(
    name="If-None-Match",
    place="header",
    about="An `ETag` from an earlier reply: if the job has not changed since, the answer is an"
    " empty 304.",
    example=f'W/"{VERSION}"',
)

LOCATION = ReplyHeader(
    name="Location", about="Where to ask about the job.", example=f"/v1/jobs/{JOB_ID}"
)
ETAG = ReplyHeader(
    name="ETag",
    about="The version of the job: changes whenever anything you can see changes.",
    example=f'W/"{VERSION}"',
)
REPLAYED = ReplyHeader(
    name="Idempotent-Replayed",
    about="`true` when an earlier request with this key made the job. Absent otherwise.",
    example="true",
)
PREFERENCE_APPLIED = ReplyHeader(
    name="Preference-Applied", about="The wait that was honoured.", example="wait=10"
)
#: Of what may go through very many rows.
SLOW = ("TOO_MANY_QUESTIONS", "QUESTION_TOO_LARGE", "OVERLOADED")
#: Of what is quick: a tenant's questions wait for each other.
QUICK = ("TOO_MANY_QUESTIONS", "OVERLOADED")
RETRY_AFTER = ReplyHeader(
    name="Retry-After", about="Seconds to wait before trying again.", example="5"
)
RATE_LIMIT = ReplyHeader(
    name="RateLimit",
    about="Jobs that you may submit at once now (`r`), and in how many seconds your full burst is"
    " there again (`t`).",
    example='"jobs";r=940;t=1',
)
RATE_LIMIT_POLICY = ReplyHeader(
    name="RateLimit-Policy",
    about="Your burst (`q`) and the seconds in which it fills (`w`): `q / w` is your rate.",
    example='"jobs";q=1000;w=10',
)
