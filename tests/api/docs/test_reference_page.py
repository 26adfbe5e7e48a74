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
