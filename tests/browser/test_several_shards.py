"""The pages of a tenant in several shards: as those of one shard, and none is refused anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Response, expect
from tests.api.house import House, open_house
from tests.browser.aside import Aside, Caller, caller_of
from tests.browser.conftest import PATIENCE_MS
from tests.postgres import Server, at_database, drop_database, in_thread, make_database

pytestmark = pytest.mark.slow

SHARDS = 4
PAGES = (
    "",
    "jobs",
    "flows",
    "failures",
    "dead-letters",
    "schedules",
    "events",
    "bulk-actions",
    "usage",
    "limits",
    "keys",
    "webhooks",
)
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def spread_house(postgres_server: Server) -> Iterator[House]:
    name = "browser_several_shards"
    in_thread(make_database(postgres_server.dsn, name, template=postgres_server.template))
    with open_house(at_database(postgres_server.dsn, name), shard_count=2 * SHARDS) as house:
        yield house
    in_thread(drop_database(postgres_server.dsn, name))


def test_every_page_is_of_all_shards(spread_house: House, browser: Browser) -> None:
    _, key = spread_house.new_tenant(shards=SHARDS)
    aside = Aside()
    with (
        caller_of(spread_house, aside, key) as tenant,
        browser.new_context(base_url=spread_house.url) as context,
    ):
        context.set_default_timeout(PATIENCE_MS)
        page, refused = context.new_page(), list[str]()
        page.on("response", lambda reply: _note(reply, refused))
        assert context.request.post("/session", data={"key": key}).status == 200
        _fill(tenant)
        for name in PAGES:
            page.goto(f"/ui/{name}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            page.wait_for_timeout(700)
            _keep_picture(page, name or "home")
            expect(page.get_by_role("alert")).to_have_count(0)
        _numbers_and_events_are_live(page, tenant)
        _many_are_cancelled(page)
        assert refused == []
    aside.close()


def _note(reply: Response, refused: list[str]) -> None:
    if reply.status >= 400:
        refused.append(f"{reply.status} {reply.url}")


def _fill(tenant: Caller) -> None:
    tenant.call("PUT", "/v1/events/settings", {"job_events": True})
    for _ in range(3 * SHARDS):
        tenant.submit("never", delay_seconds=3600)
    hook = {"url": "https://93.184.216.34/hook", "kinds": ["circuit.*"], "enabled": False}
    assert tenant.call("POST", "/v1/webhooks", hook).status_code == 201


def _numbers_and_events_are_live(page: Page, tenant: Caller) -> None:
    page.goto("/ui/")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.goto("/ui/events")
    expect(page.get_by_text("Live: events come as they happen.")).to_be_visible()
    rows = page.get_by_role("row").filter(has_text="job.accepted")
    expect(rows).to_have_count(3 * SHARDS)
    for _ in range(SHARDS):
        tenant.submit("never", delay_seconds=3600)
    expect(rows).to_have_count(4 * SHARDS)
    rows.first.click()
    expect(page.get_by_role("dialog")).to_contain_text("in shard")
    _keep_picture(page, "event")
    page.goto("/ui/webhooks")
    page.get_by_role("link", name="93.184.216.34").first.click()
    expect(page.get_by_text("of your shards")).to_be_visible()
    _keep_picture(page, "webhook")


def _many_are_cancelled(page: Page) -> None:
    cancel = {"act": "cancel", "filter": {"type": "never"}}
    script = """async (body) => {
        const session = await (await fetch('/session')).json();
        const headers = {'Content-Type': 'application/json', 'X-Fairway-Csrf': session.csrf};
        const wanted = {method: 'POST', headers, body: JSON.stringify(body)};
        return (await fetch('/v1/bulk-actions', wanted)).status;
    }"""
    assert page.evaluate(script, cancel) == 202
    page.goto("/ui/bulk-actions")
    expect(page.get_by_text(f"{4 * SHARDS} of {4 * SHARDS}")).to_be_visible()
    _keep_picture(page, "bulk-done")


def _keep_picture(page: Page, name: str) -> None:
    """For whoever wants to look: `FAIRWAY_PICTURES=folder`."""
    if folder := os.environ.get("FAIRWAY_PICTURES"):
        page.screenshot(path=Path(folder) / f"several-{name}.png")
