"""Pages of what happened and what belongs together: the event log as it grows, flows, deliveries,
the runs of schedules, and what it costs."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.api.house import House
from tests.browser.aside import Caller, Hand, sign_in

pytestmark = pytest.mark.slow

POOL = "long"
ERROR = {"type": "ValueError", "message": "no such order", "stack": "  File shop.py, line 7"}
expect.set_options(timeout=30_000)  # a busy machine stands still for seconds


@pytest.fixture
def seen(page: Page, tenant: Caller) -> Page:
    """A browser that is signed in with the tenant's key."""
    sign_in(page, tenant.key)
    return page


def test_events_come_by_themselves_and_are_filtered(
    seen: Page, tenant: Caller, worker: Hand
) -> None:
    seen.goto("/ui/events")
    expect(seen.get_by_text("Nothing has happened yet")).to_be_visible()
    seen.get_by_role("button", name="Write jobs down, too").click()
    expect(seen.get_by_text("Jobs and notices")).to_be_visible()
    expect(seen.get_by_text("Live: events come as they happen.")).to_be_visible()
    job = tenant.submit(worker.type, pool=POOL)
    rows = seen.get_by_role("row").filter(has_text=worker.type)
    expect(rows).to_contain_text(["job.accepted"])
    worker.hello(POOL)
    worker.run(kind="failed", failure="permanent", error=ERROR)
    expect(rows.first).to_contain_text("job.dead")
    rows.first.click()
    dialog = seen.get_by_role("dialog")
    expect(dialog.get_by_role("link", name=job)).to_be_visible()
    expect(dialog.get_by_label("Facts")).to_contain_text('"state": "dead"')
    seen.keyboard.press("Escape")
    seen.get_by_label(re.compile("^Kind")).select_option("job.dead")
    expect(rows).to_have_count(1)
    expect(seen).to_have_url(re.compile("kind=job.dead"))


def test_a_flow_is_watched_and_what_failed_of_it_replayed(
    seen: Page, tenant: Caller, worker: Hand
) -> None:
    jobs = [{"type": worker.type, "pool": POOL, "payload": {"n": n}} for n in range(3)]
    made = tenant.call("POST", "/v1/flows", {"kind": "group", "jobs": jobs})
    assert made.status_code == 202, made.text
    seen.goto("/ui/flows")
    seen.get_by_role("row").filter(has_text=made.json()["id"][-12:]).get_by_role("link").click()
    expect(seen.get_by_role("heading", level=1)).to_have_text("A group of 3 jobs")
    worker.hello(POOL)
    for _ in range(2):
        worker.run()
    dead = worker.run(kind="failed", failure="permanent", error=ERROR)
    expect(seen.locator(".job-state")).to_have_text("failed")
    expect(seen.get_by_text("3 jobs: 2 succeeded, 1 dead")).to_be_visible()
    expect(seen.get_by_text("ValueError: no such order").first).to_be_visible()
    seen.get_by_role("button", name="Replay what failed…").click()
    seen.get_by_role("dialog").get_by_role("button", name="Replay", exact=True).click()
    expect(seen.get_by_text("1 job waits again.")).to_be_visible()
    assert worker.run() == dead
    expect(seen.locator(".job-state")).to_have_text("succeeded")


def test_runs_of_a_schedule_say_what_became_of_their_jobs(
    seen: Page, tenant: Caller, worker: Hand
) -> None:
    wish = {"cron": "0 3 * * *", "type": worker.type, "pool": POOL}
    assert tenant.call("PUT", "/v1/schedules/nightly", wish).status_code == 201
    assert tenant.call("POST", "/v1/schedules/nightly/trigger").status_code in (200, 201, 202)
    worker.hello(POOL)
    worker.run(kind="failed", failure="permanent", error=ERROR)
    seen.goto("/ui/schedules/nightly")
    row = seen.get_by_role("row").filter(has_text="Made a job by somebody, now")
    expect(row).to_contain_text("dead")


def test_an_operator_sets_a_price_and_a_cap(page: Page, house: House, tenant: Caller) -> None:
    name = tenant.get("/v1/spend-cap")["tenant"]
    reply = page.context.request.post("/session", data={"key": house.operator_key})
    assert reply.status == 200, reply.text()
    page.goto("/ui/prices")
    page.get_by_role("button", name="Add a price").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Pool").select_option("long")
    dialog.get_by_label(re.compile("^A slot-second")).fill("0.000025")
    dialog.get_by_role("button", name="Add the price").click()
    row = page.get_by_role("row").filter(has_text="to come")
    expect(row).to_contain_text("0.000025")
    row.get_by_role("button", name="Take back").click()
    page.get_by_role("dialog").get_by_role("button", name="Take it back").click()
    expect(row).to_have_count(0)

    page.goto(f"/ui/usage?tenant={name}")
    page.get_by_role("button", name="Set a cap…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^In a month")).fill("12.5")
    dialog.get_by_role("button", name="Set the cap").click()
    expect(page.get_by_text("0.00 of 12.50 this month").first).to_be_visible()
    assert tenant.get("/v1/spend-cap")["cap_micros"] == 12_500_000

    page.goto(f"/ui/audit?subject={name}")
    expect(page.get_by_text(f"Set the spend cap of {name}")).to_be_visible()
    expect(page.get_by_text("cap 12.50, grace 1 h")).to_be_visible()
