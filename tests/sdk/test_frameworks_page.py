"""docs/FRAMEWORKS.md as it stands: its blocks are run, and what they promise is asked for."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

from fairway import testing

PAGE = Path(__file__).parents[2] / "docs" / "FRAMEWORKS.md"


@pytest.fixture(scope="module")
def page() -> Any:
    module = ModuleType("frameworks_page")
    sys.modules[module.__name__] = module  # annotations are looked up there
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), module.__dict__)  # noqa: S102  (our own page)
    return module


@pytest.fixture
async def web(page: Any) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=page.web)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop") as client:
        yield client


async def test_an_order_is_placed_and_looked_at(web: httpx2.AsyncClient) -> None:
    with testing.inline():
        placed = await web.post("/orders", json={"id": 7, "items": ["tea", "cup"]})
        assert placed.status_code == 202, placed.text
        seen = await web.get(f"/orders/{placed.json()['job']}")
    assert seen.json() == {
        "state": "succeeded",
        "progress": None,
        "result": {"order": 7, "total": 19.0},
    }


async def test_an_order_that_is_not_there_is_a_404(web: httpx2.AsyncClient) -> None:
    with testing.inline():
        seen = await web.get("/orders/01980a5e-7c1b-7000-8000-04a2b1c3d4e5")
    assert seen.status_code == 404, seen.text


async def test_the_lifespan_closes_what_was_opened(page: Any) -> None:
    async with page.app.lifespan(page.web):
        assert "client" not in vars(page.app), "making one opens nothing"
