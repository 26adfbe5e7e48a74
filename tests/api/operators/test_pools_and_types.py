"""Pools and job types as data: added while all runs, and what they ask of jobs and workers."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
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
    problem(await tenant.delete("/v1/job-types/x"), 403, "FORBIDDEN")


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


# -- types that are taken back -----------------------------------------------------------------


@pytest.fixture
async def by_hand(operator: httpx2.AsyncClient) -> str:
    name = f"by.hand.{secrets.token_hex(4)}"
    settings = {"attempts": 7, "schema": {"required": ["to"]}}
    reply = await operator.put(f"/v1/job-types/{name}", json=settings)
    assert reply.status_code == 200, reply.text
    return name


async def test_a_type_that_was_put_by_hand_is_deleted(
    operator: httpx2.AsyncClient, by_hand: str
) -> None:
    path = f"/v1/job-types/{by_hand}"
    deleted = await operator.delete(path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    problem(await operator.get(path), 404, "NOT_FOUND")
    assert by_hand not in (await operator.get("/v1/job-types")).text
    problem(await operator.delete(path), 404, "NOT_FOUND")
    entries = (await operator.get("/v1/audit")).json()["entries"]
    assert [one["action"] for one in entries if one["subject"] == by_hand] == [
        "delete_job_type", "put_job_type",
    ]  # fmt: skip
    again = (await operator.put(path, json={})).json()
    assert (again["registered"], again["attempts"], again["schema"]) == (True, None, None)


async def test_jobs_of_a_deleted_type_are_found_and_run(
    operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient, worker: HandWorker, by_hand: str
) -> None:
    location = await submit(tenant, by_hand, payload={"to": "ada"})
    await operator.delete(f"/v1/job-types/{by_hand}")
    (found,) = (await tenant.get("/v1/jobs", params={"type": by_hand})).json()["jobs"]
    assert (f"/v1/jobs/{found['id']}", found["type"]) == (location, by_hand)
    await submit(tenant, by_hand)  # whom no schema keeps out any more
    worker.type = by_hand
    await worker.hello(slots=2)
    for _ in range(2):
        assert (await worker.run())["type"] == by_hand
    assert (await tenant.get(location)).json()["state"] == "succeeded"


async def test_a_worker_that_is_there_registers_a_deleted_type_anew(
    operator: httpx2.AsyncClient, worker: HandWorker, by_hand: str
) -> None:
    said = {"types": [{"name": by_hand, "version": "3"}], "slots": {"short": 1}}
    await worker.say(hello=said, running=[])
    await operator.delete(f"/v1/job-types/{by_hand}")
    assert (await worker.say())["resync"] is True
    await worker.say(hello=said, running=[])
    told = (await operator.get(f"/v1/job-types/{by_hand}")).json()
    assert (told["registered"], told["version"], told["attempts"]) == (True, "3", None)
    problem(await operator.delete(f"/v1/job-types/{by_hand}"), 409, "CONFLICT")


async def test_what_refers_to_a_deleted_type_keeps_it_in_the_list(
    operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient, by_hand: str
) -> None:
    daily = {"type": by_hand, "cron": "0 0 * * *", "payload": {"to": "ada"}}
    put = await tenant.put(f"/v1/schedules/{by_hand}", json=daily)
    assert put.status_code == 201, put.text
    await operator.delete(f"/v1/job-types/{by_hand}")
    told = (await operator.get(f"/v1/job-types/{by_hand}")).json()
    assert (told["registered"], told["schema"]) == (False, None)
    problem(await operator.delete(f"/v1/job-types/{by_hand}"), 409, "CONFLICT")


async def test_a_pause_of_a_deleted_type_brings_it_back(
    operator: httpx2.AsyncClient, by_hand: str
) -> None:
    await operator.delete(f"/v1/job-types/{by_hand}")
    paused = await operator.post("/v1/pauses", json={"type": by_hand})
    assert paused.status_code == 201, paused.text
    told = await operator.get(f"/v1/job-types/{by_hand}")
    assert (told.status_code, told.json()["registered"]) == (200, False)
    await operator.delete("/v1/pauses", params={"type": by_hand})


@pytest.mark.parametrize("name", ["never.seen", "%00", "a%2Fb", "x" * 200])
async def test_what_is_not_there_cannot_be_deleted(operator: httpx2.AsyncClient, name: str) -> None:
    problem(await operator.delete(f"/v1/job-types/{name}"), 404, "NOT_FOUND")


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
