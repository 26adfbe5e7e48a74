"""Raw ASGI made short: read a body within a limit, send bytes, send a problem.

Hot endpoints are plain callables on top of this; the rest of the API is an ordinary Starlette app.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from fairway.api.http.headers import Header, header, rate_limit, retry_after
from fairway.core.errors import FairwayError, InvalidRequest, LimitReached, Unavailable
from fairway.services.backpressure.body_memory import SMALL_BYTES, BodyReservation, Counted
from fairway.wire import problems

Scope: TypeAlias = Any
Receive: TypeAlias = Any
Send: TypeAlias = Any

CONNECTION = "fairway.connection"  # in a scope: what carries the request
BODY_BYTES = "fairway.body_bytes"  # in a scope: of its body, once that is read
# in a scope: the room that its body has, if that is counted
BODY_RESERVATION = "fairway.body_place"
JSON = (b"content-type", b"application/json")
JSON_MEDIA = (b"application/json", b"text/json")
NO_SNIFF = (b"x-content-type-options", b"nosniff")
CLOSE = (b"connection", b"close")
BODY_SECONDS_MAX = 30.0  # a body that is still coming after this long is cut off
BODY_SECONDS_MIN = 10.0  # that even the smallest has
BODY_BYTES_PER_SECOND_MIN = 64 << 10


class ClientGone(Exception):
    """Nobody is there to be answered any more."""


async def read_body(
    scope: Scope,
    receive: Receive,
    bytes_max: int,
    seconds_max: float | None = None,
    if_larger: str = "",
    counted: Counted | None = None,
) -> bytes:
    """The whole body; refuses before and while reading, so memory stays flat.

    A large one that is counted has its room until `give_back_room`, or its request, is over.
    """
    _refuse_encodings(scope)
    connection = scope.get(CONNECTION)
    if connection is not None and connection.has_whole_body:
        body = _part(await receive())
        if len(body) > SMALL_BYTES:
            _take_room(scope, counted, len(body))
    else:
        size = declared_bytes(scope)
        if size is not None and size > bytes_max:
            raise _too_large(bytes_max, if_larger)
        if size is not None and size > SMALL_BYTES:
            _take_room(scope, counted, size)
        seconds_max = BODY_SECONDS_MAX if seconds_max is None else seconds_max
        on_large = partial(_take_room, scope, counted, bytes_max)  # it may not say how long it is
        body = await _arriving(receive, bytes_max, _seconds(size, seconds_max), on_large)
        if BODY_RESERVATION in scope:
            scope[BODY_RESERVATION].shrink(len(body))
    if len(body) > bytes_max:
        raise _too_large(bytes_max, if_larger)
    scope[BODY_BYTES] = len(body)
    return body


def _seconds(size: int | None, seconds_max: float) -> float:
    if size is None:
        return seconds_max
    return min(seconds_max, BODY_SECONDS_MIN + size / BODY_BYTES_PER_SECOND_MIN)


def _take_room(scope: Scope, counted: Counted | None, size_bytes: int) -> None:
    """Once for a request; raises what tells its caller to come back."""
    if counted is not None and BODY_RESERVATION not in scope:
        room, owner = counted
        scope[BODY_RESERVATION] = room.take(owner, size_bytes)


def give_back_room(scope: Scope) -> None:
    """Nothing of the body is held any more."""
    reservation: BodyReservation | None = scope.pop(BODY_RESERVATION, None)
    if reservation is not None:
        reservation.give_back()


def declared_bytes(scope: Scope) -> int | None:
    """How long the body is by its own word; None for one in chunks."""
    declared = header(scope, b"content-length")
    return int(declared) if declared is not None and declared.isdigit() else None


async def _arriving(
    receive: Receive, bytes_max: int, seconds_max: float, on_large: Callable[[], None]
) -> bytes:
    """The body as far as it is looked at: when it is too large, one part too many."""
    parts: list[bytes] = []
    size, is_more = 0, True
    try:
        async with asyncio.timeout(seconds_max):  # for all of it: the first part may never come
            while is_more and size <= bytes_max:
                if size > SMALL_BYTES:
                    on_large()
                message = await receive()
                parts.append(_part(message))
                size += len(parts[-1])
                is_more = message.get("more_body", False)
    except TimeoutError:
        raise InvalidRequest(
            f"The body must arrive within {seconds_max:.0f} s.", code="REQUEST_TIMEOUT"
        ) from None
    return b"".join(parts)


def _part(message: Any) -> bytes:
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    return body


def _refuse_encodings(scope: Scope) -> None:
    media = header(scope, b"content-type")
    if media not in (None, JSON[1]) and not _is_json(media):
        raise InvalidRequest(
            f"The body is {media.decode('latin-1')[:80]!r}; send application/json.",
            code="UNSUPPORTED_MEDIA_TYPE",
        )
    coding = header(scope, b"content-encoding")
    if coding not in (None, b"identity"):
        raise InvalidRequest(
            "Compressed bodies are not taken; send the JSON as it is.",
            code="UNSUPPORTED_MEDIA_TYPE",
        )


def _is_json(media: bytes) -> bool:
    return media.partition(b";")[0].strip().lower() in JSON_MEDIA


def _too_large(bytes_max: int, if_larger: str) -> InvalidRequest:
    sentence = f"The body is larger than the {bytes_max} bytes that this path takes. {if_larger}"
    return InvalidRequest(sentence.rstrip(), code="PAYLOAD_TOO_LARGE")


async def send_bytes(
    send: Send, status: int, body: bytes, headers: Iterable[Header] = (JSON,)
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def send_whole(
    scope: Scope, send: Send, status: int, body: bytes, headers: Iterable[Header] = (JSON,)
) -> None:
    """As `send_bytes`, and cheaper: for hot paths, whose headers are all of our own making."""
    connection = scope.get(CONNECTION)
    if connection is None or not connection.reply(scope, reply_text(status, body, headers)):
        await send_bytes(send, status, body, headers)


def reply_text(status: int, body: bytes, headers: Iterable[Header]) -> bytes:
    """A whole reply as it goes over the wire."""
    lines = [STATUS_LINE[status]]
    for name, value in headers:
        lines += (name, b": ", value, b"\r\n")
    lines += (b"content-length: %d\r\n\r\n" % len(body), body)
    return b"".join(lines)


def problem_reply(error: FairwayError, request_id: str = "") -> tuple[int, bytes, list[Header]]:
    """Status, body and headers of an error, for raw callables and for Starlette alike."""
    problem = problems.problem_of(error.as_value(), request_id=request_id or secrets.token_hex(8))
    headers: list[Header] = [(b"content-type", problems.CONTENT_TYPE.encode()), NO_SNIFF]
    if isinstance(error, LimitReached | Unavailable):
        headers.append(retry_after(error.retry_after_seconds))
    if isinstance(error, LimitReached) and error.quota is not None:
        headers += rate_limit(error.quota)
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if problem.status == 426:
        headers.append((b"upgrade", b"websocket"))
    if problem.status == 408:
        headers.append(CLOSE)  # nobody waits for the rest of the body
    return problem.status, problems.encode(problem), headers


async def send_problem(send: Send, error: FairwayError, request_id: str = "") -> None:
    status, body, headers = problem_reply(error, request_id)
    await send_bytes(send, status, body, headers)
