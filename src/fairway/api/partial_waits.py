"""A wait for jobs that several have to answer, each for some: the question, and what each tells.

Who is asked, and when, is for the callers to say: parts of a tenant (`api/waiting_parts.py`), or
regions (`api/regions/waits.py`).
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.http.asgi import read_body
from fairway.api.http.decoding import UNDECODABLE, invalid
from fairway.api.jobs.wait_many import BODY_BYTES_MAX
from fairway.wire.bulk import WaitForJobs, decode_wait


class ToldJobs(msgspec.Struct):
    """What one of them answers: jobs go on as they came."""

    jobs: list[msgspec.Raw]
    missing: list[str]


decode_told = msgspec.json.Decoder(ToldJobs).decode


async def read_wait(request: Request) -> WaitForJobs:
    return wait_of(await read_body(request.scope, request.receive, BODY_BYTES_MAX))


def wait_of(body: bytes) -> WaitForJobs:
    try:
        return decode_wait(body)
    except UNDECODABLE as error:
        raise invalid(error, body) from None


def asking(request: Request, wanted: WaitForJobs) -> Request:
    """The same caller's question, for these jobs."""
    body = msgspec.json.encode(wanted)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    lines = [pair for pair in request.scope["headers"] if pair[0] != b"content-length"]
    lines.append((b"content-length", b"%d" % len(body)))
    return Request({**request.scope, "headers": lines}, receive)


def reply_of(told: ToldJobs) -> Response:
    return Response(msgspec.json.encode(told), media_type="application/json")
