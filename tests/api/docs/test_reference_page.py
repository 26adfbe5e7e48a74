"""The reference page shows every operation and every message."""

from __future__ import annotations

import re

import httpx2

from fairway.api.docs.openapi import document
from fairway.api.routes import OPERATIONS


async def test_the_page_shows_every_operation_and_message(nobody: httpx2.AsyncClient) -> None:
    text = (await nobody.get("/docs")).text
    for operation in OPERATIONS:
        assert f'id="{operation.name}"' in text
        assert operation.summary in text
    for name in document()["components"]["schemas"]:
        assert f'id="{name}"' in text
    places = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= places


async def test_every_example_can_be_copied_and_the_page_searched(
    nobody: httpx2.AsyncClient,
) -> None:
    """What a script must find; without it nothing of that is shown."""
    for path in ("/docs", "/problems/not-found"):
        text = (await nobody.get(path)).text
        examples = re.findall(r'<div class="example"><pre.*?</pre>(<button[^>]*>)', text, re.DOTALL)
        assert len(examples) == text.count("<pre") > 0
        assert set(examples) == {'<button class="copy" type="button" hidden>'}
        assert ('<search class="find" hidden>' in text) == (path == "/docs")


async def test_examples_have_the_address_that_was_asked(nobody: httpx2.AsyncClient) -> None:
    def addresses(text: str) -> set[str]:
        assert "\0" not in text
        assert "$FAIRWAY_URL" not in text
        return set(re.findall(r'<span class="address">(.*?)</span>', text))

    here = str(nobody.base_url).rstrip("/")
    assert addresses((await nobody.get("/docs")).text) == {here}
    named = await nobody.get("/docs", headers={"host": "jobs.example.com"})
    assert addresses(named.text) == {"http://jobs.example.com"}
    forwarded = {"x-forwarded-host": "evil.example", "forwarded": "host=evil.example;proto=https"}
    assert addresses((await nobody.get("/docs", headers=forwarded)).text) == {here}
    for bad in ("a<script>alert(1)</script>", 'a"onload="x', "a$(reboot)", "a;reboot"):
        text = (await nobody.get("/docs", headers={"host": bad})).text
        assert addresses(text) == {here}
        assert bad not in text
