"""Operators' pages in a real browser: a weight changed after a preview, a tenant stopped, a pause.

What others write is text on every page, whatever it looks like.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Page, expect
from tests.api.house import NO_TLS, House
from tests.browser.aside import Aside, hand_worker, sign_in

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=\"window.pwned='img'\"><script>window.pwned='script'</script>"
#: What stands out of the window, but for what scrolls inside something.
WIDE = """[...document.querySelectorAll('main *')].filter(one =>
  one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.table-scroll, .table-wrap')
).map(one => one.tagName + '.' + one.className)"""
expect.set_options(timeout=30_000)  # a busy machine stands still for seconds


def client_of(house: House, key: str) -> httpx2.Client:
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.Client(base_url=house.url, headers=headers, verify=NO_TLS, timeout=30)


@pytest.fixture
def operator(house: House) -> Iterator[httpx2.Client]:
    with client_of(house, house.operator_key) as client:
        yield client


@pytest.fixture
def seen(page: Page, house: House) -> Page:
    """A browser that is signed in with the operator's key."""
    sign_in(page, house.operator_key)
    return page


def tenant_with_work(house: House, pool: str, jobs: int = 1) -> str:
    name, key = house.new_tenant(weight=10)
    with client_of(house, key) as tenant:
        for _ in range(jobs):
            reply = tenant.post("/v1/jobs", json={"type": "report.build", "pool": pool})
            assert reply.status_code == 202, reply.text
    return name


def test_a_weight_is_changed_after_its_preview(
    seen: Page, house: House, operator: httpx2.Client
) -> None:
    pool = f"p-{secrets.token_hex(4)}"  # of its own: nobody else's work counts there
    assert operator.put(f"/v1/pools/{pool}", json={}).status_code == 200
    name, _ = (tenant_with_work(house, pool) for _ in range(2))
    seen.goto(f"/ui/tenants/{name}")
    expect(seen.get_by_role("row").filter(has_text=pool)).to_be_visible()
    seen.get_by_role("button", name="Change", exact=True).click()
    dialog = seen.get_by_role("dialog")
    weight = dialog.get_by_label(re.compile("^Weight"))
    expect(weight).to_be_focused()
    weight.fill("0")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("weight: This must be a whole number, 1 or")
    weight.fill("30")
    expect(dialog.locator(".preview-line").filter(has_text=pool)).to_contain_text("50 % → 75 %")
    dialog.get_by_role("button", name="Save").click()
    expect(seen.get_by_text(f"The terms of {name} hold from now on.")).to_be_visible()
    expect(seen.locator(".facts > div").filter(has_text="Weight")).to_contain_text("30")
    assert operator.get(f"/v1/tenants/{name}").json()["weight"] == 30


def test_a_new_weight_changes_the_share_on_the_page(
    seen: Page, house: House, operator: httpx2.Client
) -> None:
    pool = f"p-{secrets.token_hex(4)}"
    assert operator.put(f"/v1/pools/{pool}", json={}).status_code == 200
    name, *_ = (tenant_with_work(house, pool, jobs=6) for _ in range(2))
    aside = Aside()
    with hand_worker(house, aside, "report.build") as worker:
        worker.hello(pool)
        worker.lease()  # which runs on: all the others wait
        seen.goto(f"/ui/tenants/{name}")
        row = seen.get_by_role("row").filter(has_text=pool)
        expect(row).to_contain_text("of 50 %")
        seen.get_by_role("button", name="Change", exact=True).click()
        seen.get_by_role("dialog").get_by_label(re.compile("^Weight")).fill("90")
        seen.get_by_role("dialog").get_by_role("button", name="Save").click()
        expect(row).to_contain_text(re.compile(r"of (5[1-9]|[6-8]\d|90) %"), timeout=60_000)
    aside.close()


def evil_notes(house: House, operator: httpx2.Client) -> None:
    """A mark beside the graphs, and an override by a key of such a name."""
    assert operator.post("/v1/marks", json={"text": EVIL}).status_code == 201
    pool = f"p-{secrets.token_hex(4)}"
    assert operator.put(f"/v1/pools/{pool}", json={}).status_code == 200
    dry = {"mode": "dry_run", "minimum_workers": 0}
    assert operator.put(f"/v1/autoscale/{pool}", json=dry).status_code == 200
    with client_of(house, house.new_key({"scope": "operator", "name": EVIL})) as evil:
        said = evil.put(f"/v1/autoscale/{pool}/override", json={"workers": 3, "for_seconds": 60})
        assert said.json()["override"]["by"] == EVIL


def test_a_tenant_is_stopped_and_what_is_stored_stays_text(
    seen: Page, house: House, operator: httpx2.Client
) -> None:
    name, _ = house.new_tenant()
    house.new_key({"scope": "worker", "name": EVIL})
    evil_notes(house, operator)
    seen.goto(f"/ui/tenants/{name}")
    seen.get_by_role("button", name="Suspend…").click()
    dialog = seen.get_by_role("dialog")
    dialog.get_by_label(re.compile("^Reason")).fill(EVIL)
    dialog.get_by_role("button", name="Suspend tenant").click()
    expect(seen.locator(".page-about")).to_contain_text("Suspended")
    expect(seen.locator(".page-about")).to_contain_text(EVIL)
    assert operator.get(f"/v1/tenants/{name}").json()["state"] == "suspended"
    pages = ["", "pools", "workers", "tenants", f"tenants?view=all&q={name}", f"tenants/{name}"]
    pages += ["fleet", "alarms", "prices"]
    for path in (*pages, f"restraints?tenant={name}", "audit"):
        seen.goto(f"/ui/{path}")
        expect(seen.get_by_role("heading", level=1)).to_be_visible()
        expect(seen.locator(".loading")).to_have_count(0)
        assert seen.evaluate("window.pwned") is None, path
        assert seen.locator("img, [onerror]").count() == 0, path
    expect(seen.get_by_role("row").filter(has_text="window.pwned").first).to_be_visible()
    for path in ("", "fleet"):
        seen.goto(f"/ui/{path}")
        expect(seen.locator("main").get_by_text("window.pwned").first).to_be_visible()
    seen.goto(f"/ui/tenants/{name}")
    seen.get_by_role("button", name="Resume…").click()
    seen.get_by_role("dialog").get_by_role("button", name="Resume tenant").click()
    expect(seen.locator(".page-about")).to_contain_text("Active")


def test_a_pause_is_made_by_keyboard_and_ended(seen: Page, operator: httpx2.Client) -> None:
    kind = f"nightly.{secrets.token_hex(4)}"
    wanted = {"type": kind, "pool": "long"}
    seen.goto("/ui/restraints")
    seen.get_by_role("button", name="Pause…").press("Enter")
    dialog = seen.get_by_role("dialog")
    expect(dialog.get_by_label(re.compile("^Tenant"))).to_be_focused()
    seen.keyboard.press("Tab")
    seen.keyboard.type(kind)
    dialog.get_by_label("Pool").select_option("long")
    dialog.get_by_role("button", name="Pause").press("Enter")
    resume = seen.get_by_role("button", name=f"Resume type {kind}, pool long")
    expect(resume).to_be_visible()
    assert wanted in operator.get("/v1/pauses").json()["pauses"]
    resume.click()
    seen.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(resume).to_have_count(0)
    assert wanted not in operator.get("/v1/pauses").json()["pauses"]


def test_the_overview_is_live_and_the_navigation_a_drawer_on_a_phone(seen: Page) -> None:
    seen.set_viewport_size({"width": 390, "height": 844})
    seen.goto("/ui/")
    expect(seen.locator(".live")).to_have_text("Live")
    expect(seen.locator(".pool-card").filter(has_text="short")).to_be_visible()
    link = seen.get_by_role("link", name="Workers", exact=True)
    expect(link).to_be_hidden()
    seen.get_by_role("button", name="Open the navigation").click()
    link.click()
    expect(seen.get_by_role("heading", level=1)).to_have_text("Workers")
    expect(link).to_be_hidden()
    assert seen.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_fleet_fits_a_phone_and_refusals_have_no_raw_backticks(
    seen: Page, house: House, operator: httpx2.Client
) -> None:
    pool = f"{'w' * 24}{secrets.token_hex(4)}"  # nowhere to break it
    assert operator.put(f"/v1/pools/{pool}", json={}).status_code == 200
    bounds = {"mode": "on", "minimum_workers": 2, "maximum_workers": 9}
    assert operator.put(f"/v1/autoscale/{pool}", json=bounds).status_code == 200
    with client_of(house, house.new_key({"scope": "operator", "name": "on-call-" * 7})) as other:
        asked = {"workers": 3, "for_seconds": 3600}
        assert other.put(f"/v1/autoscale/{pool}/override", json=asked).status_code == 200
    seen.set_viewport_size({"width": 390, "height": 844})
    seen.goto("/ui/fleet")
    card = seen.locator(".pool-card").filter(has_text=pool)
    expect(card.get_by_text("Override", exact=True)).to_be_visible()
    row = seen.get_by_role("row").filter(has_text=pool).first
    expect(row).to_be_visible(timeout=60_000)
    assert row.evaluate("one => one.getBoundingClientRect().right <= innerWidth"), "all of it"
    assert seen.evaluate(WIDE) == []
    assert seen.evaluate("document.documentElement.scrollWidth <= innerWidth")
    card.get_by_role("button", name=re.compile("Change the override")).click()
    dialog = seen.get_by_role("dialog")
    dialog.get_by_label(re.compile("^Workers")).fill("50")
    dialog.get_by_role("button", name=re.compile("Override|Change|Save")).last.click()
    told = dialog.get_by_role("alert")
    expect(told).to_contain_text(f"fairway autoscale set {pool} maximum_workers=50")
    expect(told.locator("code").last).to_contain_text("fairway autoscale set")
    assert "`" not in told.inner_text()
    assert seen.evaluate("document.documentElement.scrollWidth <= innerWidth")
