"""Bodies into messages and back; what the codec found wrong names the field by JSON pointer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.http.asgi import read_body
from fairway.core.errors import InvalidRequest
from fairway.services.backpressure.body_memory import Counted
from fairway.wire.pattern_messages import in_words

#: Everything that the codec raises on bytes that are no message of ours.
UNDECODABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)

BODY_BYTES_MAX = 64 << 10  # of requests that carry no payload
MESSAGE_MAX = 300  # characters: a client's own text must not come back at full length

_PLACE = re.compile(r" - at `\$(.*)`$")
_INDEX = re.compile(r"\[(\d+)\]")
_ANY_KEY = "[...]"  # the codec does not say which key of a map
_NAMED = re.compile(r"field `([^`]*)`")


Wanted = TypeVar("Wanted")


async def decoded(
    request: Request,
    kind: type[Wanted],
    bytes_max: int = BODY_BYTES_MAX,
    *,
    if_empty: bytes = b"",
    counted: Counted | None = None,
) -> Wanted:
    """The message in a small body."""
    read = await read_body(request.scope, request.receive, bytes_max, counted=counted)
    body = read or if_empty
    try:
        return msgspec.json.decode(body, type=kind)
    except UNDECODABLE as error:
        raise invalid(error, body) from None


def converted(values: Mapping[str, Any], kind: type[Wanted]) -> Wanted:
    """The message that these values make, from a path or a query."""
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        raise invalid(error) from None


def json_reply(value: Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def invalid(error: Exception, body: bytes | msgspec.Raw = b"?") -> InvalidRequest:
    if not bytes(body).strip():
        sentence = "The body is empty; send a JSON object, {} at least."
        return InvalidRequest(sentence, code="INVALID_JSON")
    if isinstance(error, RecursionError):
        return InvalidRequest("The body is nested too deeply.", code="INVALID_JSON")
    if isinstance(error, UnicodeDecodeError):
        return InvalidRequest("The body is not UTF-8 text.", code="INVALID_JSON")
    message = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return InvalidRequest(message[:MESSAGE_MAX], code="INVALID_JSON")
    sentence = in_words(_PLACE.sub("", message))[:MESSAGE_MAX]
    return InvalidRequest(sentence, field=_pointer(message)[:MESSAGE_MAX])


def _pointer(message: str) -> str:
    place = _PLACE.search(message)
    pointer = place[1].replace(_ANY_KEY, "") if place else ""
    pointer = _INDEX.sub(r"/\1", pointer).replace(".", "/")
    named = _NAMED.search(message)
    return f"{pointer}/{named[1]}" if named else pointer
