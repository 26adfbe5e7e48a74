"""Pauses over HTTP: a tenant's own, an operator's for anybody, and none without end."""

from __future__ import annotations

from itertools import product

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.operators.test_tenants import NEVER
from tests.api.worker import HandWorker

from fairway.services.restraints.pauses import TENANT_PAUSES_MAX


async def test_a_tenant_pauses_and_resumes_its_own(
    house: House, operator: httpx2.AsyncClient, worker: HandWorker
) -> None:
    who, key = house.new_tenant()
    async with house.caller(key) as caller:
        await caller.post("/v1/jobs", json={"type": worker.type, "pool": "long"})  # it is known
        made = await caller.post("/v1/pauses", json={"type": worker.type})
        assert (made.status_code, made.json()) == (201, {"tenant": who, "type": worker.type})
        assert (await caller.get("/v1/pauses")).json() == {"pauses": [made.json()]}
        assert made.json() in (await operator.get("/v1/pauses")).json()["pauses"]
        job = (await caller.post("/v1/jobs", json={"type": worker.type})).json()["id"]
        await worker.hello()
        await worker.say(wait_ms=200)
        assert worker.inbox == []
        gone = await caller.delete("/v1/pauses", params={"type": worker.type})
        assert gone.json() == made.json()
        assert (await worker.run())["job"] == job
        reply = await caller.delete("/v1/pauses", params={"type": worker.type})
        problem(reply, 404, "NOT_FOUND")


async def test_pauses_of_one_tenant_are_no_business_of_another(
    house: House, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    who, key = house.new_tenant()
    async with house.caller(key) as caller:
        await caller.post("/v1/pauses", json={})  # names nothing: all of its own
        assert (await stranger.get("/v1/pauses")).json() == {"pauses": []}
        problem(await stranger.post("/v1/pauses", json={"tenant": who}), 403, "FORBIDDEN")
        reply = await stranger.delete("/v1/pauses", params={"tenant": who})
        problem(reply, 403, "FORBIDDEN")
        problem(await stranger.delete("/v1/pauses"), 404, "NOT_FOUND")
        job = (await stranger.post("/v1/jobs", json={"type": worker.type})).json()["id"]
        await caller.post("/v1/jobs", json={"type": worker.type})
        await worker.hello(slots=2)
        assert (await worker.run())["job"] == job
        assert (await caller.delete("/v1/pauses")).json() == {"tenant": who}


async def test_a_tenant_sees_what_an_operator_pauses_for_everybody(
    house: House, operator: httpx2.AsyncClient
) -> None:
    """Else its jobs wait, `explain` says paused, and nothing says by what."""
    (who, key), (other, _) = house.new_tenant(), house.new_tenant()
    async with house.caller(key) as caller:
        said = [{"tenant": who, "pool": "long"}, {"type": "paused.here"}, {"tenant": other}]
        try:
            for one in said:
                assert (await operator.post("/v1/pauses", json=one)).status_code == 201
            seen = (await caller.get("/v1/pauses")).json()["pauses"]
        finally:
            for one in said:
                await operator.delete("/v1/pauses", params=one)
        assert seen == said[:2]
        assert (await caller.get("/v1/pauses")).json() == {"pauses": []}


async def test_a_tenant_cannot_pause_without_end(
    house: House, operator: httpx2.AsyncClient
) -> None:
    who, key = house.new_tenant()
    async with house.caller(key) as caller:
        for pool, job_type in product(("short", "medium"), range(TENANT_PAUSES_MAX // 2)):
            said = {"tenant": who, "pool": pool, "type": f"paused.{job_type}"}
            assert (await operator.post("/v1/pauses", json=said)).status_code == 201
        problem(await caller.post("/v1/pauses", json={}), 429, "TOO_MANY_PAUSES")
        assert (await caller.post("/v1/pauses", json=said)).status_code == 201, "it is there"
        assert (await operator.post("/v1/pauses", json={"tenant": who})).status_code == 201


async def test_a_pause_that_is_refused_and_a_resume_in_vain_make_no_name(
    house: House, operator: httpx2.AsyncClient
) -> None:
    who, key = house.new_tenant()
    async with house.caller(key) as caller:
        for who_asks in (caller, operator):
            reply = await who_asks.delete("/v1/pauses", params={"type": "never.made"})
            assert problem(reply, 404, "NOT_FOUND")["detail"] == "This was not paused."
        for job_type in range(TENANT_PAUSES_MAX):
            said = {"tenant": who, "pool": "short", "type": f"full.{job_type}"}
            assert (await operator.post("/v1/pauses", json=said)).status_code == 201
        reply = await caller.post("/v1/pauses", json={"type": "never.made"})
        problem(reply, 429, "TOO_MANY_PAUSES")
    house.inside(lambda platform: platform.directory.names.load())
    assert "never.made" not in house.platform.directory.type_ids


async def test_a_type_that_nobody_knows_is_paused_and_told(
    house: House, operator: httpx2.AsyncClient
) -> None:
    """It may come later, or be misspelt: who pauses it knows which."""
    async with house.caller(house.new_tenant()[1]) as caller:
        for who_asks, name in ((caller, "soon.a"), (operator, "soon.b")):
            made = await who_asks.post("/v1/pauses", json={"type": name, "pool": "long"})
            assert (made.status_code, made.json()["type_is_known"]) == (201, False)
            again = await who_asks.post("/v1/pauses", json={"type": name, "pool": "long"})
            assert "type_is_known" not in again.json()
            assert {"type": name, "pool": "long"}.items() <= again.json().items()
            query = {"type": name, "pool": "long"}
            assert (await who_asks.delete("/v1/pauses", params=query)).status_code == 200
        assert "type_is_known" not in (await caller.post("/v1/pauses", json={})).json()


async def test_a_pause_twice_is_a_pause(house: House, operator: httpx2.AsyncClient) -> None:
    pause = {"tenant": house.new_tenant()[0], "pool": "long"}
    for _ in range(2):
        assert (await operator.post("/v1/pauses", json=pause)).status_code == 201
    assert (await operator.get("/v1/pauses")).json()["pauses"].count(pause) == 1
    assert (await operator.delete("/v1/pauses", params=pause)).status_code == 200
    problem(await operator.delete("/v1/pauses", params=pause), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("wanted", "status", "code", "pointer"),
    [
        ({}, 422, "INVALID_REQUEST", "/tenant"),
        ({"tenant": NEVER}, 404, "NOT_FOUND", "/tenant"),
        ({"tenant": "No!"}, 422, "INVALID_REQUEST", "/tenant"),
        ({"type": ""}, 422, "INVALID_REQUEST", "/type"),
        ({"type": "a b"}, 422, "INVALID_REQUEST", "/type"),
        ({"pool": "huge"}, 422, "UNKNOWN_POOL", "/pool"),
        ({"queue": "long"}, 422, "INVALID_REQUEST", "/queue"),
    ],
)
async def test_a_wrong_pause_names_its_field(
    operator: httpx2.AsyncClient, wanted: dict[str, str], status: int, code: str, pointer: str
) -> None:
    problem(await operator.post("/v1/pauses", json=wanted), status, code, pointer)
    problem(await operator.delete("/v1/pauses", params=wanted), status, code, pointer)


async def test_workers_and_strangers_pause_nothing(
    house: House, nobody: httpx2.AsyncClient
) -> None:
    problem(await nobody.post("/v1/pauses", json={}), 401, "UNAUTHENTICATED")
    async with house.caller(house.new_key({"scope": "worker"})) as worker:
        problem(await worker.post("/v1/pauses", json={"pool": "long"}), 403, "FORBIDDEN")
        problem(await worker.get("/v1/pauses"), 403, "FORBIDDEN")
        problem(await worker.delete("/v1/pauses", params={"pool": "long"}), 403, "FORBIDDEN")
        problem(await worker.get("/v1/limits"), 403, "FORBIDDEN")
