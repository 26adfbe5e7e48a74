"""`Fairway-Tenant`: an operator acts for a tenant, as itself, and leaves a line that says so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.worker import HandWorker


@pytest.fixture
async def acme(house: House) -> AsyncIterator[tuple[str, httpx2.AsyncClient]]:
    name, key = house.new_tenant()
    async with house.caller(key) as tenant:
        yield name, tenant


async def test_an_operator_sees_and_does_what_it_may_for_one_tenant(
    house: House, operator: httpx2.AsyncClient, acme: tuple[str, httpx2.AsyncClient]
) -> None:
    name, tenant = acme
    place = await submit(tenant)
    for_it = {"fairway-tenant": name}
    problem(await operator.get(place), 403, "FORBIDDEN")
    assert (await operator.get(place, headers=for_it)).json()["state"] == "queued"
    assert len((await operator.get("/v1/jobs", headers=for_it)).json()["jobs"]) == 1
    other, _ = house.new_tenant()
    problem(await operator.get(place, headers={"fairway-tenant": other}), 404, "NOT_FOUND")
    body = {"type": "never.run"}
    problem(await operator.post("/v1/jobs", json=body, headers=for_it), 403, "FORBIDDEN")
    reply = await operator.put("/v1/events/settings", json={"job_events": True}, headers=for_it)
    assert reply.status_code == 200, reply.text
    assert (await operator.delete(place, headers=for_it)).status_code in (200, 202, 204)
    assert (await tenant.get(place)).json()["state"] == "cancelled"


async def test_the_audit_names_the_operator(
    house: House, operator: httpx2.AsyncClient, acme: tuple[str, httpx2.AsyncClient]
) -> None:
    name, tenant = acme
    for_it = {"fairway-tenant": name}
    for _ in range(3):
        assert (await operator.get("/v1/jobs", headers=for_it)).status_code == 200
    await operator.put("/v1/events/settings", json={"job_events": True}, headers=for_it)
    found = (await operator.get("/v1/audit", params={"limit": 10})).json()["entries"]
    found = [one for one in found if one["tenant"] == name and one["action"] != "add_key"]
    assert [one["action"] for one in found[:2]] == ["set_job_events", "visit_tenant"]
    assert sum(one["action"] == "visit_tenant" for one in found) == 1
    for one in found[:2]:
        assert (one["actor"], one["actor_kind"]) == (house.operator_key.split("_")[2], "operator")
    theirs = (await tenant.get("/v1/audit")).json()["entries"]
    assert [one["action"] for one in theirs[:2]] == ["set_job_events", "visit_tenant"]
    assert theirs[1]["actor"] == "operator"


async def test_what_is_no_tenant_to_act_for(
    house: House, operator: httpx2.AsyncClient, acme: tuple[str, httpx2.AsyncClient]
) -> None:
    name, _ = acme
    for wrong in ("no-such", "", "é", "x" * 3000):
        headers = [(b"fairway-tenant", wrong.encode())]
        problem(await operator.get("/v1/jobs", headers=headers), 404, "NOT_FOUND")
    said = await operator.post(f"/v1/tenants/{name}/suspend", json={"reason": "Unpaid."})
    assert said.status_code == 200
    for_it = {"fairway-tenant": name}
    assert (await operator.get("/v1/jobs", headers=for_it)).status_code == 200
    reply = await operator.put("/v1/events/settings", json={"job_events": True}, headers=for_it)
    assert "Unpaid." in problem(reply, 403, "TENANT_SUSPENDED")["detail"]
    assert (await operator.delete(f"/v1/tenants/{name}")).status_code == 200
    told = problem(await operator.get("/v1/jobs", headers=for_it), 404, "NOT_FOUND")
    assert "restore" in told["detail"]


async def test_it_means_nothing_with_other_keys(
    house: House, worker: HandWorker, acme: tuple[str, httpx2.AsyncClient]
) -> None:
    name, tenant = acme
    place = await submit(tenant)
    _, strangers = house.new_tenant()
    async with house.caller(strangers) as stranger:
        reply = await stranger.get(place, headers={"fairway-tenant": name})
        problem(reply, 404, "NOT_FOUND")
    for method, path in (("GET", place), ("GET", "/v1/jobs")):
        reply = await worker.client.request(method, path, headers={"fairway-tenant": name})
        problem(reply, 403, "FORBIDDEN")


async def test_a_key_that_only_reads_only_reads(
    house: House, acme: tuple[str, httpx2.AsyncClient]
) -> None:
    name, tenant = acme
    place = await submit(tenant)
    key = house.new_key({"scope": "operator", "permissions": ["read"]})
    async with house.caller(key) as reader:
        for_it = {"fairway-tenant": name}
        assert (await reader.get(place, headers=for_it)).status_code == 200
        problem(await reader.delete(place, headers=for_it), 403, "FORBIDDEN")
    assert (await tenant.get(place)).json()["state"] == "queued"


async def test_by_cookie_too(
    house: House, nobody: httpx2.AsyncClient, acme: tuple[str, httpx2.AsyncClient]
) -> None:
    name, tenant = acme
    place = await submit(tenant)
    said = (await nobody.post("/session", json={"key": house.operator_key})).json()
    for_it = {"fairway-tenant": name}
    assert (await nobody.get(place, headers=for_it)).status_code == 200
    problem(await nobody.delete(place, headers=for_it), 403, "CROSS_SITE_REQUEST")
    for_it["x-fairway-csrf"] = said["csrf"]
    assert (await nobody.delete(place, headers=for_it)).is_success
