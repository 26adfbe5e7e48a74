"""Pools and job types as data: added while all runs, and what they ask of jobs and workers."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.test_jobs import submit
from tests.api.worker import HandWorker

GPU: dict[str, Any] = {"slots": 1, "lease_seconds": 60, "attempts": 4, "labels": ["gpu", "a100"]}


@pytest.fixture
async def gpu(operator: httpx2.AsyncClient) -> str:
    name = f"gpu-{secrets.token_hex(4)}"
    reply = await operator.put(f"/v1/pools/{name}", json=GPU)
    assert reply.status_code == 200, reply.text
    return name


async def hello(worker: HandWorker, pool: str, **more: Any) -> dict[str, Any]:
    said = {"types": [{"name": worker.type}], "slots": {pool: 1}} | more
    return await worker.say(hello=said, running=[])


# -- pools -------------------------------------------------------------------------------------


async def test_the_built_in_pools_are_the_table(tenant: httpx2.AsyncClient) -> None:
    pools = {pool["name"]: pool for pool in (await tenant.get("/v1/pools")).json()["pools"]}
    columns = (
        "slots",
        "lease_mode",
        "lease_seconds",
        "attempts",
        "pickup_target_seconds",
        "checkpoint",
    )
    told = {name: tuple(pools[name][column] for column in columns) for name in list(pools)[:3]}
    assert told == {
        "short": (50, "lazy", 10, 5, 0.5, "none"),
        "medium": (8, "durable", 300, 3, 5, "optional"),
        "long": (2, "durable", 90, 2, 60, "expected"),
    }


async def test_a_pool_is_added_and_serves_at_once(
    tenant: httpx2.AsyncClient, worker: HandWorker, gpu: str
) -> None:
    await hello(worker, gpu, labels=["gpu", "a100", "x"])
    location = await submit(tenant, worker.type, pool=gpu)
    lease = await worker.run()
    assert lease["pool"] == gpu
    assert (await tenant.get(location)).json()["pool"] == gpu


async def test_slots_of_a_worker_without_the_labels_do_not_count(
    tenant: httpx2.AsyncClient, worker: HandWorker, gpu: str
) -> None:
    await hello(worker, gpu, labels=["gpu"])
    location = await submit(tenant, worker.type, pool=gpu)
    assert "leases" not in await worker.say(wait_ms=100)
    why = (await tenant.get(f"{location}/explain")).json()
    assert why["reason"] == "labels"
    assert "a100" in why["detail"]
    await hello(worker, gpu, labels=["gpu", "a100"])
    await worker.run()
    assert (await tenant.get(location)).json()["state"] == "succeeded"


async def test_what_a_pool_cannot_be(operator: httpx2.AsyncClient) -> None:
    problem(await operator.put("/v1/pools/short", json={}), 422, "INVALID_REQUEST", "name")
    problem(await operator.put("/v1/pools/No", json={}), 422, "INVALID_REQUEST")
    body = {"lease_mode": "lazy", "checkpoint": "expected"}
    problem(await operator.put("/v1/pools/odd", json=body), 422, "INVALID_REQUEST", "/checkpoint")


async def test_only_operators_change_pools_and_types(tenant: httpx2.AsyncClient) -> None:
    problem(await tenant.put("/v1/pools/gpu", json={}), 403, "FORBIDDEN")
    problem(await tenant.put("/v1/job-types/x", json={}), 403, "FORBIDDEN")
    problem(await tenant.get("/v1/audit"), 403, "FORBIDDEN")


# -- job types ---------------------------------------------------------------------------------


async def test_a_worker_registers_its_types(
    operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    said = {"name": worker.type, "pool": "medium", "timeout_ms": 5000, "version": "3"}
    await worker.say(hello={"types": [said], "slots": {"medium": 1}}, running=[])
    told = (await operator.get(f"/v1/job-types/{worker.type}")).json()
    assert (told["registered"], told["pool"], told["timeout_seconds"]) == (True, "medium", 5.0)
    await submit(tenant, worker.type)  # says no pool: its type's
    assert (await worker.run())["pool"] == "medium"


async def test_a_tenants_own_worker_does_not_speak_for_everybody(
    house: House, operator: httpx2.AsyncClient
) -> None:
    name, _ = house.new_tenant()
    async with house.caller(house.new_key({"scope": "worker", "tenant": name})) as client:
        worker = HandWorker(client)
        said = {"name": worker.type, "pool": "long", "schema": {"required": ["x"]}}
        await worker.say(hello={"types": [said], "slots": {"long": 1}}, running=[])
        told = (await operator.get(f"/v1/job-types/{worker.type}")).json()
        assert (told["registered"], told["pool"], told["schema"]) == (False, None, None)
        await worker.leave()


async def test_an_unknown_type_parks_and_runs_when_somebody_comes(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type)
    why = (await tenant.get(f"{location}/explain")).json()
    assert why["reason"] == "no_worker"
    await worker.hello()
    await worker.run()
    assert (await tenant.get(location)).json()["state"] == "succeeded"


async def test_payloads_that_do_not_fit_are_refused_at_the_edge(
    operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient
) -> None:
    name = f"schema.{secrets.token_hex(4)}"
    schema = {"properties": {"to": {"type": "string", "pattern": "^.+@.+$"}}, "required": ["to"]}
    await operator.put(f"/v1/job-types/{name}", json={"schema": schema})
    good, bad = {"to": "ada@example.com"}, {"to": "nobody"}
    refused = await tenant.post("/v1/jobs", json={"type": name, "payload": bad})
    problem(refused, 422, "PAYLOAD_DOES_NOT_FIT", "/payload/to")
    problem(
        await tenant.post("/v1/jobs", json={"type": name}), 422, "PAYLOAD_DOES_NOT_FIT", "/payload"
    )
    jobs = [{"type": name, "payload": payload} for payload in (good, bad, good)]
    items = (await tenant.post("/v1/jobs/batch", json={"jobs": jobs})).json()["items"]
    assert [item["status"] for item in items] == [202, 422, 202]
    assert items[1]["problem"]["code"] == "PAYLOAD_DOES_NOT_FIT"


@pytest.mark.parametrize(
    "schema",
    [{"type": "nothing"}, {"$ref": "http://127.0.0.1:9/x"}, {"pattern": "(?=a)"}],
    ids=["no schema", "elsewhere", "backtracking"],
)
async def test_a_schema_that_could_do_harm_is_refused(
    operator: httpx2.AsyncClient, schema: dict[str, Any]
) -> None:
    reply = await operator.put("/v1/job-types/odd", json={"schema": schema})
    problem(reply, 422, "INVALID_REQUEST", "/schema")


async def test_a_warm_worker_is_preferred(
    house: House, operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await operator.put(f"/v1/job-types/{worker.type}", json={"warm_key": "model-7"})
    async with house.caller(house.new_key({"scope": "worker"})) as client:
        cold = HandWorker(client)
        cold.type = worker.type
        await cold.hello(slots=8)
        await hello(worker, "short", slots={"short": 8}, warm_keys=["model-7"])
        for _ in range(5):
            waits = [asyncio.create_task(one.say(wait_ms=5000)) for one in (cold, worker)]
            await asyncio.sleep(0.05)
            await submit(tenant, worker.type)
            warm = await waits[1]
            assert len(warm["leases"]) == 1
            await worker.tell(worker.report(worker.inbox.pop()))
            waits[0].cancel()
        await cold.leave()


async def test_changes_are_audited(operator: httpx2.AsyncClient, gpu: str) -> None:
    entries = (await operator.get("/v1/audit")).json()["entries"]
    mine = [entry for entry in entries if entry["subject"] == gpu]
    assert [(entry["action"], bool(entry["actor"])) for entry in mine] == [("put_pool", True)]
