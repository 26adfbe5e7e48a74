"""The files of the dashboard: from memory, guarded by headers, kept by browsers for as long as."""

from __future__ import annotations

import gzip
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from tests.api.house import House, problem

from fairway.api.dashboard import app_pages
from fairway.api.dashboard.static_files import is_built, load
from fairway.api.endpoint import endpoints_of

SCRIPT = "let fairway = 'fairway';\n" * 100


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("<!doctype html><div id=app></div>")
    (tmp_path / "main-ABCD2345.js").write_text(SCRIPT)
    (tmp_path / "plain.css").write_text("main { color: red }")
    (tmp_path / "notes.txt").write_text("not served")
    (tmp_path / "inner").mkdir()
    return tmp_path


@pytest.fixture
def browser(files: Path) -> httpx2.AsyncClient:
    """The handlers with files of the test's own."""
    routes = [Route(one.path, one.handler) for one in endpoints_of([app_pages])]
    app = Starlette(routes=routes)
    app.state.dashboard = load(files)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://here")


async def test_every_path_below_is_the_page(browser: httpx2.AsyncClient) -> None:
    for path in ("/ui", "/ui/", "/ui/jobs/01980a5e", "/ui/tenants/acme?x=1"):
        reply = await browser.get(path)
        assert reply.status_code == 200, path
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        assert "<div id=app>" in reply.text
        assert reply.headers["cache-control"] == "no-cache"


async def test_named_by_content_it_is_kept_for_ever(browser: httpx2.AsyncClient) -> None:
    script = await browser.get("/ui/assets/main-ABCD2345.js")
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert script.text == SCRIPT
    plain = await browser.get("/ui/assets/plain.css")
    assert plain.headers["cache-control"] == "no-cache"
    seen = {"if-none-match": script.headers["etag"]}
    again = await browser.get("/ui/assets/main-ABCD2345.js", headers=seen)
    assert (again.status_code, again.content) == (304, b"")
    other = await browser.get("/ui/assets/plain.css", headers=seen)
    assert other.status_code == 200


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("br", False), ("", False)],
)
async def test_compressed_for_who_takes_it(
    browser: httpx2.AsyncClient, files: Path, accepted: str, *, is_packed: bool
) -> None:
    headers = {"accept-encoding": accepted}
    reply = await browser.get("/ui/assets/main-ABCD2345.js", headers=headers)
    assert (reply.headers.get("content-encoding") == "gzip") == is_packed
    assert reply.headers["vary"] == "accept-encoding"
    assert reply.text == SCRIPT
    packed = load(files)["main-ABCD2345.js"].packed
    assert packed is not None
    assert gzip.decompress(packed) == SCRIPT.encode()


async def test_nothing_else_is_there(files: Path) -> None:
    assert load(files).keys() == {"index.html", "main-ABCD2345.js", "plain.css"}
    assert load(files / "no-such") == {}
    assert not is_built(files / "no-such")


async def test_headers_of_a_real_server(house: House, nobody: httpx2.AsyncClient) -> None:
    """Whether it was built or not."""
    reply = await nobody.get("/ui/jobs")
    assert reply.status_code == 200
    assert ("make web" in reply.text) == (not is_built())
    policy = reply.headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
        assert part in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert (await nobody.head("/ui")).status_code == 200
    for path in ("/ui/assets/none.js", "/ui/assets/index.html", "/ui/assets/..%2fapp_pages.py"):
        problem(await nobody.get(path), 404, "NOT_FOUND")
    problem(await nobody.post("/ui"), 405, "METHOD_NOT_ALLOWED")
