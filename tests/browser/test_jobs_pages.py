"""Pages about one tenant's jobs in a real browser: watched, explained, cancelled, replayed, made.

What people write into jobs is text on every page, whatever it looks like.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from tests.api.house import House
from tests.browser.aside import Aside, Caller, Hand, caller_of, sign_in

pytestmark = pytest.mark.slow

POOL = "long"  # there a run is on disk before its worker hears of it: `running` is always seen
EVIL = (
    "<img src=x onerror=\"window.pwned='img'\"><script>window.pwned='script'</script>"
    "<svg/onload=\"window.pwned='svg'\">\"'><a href=\"javascript:window.pwned='a'\">click</a>"
)
expect.set_options(timeout=30_000)  # a busy machine stands still for seconds


@pytest.fixture
def seen(page: Page, tenant: Caller) -> Page:
    """A browser that is signed in with the tenant's key."""
    sign_in(page, tenant.key)
    return page


def test_a_job_is_watched_explained_and_cancelled(seen: Page, tenant: Caller, worker: Hand) -> None:
    page = seen
    page.goto("/ui/jobs")
    expect(page.get_by_text("No jobs yet")).to_be_visible()
    job = tenant.submit(worker.type, pool=POOL, payload={"n": 1}, tags=["nightly"])
    row = page.get_by_role("row").filter(has_text=job)  # by itself: nobody loads the page again
    expect(row).to_contain_text("queued")
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(worker.type)

    why = page.locator(".card", has_text="Why is it here?")
    expect(why).to_contain_text("No live worker runs this job type")
    expect(why).to_contain_text("Place in line1st")
    worker.hello(POOL)
    lease = worker.lease()
    state = page.locator(".job-state")
    expect(state).to_have_text("running")
    expect(why).to_contain_text("It runs now.")
    expect(page.locator(".facts > div").filter(has_text="Runs for")).to_be_visible()
    worker.progress(lease, {"done": 3, "total": 4, "text": "three of four"})
    expect(page.get_by_text("3 of 4, 75 %")).to_be_visible()

    page.get_by_role("button", name="Cancel job").click()
    page.get_by_role("button", name="Cancel the job").click()
    worker.until_cancel(job)
    worker.report(lease, "cancelled")
    expect(state).to_have_text("cancelled")
    assert tenant.get(f"/v1/jobs/{job}")["state"] == "cancelled"


def test_jobs_are_filtered_and_counted_before_they_are_cancelled(
    seen: Page, tenant: Caller, worker: Hand
) -> None:
    page = seen
    kept = tenant.submit(worker.type, pool=POOL)
    gone = [tenant.submit(worker.type, pool=POOL, tags=["old"]) for _ in range(3)]
    page.goto("/ui/jobs")
    page.get_by_label(re.compile("^Tag")).fill("old")
    page.get_by_label(re.compile("^Tag")).press("Enter")
    expect(page.get_by_role("row")).to_have_count(1 + len(gone))
    expect(page).to_have_url(re.compile("tag=old"))
    page.get_by_role("button", name="Cancel jobs…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("3 jobs match now.")
    dialog.get_by_role("button", name="Cancel 3 jobs").click()
    expect(page).to_have_url(re.compile("/ui/bulk-actions"))
    expect(page.get_by_role("row").nth(1)).to_contain_text("3 of 3")
    expect(page.get_by_role("row").nth(1)).to_contain_text("done")
    found = {job["id"]: job["state"] for job in tenant.get("/v1/jobs")["jobs"]}
    assert found == dict.fromkeys(gone, "cancelled") | {kept: "queued"}


def test_a_group_of_failures_is_replayed(seen: Page, tenant: Caller, worker: Hand) -> None:
    page = seen
    jobs = [tenant.submit(worker.type, pool=POOL, payload={"n": n}) for n in range(3)]
    worker.hello(POOL)
    error = {"type": "ValueError", "message": "no such order", "stack": "  File shop.py, line 7"}
    for _ in jobs:
        worker.run(kind="failed", failure="permanent", error=error)
    page.goto("/ui/failures")
    group = page.locator(".failure-group")
    expect(group).to_have_count(1)
    expect(group).to_contain_text("ValueError: no such order")
    group.get_by_role("button", name="Replay group…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("3 dead letters match now.")
    dialog.get_by_role("button", name="Replay 3 dead letters").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("3 of 3")
    assert sorted(worker.run() for _ in jobs) == sorted(jobs)
    page.goto("/ui/failures")
    expect(page.get_by_text("Nothing has failed for good")).to_be_visible()


def test_a_schedule_is_made_with_a_preview_and_run(seen: Page, tenant: Caller) -> None:
    page = seen
    page.goto("/ui/schedules")
    page.get_by_role("button", name="New schedule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^Name")).fill("daily-report")
    dialog.get_by_label(re.compile("^Cron")).fill("0 9 * * MON-FRI")
    dialog.get_by_label(re.compile("^Time zone")).fill("Europe/Lisbon")
    dialog.get_by_label(re.compile("^Job type")).fill("report.build")
    expect(dialog).to_contain_text("At 09:00 on Monday through Friday (Europe/Lisbon)")
    dialog.get_by_role("button", name="Make schedule").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("daily-report")
    expect(page.locator(".next-runs li")).not_to_have_count(0)
    made = tenant.get("/v1/schedules/daily-report")
    assert (made["cron"], made["timezone"]) == ("0 9 * * MON-FRI", "Europe/Lisbon")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("None while it is paused")).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("report.build")
    expect(page.locator(".job-state")).to_have_text("queued")


def test_ticks_that_were_made_up_for_are_in_the_list_of_runs(seen: Page, tenant: Caller) -> None:
    wish = {"type": "report.build", "cron": "0 9 * * *"}
    made = tenant.call("PUT", "/v1/schedules/nightly", wish)
    assert made.status_code in (200, 201), made.text
    page = seen
    page.goto("/ui/schedules/nightly")
    expect(page.get_by_text("No runs yet")).to_be_visible()
    page.get_by_role("button", name="Backfill").click()
    page.get_by_role("button", name="Make the runs").click()
    expect(page.get_by_role("row").filter(has_text="backfill")).to_have_count(1)


# -- stored scripts ------------------------------------------------------------------------------


def evil_jobs(tenant: Caller, worker: Hand) -> tuple[str, str, str]:
    """One that succeeded and one that died, with all that people and handlers say of them; and
    their flow."""
    words: dict[str, Any] = {"payload": {EVIL: [EVIL]}, "metadata": {"note": EVIL}}
    jobs = [{"type": worker.type, "pool": POOL, **words}] * 2
    flow = tenant.call("POST", "/v1/flows", {"kind": "group", "jobs": jobs})
    assert flow.status_code == 202, flow.text
    worker.hello(POOL)
    lease = worker.lease()
    worker.log(lease, EVIL)
    worker.report(lease, result={EVIL: EVIL})
    error = {"type": EVIL, "message": EVIL, "stack": EVIL}
    dead = worker.run(kind="failed", failure="permanent", error=error)
    return lease["job"], dead, flow.json()["id"]


def inert(page: Page, address: str) -> None:
    """The page is there, and nothing of what was stored has become a part of it."""
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    expect(page.locator(".problem")).to_have_count(0)
    assert page.evaluate("window.pwned") is None, address
    assert page.locator("img, svg[onload], [onerror], a[href^='javascript:']").count() == 0


def test_what_is_stored_stays_text_on_every_page(seen: Page, tenant: Caller, worker: Hand) -> None:
    assert tenant.call("PUT", "/v1/events/settings", {"job_events": True}).status_code == 200
    good, dead, flow = evil_jobs(tenant, worker)
    schedule = {"every_seconds": 3600, "type": "report.build", "payload": {"text": EVIL}}
    assert tenant.call("PUT", "/v1/schedules/plain", schedule).status_code == 201
    # names with signs in them are none, so there is nothing to show
    assert tenant.call("PUT", f"/v1/schedules/{quote(EVIL, '')}", schedule).status_code >= 400
    assert tenant.call("POST", "/v1/jobs", {"type": EVIL}).status_code == 422
    # it is off: nothing is sent there
    hook = {"url": "https://93.184.216.34/hook", "description": EVIL, "enabled": False}
    webhook = tenant.call("POST", "/v1/webhooks", hook).json()["id"]
    paths = ["", "jobs", f"jobs/{good}", f"jobs/{good}?view=data", f"jobs/{good}?view=logs"]
    paths += [f"jobs/{good}?view=copy", f"jobs/{dead}", f"jobs/{dead}?view=data", "failures"]
    paths += ["dead-letters", "schedules", "schedules/plain", "bulk-actions", "usage", "limits"]
    paths += ["keys", "webhooks", f"webhooks/{webhook}", f"jobs?type={quote(EVIL)}"]
    paths += ["flows", f"flows/{flow}", "events", f"events?type={quote(EVIL)}"]
    for path in paths:
        inert(seen, f"/ui/{path}")
    seen.goto(f"/ui/jobs/{dead}?view=data")
    expect(seen.get_by_label("Input")).to_contain_text("window.pwned")  # as it was written


def test_names_of_keys_stay_text_and_a_new_key_is_shown_once(
    page: Page, house: House, aside: Aside
) -> None:
    name, _ = house.new_tenant()
    house.new_key({"scope": "tenant", "tenant": name, "name": EVIL[:100]})
    sign_in(page, house.operator_key)
    inert(page, f"/ui/keys?tenant={name}")
    expect(page.get_by_role("cell", name=EVIL[:100], exact=True)).to_be_visible()
    page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^Name")).fill("ci")
    dialog.get_by_role("button", name="Make key").click()
    secret = page.locator(".secret code")
    expect(secret).to_contain_text("fw_tenant_")
    made = secret.inner_text()
    with caller_of(house, aside, made) as caller:
        assert caller.get("/v1/jobs") == {"jobs": [], "next_cursor": None}
    page.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_text(made)).to_have_count(0)
    page.get_by_role("button", name="Revoke ci").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_text("The key is revoked.")).to_be_visible()
