"""Errors on the wire: RFC 9457 problem+json, one table from code to status.

Used by the API on the way out and by the SDK on the way in, so both sides share one truth.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Struct

from fairway.core import errors
from fairway.wire.doc import doc

CONTENT_TYPE = "application/problem+json"

#: Status and short title of every code that the API can answer with.
CODES: dict[str, tuple[int, str]] = {
    "INVALID_JSON": (400, "The body is not valid JSON"),
    "INVALID_REQUEST": (422, "A field is missing, malformed or out of range"),
    "INVALID_HEADER": (400, "A header is malformed"),
    "INVALID_CURSOR": (400, "The cursor is not one of ours"),
    "INVALID_HTTP": (400, "This is not an HTTP request"),
    "UNAUTHENTICATED": (401, "A valid API key is required"),
    "FORBIDDEN": (403, "This key may not do that"),
    "TENANT_SUSPENDED": (403, "The tenant is suspended"),
    "CROSS_SITE_REQUEST": (403, "The request does not show that it comes from our own pages"),
    "SESSION_OF_ANOTHER_KEY": (403, "The worker session belongs to another key"),
    "NOT_FOUND": (404, "There is no such thing"),
    "CHECKPOINT_LOST": (404, "The job's checkpoints cannot be read any more"),
    "METHOD_NOT_ALLOWED": (405, "This path does not take that method"),
    "REQUEST_TIMEOUT": (408, "The request took too long to arrive"),
    "CONFLICT": (409, "The present state does not allow that"),
    "NOT_UNIQUE": (409, "Another job of the same unique key is there"),
    "SEVERAL_SHARDS": (409, "A tenant with several shards cannot have this"),
    "HOME_ELSEWHERE": (409, "Another region has to be asked for this"),
    "LEASE_LOST": (409, "The lease is no longer in force"),
    "OBJECT_GONE": (410, "It is no longer in object storage"),
    "OBJECT_DAMAGED": (410, "What is in object storage is not what was written"),
    "PAYLOAD_TOO_LARGE": (413, "The body or a payload is too large"),
    "TOO_MANY_VALUES": (413, "The body holds more values than can be looked at in one go"),
    "UNSUPPORTED_MEDIA_TYPE": (415, "Send application/json"),
    "IDEMPOTENCY_KEY_REUSED": (422, "The Idempotency-Key was used with another body"),
    "PAYLOAD_DOES_NOT_FIT": (422, "The payload does not fit the schema of its job type"),
    "TOO_MANY_JOB_TYPES": (422, "Too many distinct job types"),
    "TOO_MANY_UPLOADS": (429, "As many uploads are on their way as a tenant may have"),
    "UPLOAD_QUOTA_EXCEEDED": (429, "As many uploaded bytes are kept as a tenant may have"),
    "TOO_MANY_SCHEDULES": (429, "The tenant has as many schedules as it may have"),
    "TOO_MANY_WEBHOOK_TESTS": (429, "As many tests of a webhook wait as may"),
    "TOO_MANY_WEBHOOKS": (429, "The tenant has as many webhooks as it may have"),
    "TOO_MANY_CHANGES": (429, "This was changed too often in a short time"),
    "TOO_MANY_PAUSES": (429, "The tenant has as many pauses as it may have"),
    "UPGRADE_REQUIRED": (426, "This address speaks WebSocket"),
    "HEAD_TOO_LARGE": (431, "Request line and headers are too large"),
    "TOO_MANY_SESSIONS": (429, "The tenant has as many worker sessions as it may have"),
    "TOO_MANY_SLOTS": (429, "The tenant's own workers have as many slots as they may have"),
    "TOO_MANY_BYTES": (429, "As many bytes of the tenant's bodies are under way as may be"),
    "TOO_MANY_STREAMS": (429, "As many event streams are open as may be"),
    "TOO_MANY_WAITING": (429, "As many requests of the tenant wait as may"),
    "TOO_MANY_WRONG_KEYS": (429, "Too many wrong API keys came from this address"),
    "TOO_MANY_SIGN_INS": (429, "Too many sign-ins in a short time"),
    "UNKNOWN_POOL": (422, "There is no such pool"),
    "QUEUE_DEPTH_EXCEEDED": (429, "The tenant's queue is full"),
    "TENANT_RATE_LIMIT_EXCEEDED": (429, "The tenant's submit rate is used up"),
    "TOO_MANY_QUESTIONS": (429, "The tenant asks too many slow questions at a time"),
    "INTERNAL": (500, "Something went wrong on our side"),
    "NO_ROOM": (503, "The server has no room for the body now; send it again shortly"),
    "OVERLOADED": (503, "The server is shedding load; try again shortly"),
    "DISK_FULL": (503, "The disk of the database is nearly full; no new jobs for now"),
    "STOPPING": (503, "The server is stopping; try again shortly"),
    "QUESTION_TOO_LARGE": (503, "The question goes through too many jobs for one call"),
    "UNAVAILABLE": (503, "The service cannot do this right now; try again shortly"),
    "TENANT_MOVING": (503, "The tenant is being moved; try again"),
    "STORAGE_UNAVAILABLE": (503, "Object storage does not answer; try again shortly"),
    "HOME_UNREACHABLE": (503, "The home region of the tenant cannot be reached"),
    "DIRECTORY_UNREACHABLE": (503, "The region that is the directory cannot be reached"),
    "HELD_FULL": (503, "As many jobs are held for other regions as may be"),
    "NOT_HOME": (503, "This region is not the home of the tenant, or does not know yet"),
    "NOT_OWNER": (503, "No server owns this shard right now; try again shortly"),
}


class Problem(Struct, kw_only=True, omit_defaults=True):
    """What went wrong (RFC 9457). `code` is stable; `errors` point at fields by JSON pointer."""

    type: Annotated[str, doc("A page on this server that explains the code.")]
    title: Annotated[str, doc("The code in words.")]
    status: Annotated[int, doc("The HTTP status.")]
    code: Annotated[str, doc("Stable: programs may rely on it.")]
    detail: Annotated[str, doc("What happened this time.")] = ""
    errors: Annotated[list[dict[str, str]], doc("Which fields, by JSON pointer.")] = []
    request_id: Annotated[str, doc("Tell us this when you ask for help.")] = ""


def type_of(code: str) -> str:
    """The page on the server itself that explains the code."""
    return f"/problems/{code.lower().replace('_', '-')}"


def problem_of(error: errors.FairwayError, request_id: str = "") -> Problem:
    code = error.code if error.code in CODES else "INTERNAL"
    status, title = CODES[code]
    pointers = [{"pointer": error.field, "detail": error.message}] if error.field else []
    return Problem(
        type=type_of(code),
        title=title,
        status=status,
        code=code,
        detail=error.message,
        errors=pointers,
        request_id=request_id,
    )


def error_of(problem: dict[str, Any], retry_after_seconds: float = 1) -> errors.FairwayError:
    """The error that a problem document stands for, on the client's side."""
    code = str(problem.get("code", "INTERNAL"))
    message = str(problem.get("detail") or problem.get("title") or code)
    pointers = problem.get("errors") or [{}]
    field = str(pointers[0].get("pointer", ""))
    status = int(problem.get("status", 500))
    if status == 429:
        return errors.LimitReached(
            message, code=code, field=field, retry_after_seconds=retry_after_seconds
        )
    return _CLASS_BY_STATUS.get(status, errors.FairwayError)(message, code=code, field=field)


def naming_its_field(error: errors.FairwayError) -> errors.FairwayError:
    """For people who read the sentence alone: it says which field, where it did not."""
    name = error.field.strip("/").replace("/", ".")
    if name and name not in error.message:
        error.message = f"{name}: {error.message}"
        error.args = (error.message,)
    return error


_CLASS_BY_STATUS: dict[int, type[errors.FairwayError]] = {
    400: errors.InvalidRequest,
    401: errors.Forbidden,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Gone,
    413: errors.InvalidRequest,
    415: errors.InvalidRequest,
    422: errors.InvalidRequest,
    502: errors.Unavailable,  # a proxy says so of a server that is away
    503: errors.Unavailable,
    504: errors.Unavailable,
}

encode = msgspec.json.Encoder().encode
