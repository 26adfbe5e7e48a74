"""What the API says of itself is true: table, routes, schemas and examples agree."""

from __future__ import annotations

import re

import httpx2

from fairway.api.endpoint import Endpoint


def named(operation: Endpoint) -> str:
    return operation.name


# -- the pages ---------------------------------------------------------------------------------


async def test_pages_are_self_contained_and_guarded(nobody: httpx2.AsyncClient) -> None:
    for path in ("/", "/docs", "/problems/not-found"):
        reply = await nobody.get(path)
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert re.findall("<script[^>]*>[^<]*", reply.text) == ['<script src="/docs.js" defer>']
        assert re.findall(r' (?:style|on\w+)="', reply.text) == []
        assert set(re.findall(r'(?:src|href)="(https?:[^"]*)"', reply.text)) == set()
    script = await nobody.get("/docs.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "innerHTML" not in script.text
    css = await nobody.get("/docs.css")
    assert css.headers["content-type"].startswith("text/css")
    assert "url(" not in css.text
    assert "prefers-color-scheme: dark" in css.text


async def test_the_front_page_leads_on(nobody: httpx2.AsyncClient) -> None:
    text = (await nobody.get("/")).text
    for path in re.findall(r'href="(/[^"]*)"', text):
        assert (await nobody.get(path)).status_code == 200, path
    assert {"/docs", "/openapi.json", "/metrics", "/readyz"} <= set(
        re.findall(r'href="([^"]+)"', text)
    )
