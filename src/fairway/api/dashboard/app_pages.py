"""`/ui`: the dashboard. Every path below it is the same page, whose script shows what it is about.

Anybody may have the files: they hold nothing of anybody. The headers let them load nothing from
elsewhere, run no script that is not ours, and be shown in no other page.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from fairway.api.dashboard.static_files import ASK_AGAIN, INDEX, StaticFile
from fairway.api.endpoint import Endpoint
from fairway.api.http.headers import header, known_versions
from fairway.core.errors import NotFound

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
NOT_BUILT = b"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fairway</title></head>
<body><main><h1>The dashboard is not built</h1>
<p>This server runs from sources whose web app was not built. Run <code>make web</code> where they
are, and start the server again. Everything else works: see <a href="/docs">the API</a>.</p></main>
</body>
</html>
"""


@Endpoint("GET /ui/assets/{name:path}", is_public=False)
async def asset(request: Request) -> Response:
    name = request.path_params["name"]
    found = _files(request).get(name)
    if found is None or name == INDEX:
        raise NotFound(f"There is no file {name[:64]!r} of the dashboard.")
    return _reply(request, found)


@Endpoint("GET /ui", is_public=False)
async def dashboard(request: Request) -> Response:
    return _page(request)


@Endpoint("GET /ui/{path:path}", is_public=False)
async def dashboard_page(request: Request) -> Response:
    return _page(request)


def _page(request: Request) -> Response:
    found = _files(request).get(INDEX)
    if found is None:
        headers = HEADERS | {"cache-control": ASK_AGAIN}
        return Response(NOT_BUILT, headers=headers, media_type="text/html")
    return _reply(request, found)


def _files(request: Request) -> Mapping[str, StaticFile]:
    files: Mapping[str, StaticFile] = request.app.state.dashboard
    return files


def _reply(request: Request, file: StaticFile) -> Response:
    headers = HEADERS | {"etag": f'W/"{file.etag}"', "cache-control": file.kept}
    headers["vary"] = "accept-encoding"
    known = known_versions(request.scope)
    if file.etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    body = file.body
    if file.packed is not None and _takes_gzip(request):
        body, headers["content-encoding"] = file.packed, "gzip"
    return Response(body, headers=headers | {"content-type": file.media})


def _takes_gzip(request: Request) -> bool:
    """Said, and not with a weight of nothing."""
    said = (header(request.scope, b"accept-encoding") or b"").decode("latin-1").lower()
    ways = [[word.strip() for word in one.split(";")] for one in said.split(",")]
    return any(way[0] == "gzip" and way[1:] not in (["q=0"], ["q=0.0"]) for way in ways)
