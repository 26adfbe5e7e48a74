"""What the example services share at their edge: problems in one shape, refusals passed on."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from fairway import FairwayError

#: Pages bring their own script and style and nothing else.
SAFE = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
STATUS = {
    "NOT_FOUND": 404,
    "PAYLOAD_TOO_LARGE": 413,
    "INVALID_REQUEST": 422,
    "IDEMPOTENCY_KEY_REUSED": 422,
    "TENANT_RATE_LIMIT_EXCEEDED": 429,
    "QUEUE_DEPTH_EXCEEDED": 429,
}


def problem(status: int, detail: str) -> Response:
    media_type = "application/problem+json"
    return JSONResponse({"status": status, "detail": detail}, status, media_type=media_type)


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
