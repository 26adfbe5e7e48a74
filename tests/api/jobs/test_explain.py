"""`GET /v1/jobs/{id}/explain`: every reason that can be reached, at the owner and elsewhere."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import httpx2
import pytest
from tests.api.house import House, open_house, problem
from tests.api.worker import HandWorker

from fairway.core.ids import ShardId, make_job_id


async def explained(caller: httpx2.AsyncClient, job: str) -> dict[str, Any]:
    reply = await caller.get(f"/v1/jobs/{job}/explain")
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    assert found["id"] == job
    assert found["detail"].endswith(".")
    if found["start"] is not None:
        start = [datetime.fromisoformat(moment) for moment in found["start"].values()]
        assert start == sorted(start)
    return found


async def post(caller: httpx2.AsyncClient, type_: str, **more: Any) -> str:
    reply = await caller.post("/v1/jobs", json={"type": type_, **more})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


async def test_no_worker(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    jobs = [await post(tenant, worker.type) for _ in range(3)]
    found = await explained(tenant, jobs[2])
    assert (found["state"], found["reason"], found["start"]) == ("queued", "no_worker", None)
    assert (found["position"], found["position_is_exact"]) == (3, True)


async def test_head_is_answered_as_allow_says(tenant: httpx2.AsyncClient) -> None:
    path = f"/v1/jobs/{await post(tenant, 'nobody.runs.this')}/explain"
    head = await tenant.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert "HEAD" in (await tenant.put(path)).headers["allow"]


async def test_running_and_finished(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    job = await post(tenant, worker.type)
    await worker.hello()
    lease = await worker.lease()
    found = await explained(tenant, job)
    assert (found["reason"], found["position"], found["running"]) == ("running", None, 1)
    await worker.tell(worker.report(lease))
    found = await explained(tenant, job)
    assert (found["state"], found["reason"], found["start"]) == ("succeeded", "finished", None)


async def test_a_full_pool(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello(slots=1)
    first = await post(tenant, worker.type)
    assert (await worker.lease())["job"] == first
    second, third = await post(tenant, worker.type), await post(tenant, worker.type)
    near, far = await explained(tenant, second), await explained(tenant, third)
    assert {near["reason"], far["reason"]} <= {"slot", "fair_share"}
    assert (near["position"], far["position"]) == (1, 2)
    assert near["start"]["likely_at"] <= far["start"]["likely_at"]
    assert near["fair_slots"] > 0


async def test_free_slots_of_workers_of_other_types_do_not_count(
    tenant: httpx2.AsyncClient, worker: HandWorker, house: House
) -> None:
    async with house.caller(house.new_key({"scope": "worker"})) as client:
        other = HandWorker(client)  # for a type of its own
        await other.hello(slots=9)
        await worker.hello(slots=1)
        first = await post(tenant, worker.type)
        assert (await worker.lease())["job"] == first
        found = await explained(tenant, await post(tenant, worker.type))
        assert found["reason"] in {"slot", "fair_share"}
        await other.leave()


async def test_capped(house: House, worker: HandWorker) -> None:
    _, key = house.new_tenant(cap=1)
    async with house.caller(key) as caller:
        await worker.hello(slots=4)
        await post(caller, worker.type)
        await worker.lease()
        found = await explained(caller, await post(caller, worker.type))
        assert (found["reason"], found["running"]) == ("capped", 1)
        assert found["fair_slots"] <= 1
        assert found["start"] is not None


async def test_paused(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello()
    await tenant.post("/v1/pauses", json={"type": worker.type})
    found = await explained(tenant, await post(tenant, worker.type))
    assert (found["reason"], found["start"]) == ("paused", None)
    await tenant.delete("/v1/pauses", params={"type": worker.type})


async def test_not_due(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello()
    job = await post(tenant, worker.type, delay_seconds=600)
    found = await explained(tenant, job)
    assert (found["state"], found["reason"], found["position"]) == ("scheduled", "not_due", None)
    due_at = (await tenant.get(f"/v1/jobs/{job}")).json()["execute_at"]
    likely, due = (datetime.fromisoformat(m) for m in (found["start"]["likely_at"], due_at))
    assert abs((likely - due).total_seconds()) < 5


async def test_what_was_received_of_late(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    first = await post(tenant, worker.type)
    lease = await worker.lease()

    async def mark(platform: Any) -> None:
        platform.fair_share_loop._pass_due_us = 0
        await platform.fair_share_loop.run_once(platform.clock.now_us())

    house.inside(mark)
    await asyncio.sleep(0.3)
    share = (await explained(tenant, first))["share"]
    assert share["window_seconds"] >= 0.3
    assert share["received_slot_seconds"] == pytest.approx(share["window_seconds"], rel=0.01)
    assert share["entitled_slot_seconds"] >= 0
    await worker.tell(worker.report(lease))


async def test_only_its_tenant_may_ask(
    tenant: httpx2.AsyncClient,
    stranger: httpx2.AsyncClient,
    operator: httpx2.AsyncClient,
    nobody: httpx2.AsyncClient,
) -> None:
    path = f"/v1/jobs/{await post(tenant, 'explained')}/explain"
    problem(await stranger.get(path), 404, "NOT_FOUND")
    problem(await operator.get(path), 403, "FORBIDDEN")
    problem(await nobody.get(path), 401, "UNAUTHENTICATED")


@pytest.mark.parametrize("job", ["nonsense", "%00", "a/b", "", make_job_id(ShardId(0), 1, 1, 1)])
async def test_a_job_that_is_not_there(tenant: httpx2.AsyncClient, job: str) -> None:
    problem(await tenant.get(f"/v1/jobs/{job}/explain"), 404, "NOT_FOUND")


async def test_an_id_of_no_shard_of_ours_is_not_found(tenant: httpx2.AsyncClient) -> None:
    job = make_job_id(ShardId(3000), 1_700_000_000_000, 1, 1)
    problem(await tenant.get(f"/v1/jobs/{job}/explain"), 404, "NOT_FOUND")


async def test_asked_at_a_server_that_does_not_own_the_shard(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    job = await post(tenant, worker.type)
    with open_house(house.dsn) as other:
        async with other.caller(tenant.headers["authorization"].split()[1]) as far:
            found = await explained(far, job)
            assert found == await explained(tenant, job)
            assert found["reason"] == "no_worker"
            unknown = make_job_id(ShardId(0), 1, 1, 1)
            problem(await far.get(f"/v1/jobs/{unknown}/explain"), 404, "NOT_FOUND")


async def test_a_limit_of_ones_own(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    limits = [{"key": "customer-1", "at_most": 1}]
    jobs = [await post(tenant, worker.type, limits=limits) for _ in range(2)]
    await worker.hello(slots=4)
    assert (await worker.lease())["job"] == jobs[0]
    found = await explained(tenant, jobs[1])
    assert (found["reason"], found["start"]) == ("key_limit", None)
    assert "'customer-1'" in found["detail"]
