"""What is too large for a request or a reply, as operations."""

from __future__ import annotations

from fairway.api.reference import shared
from fairway.api.reference.shape import Operation, Parameter, Reply
from fairway.wire.storage import UploadMade

_UPLOAD_ID = "2026-01-31.5f0c1e8a9b7d4c6e8f1a2b3c4d5e6f70"
_PAYLOAD = Reply(
    status=200,
    about="The payload.",
    schema={"type": "object"},
    example={"to": "ada@example.com"},
)

NEW_UPLOAD = Operation(
    name="newUpload",
    method="POST",
    path="/v1/uploads",
    summary="Get an address for a large payload",
    about="For payloads over 8 MB or 100 000 values. PUT the JSON object to `url` before"
    " `expires_at` (an hour, or 15 minutes where storage is a bucket),"
    " then submit a job with `payload_upload` in place of `payload`. The address needs no"
    " key: keep it to yourself. It ends with the key that asked for it, unless it is a bucket's."
    " Smaller payloads need none of this.\n\n"
    "An address takes one body, of `size_bytes_max` at most; a larger one is refused with 413, and"
    " one that comes at less than 64 KB a second, 15 s of silence apart, is cut off. Few may be on"
    " their way at a time (`TOO_MANY_UPLOADS`). It is kept for a day or two: until then jobs can be"
    " submitted with it. It is checked when its first job is submitted, and no more after that; one"
    " of up to 8 MB and 100 000 values also against the schema of its type.",
    key="tenant",
    replies=(
        Reply(
            status=201,
            about="Where to put it.",
            kind=UploadMade,
            example={
                "id": _UPLOAD_ID,
                "url": "https://storage.example.com/…",
                "expires_at": "2026-01-31T13:00:00Z",
                "size_bytes_max": 1 << 30,
            },
        ),
    ),
    problems=("UPLOAD_QUOTA_EXCEEDED", "STORAGE_UNAVAILABLE"),
)

READ_PAYLOAD = Operation(
    name="getPayload",
    method="GET",
    path="/v1/jobs/{id}/payload",
    summary="Get the payload of a job",
    about="As it came, however large it is.",
    key="tenant",
    parameters=(shared.JOB_PATH,),
    replies=(_PAYLOAD,),
    problems=(
        "NOT_FOUND",
        "OBJECT_GONE",
        "OBJECT_DAMAGED",
        "TOO_MANY_WAITING",
        "STORAGE_UNAVAILABLE",
    ),
)

READ_RESULT = Operation(
    name="getResult",
    method="GET",
    path="/v1/jobs/{id}/result",
    summary="Get the result of a job",
    about="What the handler returned, however large it is.",
    key="tenant",
    parameters=(shared.JOB_PATH,),
    replies=(
        Reply(
            status=200,
            about="The result, whatever JSON it is.",
            schema={},
            example={"message_id": "m-8841"},
        ),
    ),
    problems=(
        "NOT_FOUND",
        "OBJECT_GONE",
        "OBJECT_DAMAGED",
        "TOO_MANY_WAITING",
        "STORAGE_UNAVAILABLE",
    ),
)

WORKER_PAYLOAD = Operation(
    name="getLeasePayload",
    method="GET",
    path="/v1/workers/{name}/payloads/{id}",
    summary="Get the payload of a lease",
    about="When a lease has `payload_bytes`, the payload is here.",
    key="worker",
    parameters=(
        Parameter(
            name="name", place="path", about="The worker's name, for people.", example="worker-1",
            shell="worker-1",
        ),
        shared.JOB_PATH,
        Parameter(
            name="tenant", place="query", about="From the lease.", example="acme", shell="acme"
        ),
    ),
    replies=(_PAYLOAD,),
    problems=(
        "NOT_FOUND", "OBJECT_GONE", "OBJECT_DAMAGED", "OVERLOADED", "STORAGE_UNAVAILABLE",
    ),
)  # fmt: skip
