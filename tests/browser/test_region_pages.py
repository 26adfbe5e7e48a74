"""Regions as an operator sees them: the Fleet page, and whose home is where."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.api.house import House, own_house
from tests.browser.aside import sign_in
from tests.postgres import Server

pytestmark = pytest.mark.slow

SECRET = "a secret of both regions"
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def house(postgres_server: Server) -> Iterator[House]:
    """`us`, the directory; `eu` is named in its settings and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        silent = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    regions = f"us=http://127.0.0.1:8700;eu={silent}"
    own = {"region": "us", "regions": regions, "region_secret": SECRET}
    with own_house(postgres_server, "region_pages", **own) as house:
        yield house


def test_the_fleet_page_shows_regions_and_tenants_have_homes(page: Page, house: House) -> None:
    name, _ = house.new_tenant()
    sign_in(page, house.operator_key)
    page.goto("/ui/fleet")
    regions = page.get_by_role("group", name="Regions")
    expect(regions.get_by_role("row").filter(has_text="answers this page")).to_contain_text("Here")
    expect(regions.get_by_role("row").filter(has_text="No answer")).to_contain_text("eu")
    expect(page.get_by_text("This region is us. Tenants, keys and homes")).to_be_visible()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # a size
    wider = "document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(wider) <= 0
    page.goto("/ui/tenants?view=all")
    expect(page.get_by_role("row").filter(has_text=name)).to_contain_text("us")
    page.goto(f"/ui/tenants/{name}")
    expect(page.get_by_text("at home here, in the region us")).to_be_visible()
    assert page.evaluate(wider) <= 0
