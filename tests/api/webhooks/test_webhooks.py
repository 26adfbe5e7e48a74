"""Webhooks over HTTP: made, looked at, changed, and nobody else's."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.api.house import House, problem

URL = "https://93.184.216.34/hook"  # nothing is sent there: nothing happens
QUIET: dict[str, Any] = {"url": URL, "kinds": ["circuit.*"], "enabled": False}
PATH = "/v1/webhooks"


async def made(tenant: httpx2.AsyncClient, **changes: Any) -> dict[str, Any]:
    reply = await tenant.post(PATH, json=QUIET | changes)
    assert reply.status_code == 201, reply.text
    found: dict[str, Any] = reply.json()
    assert reply.headers["location"] == f"{PATH}/{found['id']}"
    return found


async def test_a_webhook_is_made_shown_changed_and_deleted(tenant: httpx2.AsyncClient) -> None:
    new = await made(tenant, description="pager")
    secret = new.pop("secret")
    assert secret.startswith("whsec_")
    path = f"{PATH}/{new['id']}"
    shown = await tenant.get(path)
    assert shown.json() == new
    listed = await tenant.get(PATH)
    assert listed.json() == {"webhooks": [new]}
    changed = await tenant.patch(path, json={"kinds": ["quarantine.imposed"]})
    assert changed.json()["kinds"] == ["quarantine.imposed"]
    assert changed.json()["description"] == "pager"
    rotated = (await tenant.post(f"{path}/rotate", json={"overlap_seconds": 60})).json()
    assert rotated["secret"] != secret
    assert (await tenant.get(path)).json()["old_secret_until"] == rotated["old_secret_until"]
    for reply in (shown, listed, changed, await tenant.get(path)):
        assert "whsec_" not in reply.text
    assert (await tenant.delete(path)).status_code == 204
    problem(await tenant.get(path), 404, "NOT_FOUND")


async def test_one_that_is_switched_off_is_not_tried(tenant: httpx2.AsyncClient) -> None:
    path = f"{PATH}/{(await made(tenant))['id']}"
    told = problem(await tenant.post(f"{path}/test"), 409, "CONFLICT")
    assert "switched off" in told["detail"]
    assert (await tenant.get(f"{path}/deliveries")).json()["deliveries"] == []


async def test_a_test_is_a_delivery_that_can_be_replayed(
    house: House, tenant: httpx2.AsyncClient
) -> None:
    """One that was switched off since: it waits."""
    hook = (await made(tenant))["id"]
    path = f"{PATH}/{hook}"
    sent = [house.waiting_test(hook) for _ in range(3)]
    page = (await tenant.get(f"{path}/deliveries?limit=2")).json()
    rest = (await tenant.get(f"{path}/deliveries?cursor={page['next_cursor']}")).json()
    found = page["deliveries"] + rest["deliveries"]
    assert [one["id"] for one in found] == [*reversed(sent)]
    assert {(one["kind"], one["position"]) for one in found} == {("webhook.test", None)}
    assert {one["state"] for one in found} == {"waiting"}
    assert (await tenant.get(f"{path}/deliveries?state=failed")).json()["deliveries"] == []
    again = await tenant.post(f"{path}/deliveries/{sent[0]}/replay")
    assert (again.status_code, again.json()["id"]) == (202, sent[0])
    for which, replayed in (("failed", 0), ("all", None)):
        asked = {"since": "2026-01-01T00:00:00Z", "which": which}
        reply = await tenant.post(f"{path}/replay", json=asked)
        assert reply.json() == {"replayed": replayed, "is_more": False}
    problem(await tenant.get(f"{path}/deliveries?state=lost"), 422, "INVALID_REQUEST", "state")
    problem(await tenant.get(f"{path}/deliveries?cursor=1"), 400, "INVALID_CURSOR")
    problem(await tenant.get(f"{path}/deliveries?colour=1"), 422, "INVALID_REQUEST", "colour")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "https://127.0.0.1/"}, "/url"),
        ({"url": "http://93.184.216.34/"}, "/url"),
        ({"url": "https://localhost/"}, "/url"),
        ({"url": "https://[::ffff:169.254.169.254]/"}, "/url"),
        ({"url": "https://nobody.invalid/"}, "/url"),
        ({"kinds": ["job.deaf"]}, "/kinds"),
        ({"description": "two\nlines"}, "/description"),
        ({"secret": "mine"}, "/secret"),
    ],
)
async def test_what_cannot_be_is_refused_when_made_and_when_changed(
    tenant: httpx2.AsyncClient, change: dict[str, Any], field: str
) -> None:
    problem(await tenant.post(PATH, json=QUIET | change), 422, "INVALID_REQUEST", field)
    path = f"{PATH}/{(await made(tenant))['id']}"
    problem(await tenant.patch(path, json=change), 422, "INVALID_REQUEST", field)
    assert (await tenant.get(path)).json()["url"] == URL


async def test_nobody_elses_webhook_is_there(
    house: House, tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    hook = (await made(tenant))["id"]
    path, sent = f"{PATH}/{hook}", house.waiting_test(hook)
    own = f"{PATH}/{(await made(stranger))['id']}"
    since = {"since": "2026-01-01T00:00:00Z"}
    for place in (path, f"{PATH}/{uuid4()}", f"{PATH}/nothing", path.upper()):
        problem(await stranger.get(place), 404, "NOT_FOUND")
        problem(await stranger.patch(place, json={"enabled": True}), 404, "NOT_FOUND")
        problem(await stranger.delete(place), 404, "NOT_FOUND")
        problem(await stranger.post(f"{place}/rotate", json={}), 404, "NOT_FOUND")
        problem(await stranger.post(f"{place}/test"), 404, "NOT_FOUND")
        problem(await stranger.get(f"{place}/deliveries"), 404, "NOT_FOUND")
        problem(await stranger.post(f"{place}/deliveries/{sent}/replay"), 404, "NOT_FOUND")
        for which in ("failed", "all"):
            reply = await stranger.post(f"{place}/replay", json={**since, "which": which})
            problem(reply, 404, "NOT_FOUND")
    problem(await stranger.post(f"{own}/deliveries/{sent}/replay"), 404, "NOT_FOUND")
    assert len((await stranger.get(PATH)).json()["webhooks"]) == 1
    assert (await tenant.get(path)).json()["enabled"] is False


async def test_there_are_so_many_at_most(tenant: httpx2.AsyncClient) -> None:
    for _ in range(20):
        await made(tenant)
    problem(await tenant.post(PATH, json=QUIET), 429, "TOO_MANY_WEBHOOKS")


async def test_who_wants_to_hear_of_jobs_has_them_written(
    house: House, tenant: httpx2.AsyncClient
) -> None:
    await made(tenant, enabled=True)
    assert (await tenant.get("/v1/events/settings")).json() == {"job_events": False}
    hook = await made(tenant, enabled=True, kinds=["job.dead"])
    assert (await tenant.get("/v1/events/settings")).json() == {"job_events": True}
    off = {"job_events": False}
    told = problem(await tenant.put("/v1/events/settings", json=off), 409, "CONFLICT")
    assert hook["id"] in told["detail"]
    await tenant.patch(f"{PATH}/{hook['id']}", json={"enabled": False})
    assert (await tenant.put("/v1/events/settings", json=off)).json() == off
