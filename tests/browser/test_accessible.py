"""Every page in both themes without a violation that axe-core finds; the larger dialogs, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.api.house import House
from tests.browser.accessibility import faults, settled
from tests.browser.aside import Aside, Caller, Hand, caller_of, hand_worker, sign_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # a page after the other, each with axe

THEMES = ("light", "dark")
POOL = "long"
DIALOGS = {
    "tenants/{tenant}": "Change",
    "restraints": "Pause…",
    "schedules?tenant={tenant}": "New schedule",
    "keys?tenant={tenant}": "New key",
    "prices": "Add a price",
    "usage?tenant={tenant}": "Set a cap…",
}
PLATFORM = (
    "", "pools", "workers", "fleet", "tenants", "tenants?view=all", "tenants/{tenant}",
    "restraints", "alarms", "prices", "audit",
)  # fmt: skip
OWN = (
    "jobs", "jobs?state=dead", "jobs/{good}", "jobs/{good}?view=data", "jobs/{good}?view=logs",
    "jobs/{good}?view=copy", "jobs/{dead}", "jobs/{waits}", "failures", "dead-letters", "schedules",
    "schedules/nightly", "bulk-actions", "usage", "limits", "keys", "webhooks", "webhooks/{hook}",
    "flows", "flows/{flow}", "events",
)  # fmt: skip
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def aside() -> Iterator[Aside]:
    aside = Aside()
    yield aside
    aside.close()


@pytest.fixture(scope="module")
def names(house: House, aside: Aside) -> Iterator[dict[str, str]]:
    """A tenant with something on every page: what stands for what in the paths."""
    name, key = house.new_tenant()
    with caller_of(house, aside, key) as tenant, hand_worker(house, aside) as worker:
        yield {"tenant": name, "key": key, **_furnished(tenant, worker)}


def _furnished(tenant: Caller, worker: Hand) -> dict[str, str]:
    assert tenant.call("PUT", "/v1/events/settings", {"job_events": True}).status_code == 200
    jobs = [{"type": worker.type, "pool": POOL, "payload": {"order": n}} for n in range(2)]
    flow = tenant.call("POST", "/v1/flows", {"kind": "group", "jobs": jobs}).json()["id"]
    worker.hello(POOL)
    lease = worker.lease()
    worker.log(lease, "begun")
    worker.report(lease, result={"sent": True})
    error = {"type": "ValueError", "message": "no such order", "stack": "  File shop.py, line 7"}
    dead = worker.run(kind="failed", failure="permanent", error=error)
    waits = tenant.submit("report.build", pool=POOL)
    schedule = {"cron": "0 3 * * *", "type": "report.build"}
    assert tenant.call("PUT", "/v1/schedules/nightly", schedule).status_code == 201
    wish = {"action": "cancel", "filter": {"tag": "none"}}
    tenant.call("POST", "/v1/bulk-actions", wish)
    # it is off: nothing is sent there
    hook = {"url": "https://93.184.216.34/hook", "enabled": False}
    webhook = tenant.call("POST", "/v1/webhooks", hook).json()["id"]
    return {"good": lease["job"], "dead": dead, "waits": waits, "hook": webhook, "flow": flow}


def _found(page: Page, path: str) -> list[str]:
    page.goto(f"/ui/{path}")
    settled(page)
    return [f"/ui/{path} {line}" for line in faults(page)]


@pytest.mark.parametrize("theme", THEMES)
def test_signing_in_is_accessible(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]  # one of two
    assert _found(page, "") == []


@pytest.mark.parametrize("theme", THEMES)
def test_operators_pages_are_accessible(
    page: Page, house: House, names: dict[str, str], theme: str
) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]  # one of two
    sign_in(page, house.operator_key)
    wrong = [line for path in PLATFORM for line in _found(page, path.format(**names))]
    wrong += _found(page, f"jobs?tenant={names['tenant']}")
    for path, button in DIALOGS.items():
        page.goto(f"/ui/{path.format(**names)}")
        settled(page)
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        wrong += [f"{button} on /ui/{path} {line}" for line in faults(page)]
    assert wrong == []


@pytest.mark.parametrize("theme", THEMES)
def test_tenants_pages_are_accessible(page: Page, names: dict[str, str], theme: str) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]  # one of two
    sign_in(page, names["key"])
    assert [line for path in ("", *OWN) for line in _found(page, path.format(**names))] == []


def test_a_phones_width_is_accessible(page: Page, house: House, names: dict[str, str]) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    sign_in(page, house.operator_key)
    own = ("jobs/{good}", "flows/{flow}", "events", "usage")
    paths = (
        "",
        "tenants",
        "fleet",
        "prices",
        "audit",
        *(f"{one}?tenant={{tenant}}" for one in own),
    )
    assert [line for path in paths for line in _found(page, path.format(**names))] == []
