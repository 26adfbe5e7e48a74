"""What the API says of itself: OpenAPI, a page to read it, one for each problem, a front page.

Anybody may read them: all are made once, and answered from memory. Only the address in the examples
is the asker's, so nothing of a request is kept.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.docs import reference_page
from fairway.api.docs.markup import (
    SECURITY_HEADERS,
    escape,
    html_reply,
    inline,
    json_block,
    page,
    page_text,
)
from fairway.api.docs.openapi import document, problem_example
from fairway.api.docs.problem_notes import PROBLEM_NOTES
from fairway.api.endpoint import Endpoint
from fairway.api.http.address import PLACE, address_of
from fairway.core.errors import NotFound
from fairway.wire.problems import CODES, type_of

LINKS = (
    ("/ui", "Dashboard", "Look at the waiting line: sign in with a key."),
    ("/docs", "API", "Every operation, with an example to paste."),
    ("/openapi.json", "OpenAPI 3.1", "The same for programs."),
    ("/readyz", "Ready?", "Whether this server can take work."),
    ("/metrics", "Metrics", "For Prometheus."),
)


@Endpoint("GET /openapi.json", is_public=False)
async def openapi(request: Request) -> Response:
    return Response(_openapi_text(), media_type="application/json", headers=SECURITY_HEADERS)


@cache
def _openapi_text() -> bytes:
    return msgspec.json.encode(document())


@Endpoint("GET /docs", is_public=False)
async def reference(request: Request) -> Response:
    address = escape(address_of(dict(request.scope)))
    return html_reply(address.encode().join(_reference_parts()))


@cache
def _reference_parts() -> list[bytes]:
    """The page, cut where the address goes."""
    found = document()
    aside = reference_page.contents(found)
    text = page_text("Fairway API", reference_page.body(found), aside)
    return text.encode().split(PLACE.encode())


@Endpoint("GET /docs.css", is_public=False)
async def style(request: Request) -> Response:
    return _file("docs.css", "text/css")


@Endpoint("GET /docs.js", is_public=False)
async def script(request: Request) -> Response:
    return _file("docs.js", "text/javascript")


@cache
def _file(name: str, media_type: str) -> Response:
    text = resources.files("fairway.api.docs").joinpath(name).read_bytes()
    headers = SECURITY_HEADERS | {"cache-control": "max-age=300"}
    return Response(text, media_type=media_type, headers=headers)


@Endpoint("GET /problems/{code}", is_public=False)
async def problem(request: Request) -> Response:
    code = request.path_params["code"].upper().replace("-", "_")
    if code not in CODES:
        raise NotFound(f"There is no problem {code[:64]!r}.")
    return _problem(code)


@cache
def _problem(code: str) -> Response:
    status, title = CODES[code]
    note = PROBLEM_NOTES[code]
    main = (
        f'<h1><b class="status s{status // 100}">{status}</b> {escape(title)}</h1>'
        f'<p class="path"><code>{code}</code></p>'
        f"<h2>What it means</h2><p>{inline(note.meaning)}</p>"
        f"<h2>What to do</h2><p>{inline(note.remedy)}</p>"
        f"<h2>How it looks</h2>{json_block(problem_example(code), 'Problem document')}"
        f'<h2>Other problems</h2><p class="codes">{_neighbours(code)}</p>'
    )
    return page(f"{code} · Fairway", main)


def _neighbours(code: str) -> str:
    return " ".join(
        f'<a href="{type_of(other)}"><code>{other}</code></a>' for other in CODES if other != code
    )


@Endpoint("GET /", is_public=False)
async def home(request: Request) -> Response:
    return _home()


@cache
def _home() -> Response:
    info = document()["info"]
    first, *promise = info["description"].split("\n\n")
    cards = "".join(
        f'<a class="card" href="{path}"><strong>{escape(name)}</strong>'
        f"<span>{escape(about)}</span></a>"
        for path, name, about in LINKS
    )
    main = (
        f'<div class="hero"><h1>Fairway <small>{escape(info["version"])}</small></h1>'
        f'<p class="lead">{inline(first)}</p></div><div class="cards">{cards}</div>'
        f"<blockquote><p>{inline(' '.join(promise))}</p></blockquote>"
    )
    return page("Fairway", main)
