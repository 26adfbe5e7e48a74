"""What comes late, or from another tab: nobody sees or does anything under a wrong name."""

from __future__ import annotations

import re

import httpx2
import pytest
from playwright.sync_api import Page, Route, expect
from tests.api.house import NO_TLS, House

pytestmark = pytest.mark.slow
PATIENCE_MS = 30_000


def sign_in(page: Page, key: str) -> None:
    page.goto("/ui/sign-in")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible(timeout=PATIENCE_MS)


def test_who_signs_in_in_another_tab_is_signed_in_in_all(page: Page, house: House) -> None:
    (first, first_key), (second, second_key) = house.new_tenant(), house.new_tenant()
    sign_in(page, first_key)
    expect(page.locator(".bar-tenant")).to_have_text(first, timeout=PATIENCE_MS)
    other = page.context.new_page()
    sign_in(other, second_key)
    expect(page.locator(".bar-tenant")).to_have_text(second, timeout=PATIENCE_MS)
    other.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=PATIENCE_MS)


def test_who_could_not_be_signed_out_hears_so(page: Page, house: House) -> None:
    sign_in(page, house.operator_key)

    def fail(route: Route) -> None:
        if route.request.method == "DELETE":
            route.abort()
        else:
            route.fallback()

    page.route("**/session", fail)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are still signed in.")).to_be_visible(timeout=PATIENCE_MS)
    page.unroute("**/session")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=PATIENCE_MS)


def test_a_session_that_was_ended_elsewhere_is_over_here(page: Page, house: House) -> None:
    sign_in(page, house.new_tenant()[1])
    page.goto("/ui/usage")
    expect(page.get_by_role("heading", name="Usage").first).to_be_visible(timeout=PATIENCE_MS)
    (cookie,) = page.context.cookies()
    shown = {"cookie": f"{cookie['name']}={cookie.get('value', '')}"}
    with httpx2.Client(base_url=house.url, headers=shown, verify=NO_TLS) as other:
        token = other.get("/session").json()["csrf"]
        assert other.delete("/session", headers={"x-fairway-csrf": token}).status_code == 204
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=PATIENCE_MS)


def test_enter_picks_what_was_typed_and_not_what_was_listed_before(
    page: Page, house: House
) -> None:
    first, *_, wanted = sorted(house.new_tenant()[0] for _ in range(4))
    sign_in(page, house.operator_key)
    page.goto("/ui/jobs")
    box = page.get_by_role("combobox", name="Tenant").first
    box.click()
    expect(page.get_by_role("option").first).to_be_visible(timeout=PATIENCE_MS)
    assert first < wanted
    box.fill(wanted)
    box.press("Enter")
    picked = re.compile(f"tenant={re.escape(wanted)}$")
    expect(page).to_have_url(picked, timeout=PATIENCE_MS)


def test_a_list_below_the_pointer_is_held_and_not_shown_for_another_filter(
    page: Page, house: House
) -> None:
    _, key = house.new_tenant()
    shown = {"authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=house.url, headers=shown, verify=NO_TLS) as tenant:
        for kind in ("one.kind", "other.kind"):
            assert tenant.post("/v1/jobs", json={"type": kind}).status_code == 202
    sign_in(page, key)
    page.goto("/ui/jobs?type=one.kind")
    rows = page.get_by_role("table").get_by_text(re.compile("kind"))
    expect(rows).to_have_text(["one.kind"], timeout=PATIENCE_MS)
    rows.hover()
    expect(page.get_by_text("held while you point")).to_be_visible(timeout=PATIENCE_MS)
    page.evaluate(
        "history.pushState(null, '', '/ui/jobs?type=other.kind');"
        "dispatchEvent(new PopStateEvent('popstate'))"  # as the button back does
    )
    expect(rows).to_have_text(["other.kind"], timeout=PATIENCE_MS)


def test_who_picked_another_tenant_meanwhile_is_left_there(page: Page, house: House) -> None:
    """A schedule that is deleted leads back to the list, unless the reader has gone elsewhere."""
    (first, first_key), (second, _) = house.new_tenant(), house.new_tenant()
    with httpx2.Client(
        base_url=house.url, headers={"authorization": f"Bearer {first_key}"}, verify=NO_TLS
    ) as tenant:
        wish = {"cron": "0 3 * * *", "type": "report.build"}
        assert tenant.put("/v1/schedules/nightly", json=wish).status_code == 201
        sign_in(page, house.operator_key)
        page.goto(f"/ui/schedules/nightly?tenant={first}")
        held: list[Route] = []

        def hold(route: Route) -> None:
            if route.request.method == "DELETE":
                held.append(route)
            else:
                route.fallback()

        page.route("**/v1/schedules/nightly", hold)
        page.get_by_role("button", name="Delete…").click(timeout=PATIENCE_MS)
        page.get_by_role("button", name="Delete it").click()
        expect(page.get_by_role("button", name="Delete it")).to_have_attribute("aria-busy", "true")
        page.evaluate(
            f"history.pushState(null, '', '/ui/jobs?tenant={second}');"
            "dispatchEvent(new PopStateEvent('popstate'))"
        )
        expect(page.get_by_role("heading", level=1)).to_have_text("Jobs", timeout=PATIENCE_MS)
        held[0].continue_()
        expect(page.get_by_text("The schedule is gone.")).to_be_visible(timeout=PATIENCE_MS)
        expect(page).to_have_url(re.compile(f"/ui/jobs\\?tenant={re.escape(second)}$"))
        assert tenant.get("/v1/schedules/nightly").status_code == 404
