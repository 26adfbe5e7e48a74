"""Replay and discard over HTTP: one by one, and many by a filter that was counted first."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from tests.api.house import problem
from tests.api.jobs.test_dead_letters import died, ids
from tests.api.worker import HandWorker


async def over(tenant: httpx2.AsyncClient, location: str) -> dict[str, Any]:
    for _ in range(200):
        action: dict[str, Any] = (await tenant.get(location)).json()
        if action["state"] != "running":
            return action
        await asyncio.sleep(0.05)
    raise AssertionError(action)


async def test_one_is_replayed_with_an_edited_payload(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    (job,) = await died(tenant, worker)
    problem(await stranger.post(f"/v1/dead-letters/{job}/replay", json={}), 404, "NOT_FOUND")
    bad = {"payload": [1]}
    problem(await tenant.post(f"/v1/dead-letters/{job}/replay", json=bad), 422, "INVALID_REQUEST")
    reply = await tenant.post(f"/v1/dead-letters/{job}/replay", json={"payload": {"n": 8}})
    assert (reply.status_code, reply.json()["attempts"]) == (202, 0)
    lease = await worker.run(result=1)
    assert (lease["job"], lease["payload"], lease["attempt"]) == (job, {"n": 8}, 1)
    assert await ids(tenant) == []
    problem(await tenant.get(f"/v1/dead-letters/{job}"), 404, "NOT_FOUND")


async def test_one_is_discarded(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    (job,) = await died(tenant, worker)
    assert (await tenant.delete(f"/v1/dead-letters/{job}")).status_code == 204
    assert await ids(tenant) == []
    assert (await tenant.get(f"/v1/jobs/{job}")).json()["state"] == "dead"
    problem(await tenant.delete(f"/v1/dead-letters/{job}"), 404, "NOT_FOUND")


async def test_many_are_counted_then_replayed(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    jobs = await died(tenant, worker, 4)
    query = f"?type={worker.type}"
    dry = await tenant.post(f"/v1/dead-letters/replay{query}", json={"dry_run": True})
    assert dry.json() == {"matched": 4, "is_exact": True}
    assert await ids(tenant) == jobs
    reply = await tenant.post(f"/v1/dead-letters/replay{query}", json={"per_second": 1000})
    assert reply.status_code == 202
    location = reply.headers["location"]
    action = await over(tenant, location)
    assert (action["kind"], action["state"], action["matched"], action["done"]) == (
        "replay", "done", 4, 4,
    )  # fmt: skip
    problem(await stranger.get(location), 404, "NOT_FOUND")
    problem(await tenant.delete(location), 409, "CONFLICT")
    listed = (await tenant.get("/v1/dead-letters/actions")).json()["actions"]
    assert [one["id"] for one in listed] == [action["id"]]
    ran = [(await worker.run())["job"] for _ in jobs]
    assert sorted(ran) == jobs


async def test_many_are_discarded(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await died(tenant, worker, 3)
    reply = await tenant.post("/v1/dead-letters/discard", json={})
    assert (await over(tenant, reply.headers["location"]))["done"] == 3
    assert await ids(tenant) == []


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("replay", {"per_second": 0}, "/per_second"),
        ("replay", {"speed": 1}, "/speed"),
        ("replay", {"payload": {"a": {"\x00": 1}}}, "/payload/a"),
        ("discard", {"payload": {}}, "/payload"),
    ],
)
async def test_bad_wishes_are_named(
    tenant: httpx2.AsyncClient, path: str, body: dict[str, Any], pointer: str
) -> None:
    reply = await tenant.post(f"/v1/dead-letters/{path}", json=body)
    problem(reply, 422, "INVALID_REQUEST", pointer)
