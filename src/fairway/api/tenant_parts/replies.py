"""A reply in one piece, wherever it comes from: of a handler here, or of the owner elsewhere."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response


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
