"""A reply in one piece, wherever it comes from: of a handler here, or of the owner elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.core.errors import Unavailable
from fairway.core.tenant import part_unavailable


async def in_one_piece(request: Request, reply: Response) -> Response:
    start: dict[str, Any] = {}
    body = bytearray()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        else:
            body.extend(message.get("body", b""))

    await reply(request.scope, request.receive, send)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return Response(bytes(body), start["status"], headers)


async def of_part(asked: Awaitable[Response], place: int, count: int) -> Response:
    """What a part answers; one that cannot be asked is told by its place."""
    try:
        reply = await asked
    except Unavailable as error:
        raise part_unavailable(place, count, error) from error
    if reply.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
        said = msgspec.json.decode(bytes(reply.body), type=Said)
        raise part_unavailable(place, count, Unavailable(said.detail, code=said.code))
    return reply


class Said(msgspec.Struct):
    """Of a problem that another server told."""

    detail: str = ""
    code: str = ""
