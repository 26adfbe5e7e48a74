"""What the example services share at their edge: problems in one shape, refusals passed on.

Whatever comes in is read within a limit and looked at before it is used: a bad request is a 4xx
that says what is wrong, never a stack.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from fairway import FairwayError

#: Pages bring their own script and style and nothing else.
SAFE = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
STATUS = {
    "INVALID_HEADER": 400,
    "INVALID_JSON": 422,
    "NOT_FOUND": 404,
    "PAYLOAD_TOO_LARGE": 413,
    "INVALID_REQUEST": 422,
    "IDEMPOTENCY_KEY_REUSED": 422,
    "TENANT_RATE_LIMIT_EXCEEDED": 429,
    "QUEUE_DEPTH_EXCEEDED": 429,
    "TOO_MANY_VALUES": 413,
}
JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
KEY = re.compile(r"[\x20-\x7e]{1,255}")

#: Everything that decoding or encoding what people send can raise.
UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)

Wanted = TypeVar("Wanted")


class BadInput(Exception):
    """What a person sent cannot be used."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


def problem(status: int, detail: str) -> Response:
    media_type = "application/problem+json"
    return JSONResponse({"status": status, "detail": detail}, status, media_type=media_type)


async def bad_input(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadInput)
    answer = problem(error.status, error.detail)
    if error.status == 413:
        answer.headers["connection"] = "close"  # nobody waits for the rest
    return answer


async def message(request: Request, kind: type[Wanted], bytes_max: int) -> Wanted:
    """The message in a body, which is not read beyond its limit."""
    declared = request.headers.get("content-length", "")
    body = bytearray()
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > bytes_max):
        raise BadInput(413, f"A body has at most {bytes_max} bytes.")
    async for part in request.stream():
        body += part
        if len(body) > bytes_max:
            raise BadInput(413, f"A body has at most {bytes_max} bytes.")
    try:
        return msgspec.json.decode(body, type=kind)
    except RecursionError:
        raise BadInput(422, "The JSON is nested too deeply.") from None
    except UNREADABLE as error:
        raise BadInput(422, str(error)[:300]) from None


def job_id(request: Request) -> str:
    """The id in the path, if it can be one."""
    found = str(request.path_params["id"])
    if not JOB_ID.fullmatch(found):
        raise BadInput(404, "There is nothing under this id.")
    return found


def idempotency_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not KEY.fullmatch(key):
        raise BadInput(400, "Idempotency-Key has 1 to 255 printable ASCII characters.")
    return key


async def refused(request: Request, error: Exception) -> Response:
    """What the platform would not do, in its own words: too much, not there, not now."""
    assert isinstance(error, FairwayError)
    answer = problem(STATUS.get(error.code, 503), error.message)
    seconds = getattr(error, "retry_after_seconds", 1)
    if answer.status_code in (429, 503):
        answer.headers["retry-after"] = str(max(1, round(seconds)))
    return answer


def page_file(folder: Path, name: str) -> Response:
    """A file of the page, from a closed list: what lies beside it is nobody's business."""
    if name not in {entry.name for entry in folder.iterdir()}:
        return problem(404, "There is nothing here.")
    return FileResponse(folder / name, headers=SAFE)
