"""The move of a tenant in a real browser: told where operators look while it is under way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.api.house import House, own_house
from tests.browser.test_platform_pages import client_of
from tests.postgres import Server

from fairway.core.ownership import tenant_move

pytestmark = pytest.mark.slow

TO = 3
expect.set_options(timeout=30_000)


@pytest.fixture
def house(postgres_server: Server) -> Iterator[House]:
    """Of its own: with shards to move to."""
    with own_house(postgres_server, "browser_moves", shard_count=4) as house:
        yield house


def test_a_move_is_told_where_people_look(
    page: Page, house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_move, "SETTLE_SECONDS", 3600.0)  # it stays as it is
    folder = Path(os.environ.get("FAIRWAY_PICTURES", tmp_path))
    name, key = house.new_tenant()
    with client_of(house, key) as tenant:
        job = tenant.post("/v1/jobs", json={"type": "a.b"}).json()["id"]
    assert page.context.request.post("/session", data={"key": house.operator_key}).status == 200
    told_at = {
        f"tenants/{name}": f"to shard {TO}: nothing of it starts until that is over.",
        "fleet": "Tenants that move",
        f"jobs/{job}?tenant={name}": "is being moved",
    }
    with client_of(house, house.operator_key) as operator:
        asked = {"tenant": name, "to": TO, "wait_seconds": 3600}
        assert operator.post("/v1/shards/move", json=asked).status_code == 202
        for width, height in ((1440, 900), (390, 844)):
            page.set_viewport_size({"width": width, "height": height})
            for path, told in told_at.items():
                page.goto(f"/ui/{path}")
                expect(page.locator("main")).to_contain_text(told)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
                page.screenshot(path=folder / f"move-{path.partition('/')[0]}-{width}.png")
        assert operator.post("/v1/shards/move/cancel", json={"tenant": name}).status_code == 202
    page.goto("/ui/audit")
    expect(page.locator("main")).to_contain_text(f"Cancelled the move of {name}")
