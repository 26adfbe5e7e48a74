"""Suspend, resume, delete and restore over HTTP, as operators and the tenant's programs see it."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.test_revocation import within_five_seconds
from tests.api.worker import HandWorker

WHY = "The invoice of March is open."


async def act(operator: httpx2.AsyncClient, name: str, what: str, **body: Any) -> dict[str, Any]:
    reply = await operator.post(f"/v1/tenants/{name}/{what}", json=body or {})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


async def test_a_suspended_tenants_keys_open_nothing_until_it_is_resumed(
    house: House, operator: httpx2.AsyncClient
) -> None:
    name, key = house.new_tenant()
    async with house.caller(key) as caller:
        location = await submit(caller)
        before = (await operator.get(f"/v1/tenants/{name}")).json()
        assert (before["state"], before["running"], before["reason"]) == ("active", None, "")
        held = await act(operator, name, "suspend", reason=WHY)
        assert (held["state"], held["running"], held["reason"]) == ("suspended", "finish", WHY)
        assert held["state_since"] is not None
        told = problem(await caller.post("/v1/jobs", json={"type": "x"}), 403, "TENANT_SUSPENDED")
        assert told["detail"].endswith(WHY)
        problem(await caller.get(location), 403, "TENANT_SUSPENDED")
        again = await act(operator, name, "suspend", reason="Another.", running="cancel")
        assert (again["running"], again["reason"]) == ("cancel", WHY), "the first stays"
        again = await act(operator, name, "suspend", reason="Another.", replace_reason=True)
        assert (again["running"], again["reason"]) == ("cancel", "Another.")
        back = await act(operator, name, "resume")
        assert back | {"state_since": None} == before
        assert (await caller.get(location)).json()["state"] == "queued"


async def test_an_open_stream_and_a_held_request_end_within_five_seconds(
    house: House, operator: httpx2.AsyncClient
) -> None:
    name, key = house.new_tenant()
    async with house.caller(key) as caller, house.caller(key) as other:
        location = await submit(caller)
        waiting = asyncio.create_task(other.get(location, headers={"prefer": "wait=30"}))
        async with caller.stream("GET", f"{location}/events") as stream:
            lines = stream.aiter_lines()
            while not (await anext(lines)).startswith("data"):
                continue
            await act(operator, name, "suspend")
            async with within_five_seconds():
                assert not [line async for line in lines if line], "nothing more is told"
                problem(await waiting, 403, "TENANT_SUSPENDED")


async def test_its_own_worker_hears_why_and_comes_back(
    house: House, operator: httpx2.AsyncClient
) -> None:
    name, key = house.new_tenant()
    workers_key = house.new_key({"scope": "worker", "tenant": name})
    async with house.caller(key) as caller, house.caller(workers_key) as line:
        worker = HandWorker(line)
        await worker.hello(pool="medium")
        await submit(caller, worker.type, pool="medium")
        lease = await worker.lease()
        await act(operator, name, "suspend", reason=WHY)
        problem(await worker.post(reports=[worker.report(lease)]), 403, "TENANT_SUSPENDED")
        await act(operator, name, "resume")
        heir = HandWorker(line)
        heir.type = worker.type
        await heir.hello(pool="medium")
        again = await heir.lease()
        assert (again["job"], again["attempt"], again["delivery"]) == (lease["job"], 1, 2)
        await heir.tell(heir.report(again))
        await heir.say(goodbye=True)


async def test_a_deleted_tenant_is_kept_by_name_and_restored(
    house: House, operator: httpx2.AsyncClient
) -> None:
    name, key = house.new_tenant()
    path = f"/v1/tenants/{name}"
    async with house.caller(key) as caller:
        location = await submit(caller)
        told = problem(await operator.delete(path), 409, "CONFLICT")
        assert "suspend=true" in told["detail"]
        problem(await operator.delete(f"{path}?suspend=perhaps"), 422, "INVALID_REQUEST")
        gone = (await operator.delete(f"{path}?suspend=true")).json()
        assert gone["state"] == "deleted"
        assert gone["kept_until"] > gone["state_since"]
        problem(await caller.get(location), 401, "UNAUTHENTICATED")
        taken = problem(await operator.post("/v1/tenants", json={"name": name}), 409, "CONFLICT")
        assert "can be restored" in taken["detail"]
        for wanted in ({"tenant": name}, {"scope": "worker", "tenants": [name]}):
            problem(await operator.post("/v1/keys", json=wanted), 409, "CONFLICT")
        problem(await operator.patch(path, json={"weight": 3}), 409, "CONFLICT")
        problem(await operator.post(f"{path}/resume"), 409, "CONFLICT")
        assert (await act(operator, name, "restore"))["state"] == "suspended"
        assert (await act(operator, name, "resume"))["state"] == "active"
        problem(await caller.get(location), 401, "UNAUTHENTICATED")
    async with house.caller(house.new_key({"tenant": name})) as caller:
        assert (await caller.get(location)).status_code == 200, "its history is there"


async def test_tenants_are_found_by_name_state_and_tier(
    house: House, operator: httpx2.AsyncClient
) -> None:
    stem = f"q{secrets.token_hex(5)}"
    for end, tier in (("a", "pro"), ("b", "pro"), ("c", "free"), ("d", "pro")):
        body = {"name": f"x-{stem}-{end}", "tier": tier}
        assert (await operator.post("/v1/tenants", json=body)).status_code == 201
    await act(operator, f"x-{stem}-b", "suspend")
    await operator.delete(f"/v1/tenants/x-{stem}-d?suspend=true")

    async def ends(**query: str) -> str:
        reply = await operator.get("/v1/tenants", params={"q": stem.upper(), **query})
        assert reply.status_code == 200, reply.text
        return "".join(one["name"][-1] for one in reply.json()["tenants"])

    assert await ends() == "abc"
    assert await ends(tier="pro") == "ab"
    assert await ends(state="suspended") == "b"
    assert await ends(state="deleted,active") == "acd"
    first = await operator.get("/v1/tenants", params={"q": stem, "limit": 2})
    assert await ends(cursor=first.json()["next_cursor"], limit="2") == "c"
    assert await ends(q="%") == "", "no pattern, but letters"
    problem(await operator.get("/v1/tenants?state=asleep"), 422, "INVALID_REQUEST")
    problem(await operator.get("/v1/tenants?q=%00"), 422, "INVALID_REQUEST")


async def test_a_tenant_and_an_operator_see_what_holds_its_jobs(
    house: House, operator: httpx2.AsyncClient
) -> None:
    name, key = house.new_tenant(depth_limit=1)
    path = f"/v1/tenants/{name}/limits"
    async with house.caller(key) as caller:
        limits = (await caller.get("/v1/limits")).json()
        assert (limits["held"], limits["reached"]) == ([], [])
        await caller.post("/v1/pauses", json={"type": "mail"})
        await submit(caller)
        limits = (await caller.get("/v1/limits")).json()
        assert [(one["reason"], one["type"]) for one in limits["held"]] == [("paused", "mail")]
        assert limits["reached"] == ["depth_limit"]
        told = (await operator.get(path)).json()
        assert told | {"jobs_left": 0} == limits | {"jobs_left": 0}, "which fills again meanwhile"
    await act(operator, name, "suspend")
    held = (await operator.get(path)).json()["held"]
    assert {one["reason"] for one in held} == {"paused", "suspended"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"running": "stop"}, "/running"),
        ({"reason": "x" * 501}, "/reason"),
        ({"reason": "a\nb"}, "/reason"),
        ({"reason": "a\x00b"}, "/reason"),
        ({"why": "x"}, "/why"),
    ],
)
async def test_a_wrong_suspension_changes_nothing(
    house: House, operator: httpx2.AsyncClient, body: dict[str, Any], pointer: str
) -> None:
    name, _ = house.new_tenant()
    reply = await operator.post(f"/v1/tenants/{name}/suspend", json=body)
    problem(reply, 422, "INVALID_REQUEST", pointer)
    assert (await operator.get(f"/v1/tenants/{name}")).json()["state"] == "active"
