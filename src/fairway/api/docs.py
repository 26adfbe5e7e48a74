"""What the API says of itself: OpenAPI, a page to read it, and a page for each problem."""

from __future__ import annotations

import html

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fairway.api.openapi import document
from fairway.core.errors import NotFound
from fairway.wire.problems import CODES


async def openapi(request: Request) -> Response:
    return Response(msgspec.json.encode(document()), media_type="application/json")


async def page(request: Request) -> Response:
    return HTMLResponse("<!doctype html><title>Fairway API</title>")


async def problem(request: Request) -> Response:
    code = request.path_params["code"].upper().replace("-", "_")
    if code not in CODES:
        raise NotFound(f"There is no problem {code!r}.")
    status, title = CODES[code]
    return HTMLResponse(
        f"<!doctype html><title>{code}</title><h1>{code}</h1>"
        f"<p>{html.escape(title)}.</p><p>HTTP status {status}.</p>"
    )


async def home(request: Request) -> Response:
    return RedirectResponse("/docs")
