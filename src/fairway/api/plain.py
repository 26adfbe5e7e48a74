"""Raw ASGI made short: read a body within a limit, send bytes, send a problem.

Hot endpoints are plain callables on top of this; the rest of the API is an ordinary Starlette app.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, TypeAlias

from fairway.core.errors import FairwayError, InvalidRequest, LimitReached, Unavailable
from fairway.wire import problems

Scope: TypeAlias = Any
Receive: TypeAlias = Any
Send: TypeAlias = Any
Header: TypeAlias = tuple[bytes, bytes]

JSON = (b"content-type", b"application/json")


def header(scope: Scope, name: bytes) -> bytes | None:
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


async def read_body(scope: Scope, receive: Receive, bytes_max: int) -> bytes:
    """The whole body; refuses while reading, so memory stays flat."""
    _refuse_encodings(scope)
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > bytes_max:
        raise _too_large(bytes_max)
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return _within(body, bytes_max)
    chunks, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("The client went away.")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > bytes_max:
            raise _too_large(bytes_max)
    return b"".join(chunks)


def _within(body: bytes, bytes_max: int) -> bytes:
    if len(body) > bytes_max:
        raise _too_large(bytes_max)
    return body


def _refuse_encodings(scope: Scope) -> None:
    media = header(scope, b"content-type")
    if media is not None and not media.startswith((b"application/json", b"text/json")):
        raise InvalidRequest(
            f"The body is {media.decode('latin-1')}; send application/json.",
            code="UNSUPPORTED_MEDIA_TYPE",
        )
    coding = header(scope, b"content-encoding")
    if coding not in (None, b"identity"):
        raise InvalidRequest(
            "Compressed bodies are not taken; send the JSON as it is.",
            code="UNSUPPORTED_MEDIA_TYPE",
        )


def _too_large(bytes_max: int) -> InvalidRequest:
    return InvalidRequest(f"At most {bytes_max} bytes are taken.", code="PAYLOAD_TOO_LARGE")


async def send_bytes(
    send: Send, status: int, body: bytes, headers: Iterable[Header] = (JSON,)
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


def problem_reply(error: FairwayError) -> tuple[int, bytes, list[Header]]:
    """Status, body and headers of an error, for raw callables and for Starlette alike."""
    problem = problems.problem_of(error, request_id=secrets.token_hex(8))
    headers: list[Header] = [(b"content-type", problems.CONTENT_TYPE.encode())]
    if isinstance(error, LimitReached | Unavailable):
        headers.append((b"retry-after", str(max(1, round(error.retry_after_seconds))).encode()))
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return problem.status, problems.encode(problem), headers


async def send_problem(send: Send, error: FairwayError) -> None:
    status, body, headers = problem_reply(error)
    await send_bytes(send, status, body, headers)
