"""Acts on many jobs over HTTP, counted first; and on single dead letters."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import httpx2
import pytest
from tests.api.house import problem
from tests.api.jobs.test_dead_letters import died, ids
from tests.api.worker import HandWorker

from fairway.services.jobs.bulk_actions import RUNNING_MAX


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


async def begin(tenant: httpx2.AsyncClient, act: str, **wanted: Any) -> str:
    """Where its progress is."""
    reply = await tenant.post("/v1/bulk-actions", json={"act": act, **wanted})
    assert reply.status_code == 202, reply.text
    return reply.headers["location"]


async def batch(tenant: httpx2.AsyncClient, count: int, **job: Any) -> None:
    reply = await tenant.post("/v1/jobs/batch", json={"jobs": [job] * count})
    assert reply.json()["accepted"] == count


async def states(tenant: httpx2.AsyncClient, kind: str) -> Counter[str]:
    jobs = (await tenant.get("/v1/jobs", params={"type": kind, "limit": "200"})).json()["jobs"]
    return Counter(job["state"] for job in jobs)


async def test_many_are_counted_then_replayed(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    jobs = await died(tenant, worker, 4)
    wanted = {"act": "replay", "filter": {"type": worker.type}}
    dry = await tenant.post("/v1/bulk-actions", json=wanted | {"dry_run": True})
    assert (dry.status_code, dry.json()) == (200, {"matched": 4, "is_exact": True})
    assert await ids(tenant) == jobs
    location = await begin(tenant, "replay", filter={"type": worker.type}, per_second=1000)
    action = await over(tenant, location)
    counts = {n: action[n] for n in ("matched", "done", "asked_to_stop", "skipped", "failed")}
    assert counts == {"matched": 4, "done": 4, "asked_to_stop": 0, "skipped": 0, "failed": 0}
    assert (action["act"], action["state"]) == ("replay", "done")
    assert action["filter"]["type"] == worker.type
    problem(await stranger.get(location), 404, "NOT_FOUND")
    problem(await stranger.post(f"{location}/abort"), 404, "NOT_FOUND")
    problem(await tenant.post(f"{location}/abort"), 409, "CONFLICT")
    listed = (await tenant.get("/v1/bulk-actions")).json()["actions"]
    assert [one["id"] for one in listed] == [action["id"]]
    ran = [(await worker.run())["job"] for _ in jobs]
    assert sorted(ran) == jobs


async def test_many_are_discarded(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await died(tenant, worker, 3)
    assert (await over(tenant, await begin(tenant, "discard", all=True)))["done"] == 3
    assert await ids(tenant) == []


async def test_what_matches_is_cancelled_and_nothing_else(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await batch(tenant, 20, type=worker.type)
    await batch(tenant, 30, type=worker.type, pool="medium")
    await batch(stranger, 5, type=worker.type)
    which = {"type": worker.type, "pool": "medium", "state": "queued"}
    dry = await tenant.post(
        "/v1/bulk-actions", json={"act": "cancel", "filter": which, "dry_run": True}
    )
    assert dry.json()["matched"] == 30
    assert await states(tenant, worker.type) == {"queued": 50}
    done = await over(tenant, await begin(tenant, "cancel", filter=which))
    assert (done["matched"], done["done"], done["skipped"]) == (30, 30, 0)
    assert done["filter"] | which == done["filter"]
    assert await states(tenant, worker.type) == {"queued": 20, "cancelled": 30}
    assert await states(stranger, worker.type) == {"queued": 5}
    await worker.hello(pool="medium")
    assert "leases" not in await worker.say(wait_ms=100)


async def test_more_than_a_batch_is_cancelled(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await batch(tenant, 1100, type=worker.type)
    location = await begin(tenant, "cancel", filter={"type": worker.type})
    assert (await over(tenant, location))["done"] == 1100
    assert await states(tenant, worker.type) == {"cancelled": 200}, "a page of them"


async def test_what_runs_is_asked_to_stop(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello()
    await batch(tenant, 2, type=worker.type)
    lease = await worker.lease()
    done = await over(tenant, await begin(tenant, "cancel", filter={"type": worker.type}))
    assert (done["matched"], done["done"], done["asked_to_stop"]) == (2, 1, 1)
    assert (await worker.say())["cancel"] == [lease["job"]]


async def test_all_jobs_are_meant_only_when_it_is_said(tenant: httpx2.AsyncClient) -> None:
    await batch(tenant, 2, type="a.kind")
    for act in ("cancel", "replay", "discard"):
        reply = await tenant.post("/v1/bulk-actions", json={"act": act})
        problem(reply, 422, "INVALID_REQUEST", "/all")
    assert await states(tenant, "a.kind") == {"queued": 2}
    assert (await over(tenant, await begin(tenant, "cancel", all=True)))["done"] == 2


async def test_a_tenant_has_so_many_under_way(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    """A dead letter a second, so that none of them ends; each can be stopped."""
    await died(tenant, worker, 40)
    slow = {"filter": {"type": worker.type}, "per_second": 1}
    under_way = [await begin(tenant, "replay", **slow) for _ in range(RUNNING_MAX)]
    refused = await tenant.post("/v1/bulk-actions", json={"act": "replay", **slow})
    problem(refused, 409, "CONFLICT")
    for location in under_way:
        aborted = (await tenant.post(f"{location}/abort")).json()
        assert aborted["state"] == "aborted"
        assert aborted["done"] < 40
    await tenant.post("/v1/bulk-actions", json={"act": "discard", "all": True})


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"act": "replay", "per_second": 0}, "/per_second"),
        ({"act": "replay", "speed": 1}, "/speed"),
        ({"act": "explode"}, "/act"),
        ({}, "/act"),
        ({"act": "replay", "payload": {"a": {"\x00": 1}}}, "/payload/a"),
        ({"act": "discard", "payload": {}}, "/payload"),
        ({"act": "cancel", "filter": {"fingerprint": "0" * 16}}, "/filter/fingerprint"),
        ({"act": "cancel", "filter": {"state": "dead"}}, "/filter/state"),
        ({"act": "replay", "filter": {"state": "queued"}}, "/filter/state"),
        ({"act": "cancel", "filter": {"colour": "red"}}, "/filter/colour"),
    ],
)
async def test_bad_wishes_are_named(
    tenant: httpx2.AsyncClient, body: dict[str, Any], pointer: str
) -> None:
    reply = await tenant.post("/v1/bulk-actions", json={"all": True, **body})
    problem(reply, 422, "INVALID_REQUEST", pointer)
