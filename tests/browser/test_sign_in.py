"""Signing in and out, as a person does it."""

from __future__ import annotations

import httpx2
import pytest
from playwright.sync_api import Page, expect
from tests.api.house import NO_TLS, House

pytestmark = pytest.mark.slow


def test_with_a_key(page: Page, house: House) -> None:
    page.goto("/ui/")
    page.get_by_label("API key").fill("fw_operator_aa_bb_cc")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This API key is not valid.")).to_be_visible()
    page.get_by_label("API key").fill(house.operator_key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    (cookie,) = page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (
        "fairway_session", True, "Strict",
    )  # fmt: skip
    assert page.evaluate("document.cookie") == ""
    page.reload()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.context.cookies() == []


def test_with_a_link(page: Page, house: House) -> None:
    headers = {"authorization": f"Bearer {house.operator_key}"}
    with httpx2.Client(base_url=house.url, headers=headers, verify=NO_TLS) as operator:
        link = operator.post("/session/links").json()["url"]
    page.goto(link)
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    assert "code" not in page.url, "it is in no history"
    page.context.clear_cookies()
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_text("This link was used before")).to_be_visible()
