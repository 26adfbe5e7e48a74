"""Keys: who is let in, for what, and until when. What is wrong with a key is never told apart."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.worker import HandWorker

from fairway.core.keys import ApiKey
from fairway.store.registry import tenants as store

JOB = {"type": "mail.send"}


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every question about a key that reaches the store."""
    asked: list[str] = []
    read_key = store.read_key

    async def counted(connection: object, key_id: str) -> object:
        asked.append(key_id)
        return await read_key(connection, key_id)

    monkeypatch.setattr(store, "read_key", counted)
    return asked


def forged(scope: str = "tenant") -> str:
    """A key of the right form that nobody made."""
    return ApiKey.compose(scope, "00c0ffee", "S" * 43).text


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "Bearer",
        "Basic dXNlcjpwYXNz",
        "Bearer fw_tenant_x_y",
        "Bearer \xe9\xe9\xe9",
        "Bearer fw_tenant_aa_bb_\xe9\xe9",
        "Bearer " + "x" * 10_000,
        "Bearer fw_root_00c0ffee_secret_00000000",
    ],
)
async def test_what_is_no_key_is_401_without_a_question(
    nobody: httpx2.AsyncClient, questions: list[str], value: str | None
) -> None:
    headers = [] if value is None else [(b"authorization", value.encode("latin-1"))]
    reply = await nobody.post("/v1/jobs", json=JOB, headers=headers)
    problem(reply, 401, "UNAUTHENTICATED")
    assert reply.headers["www-authenticate"] == "Bearer"
    assert questions == []


async def test_a_wrong_checksum_costs_no_question(house: House, questions: list[str]) -> None:
    _, key = house.new_tenant()
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    async with house.caller(wrong) as caller:
        problem(await caller.get("/v1/jobs"), 401, "UNAUTHENTICATED")
    assert wrong.split("_")[2] not in questions


async def test_an_unknown_key_and_a_wrong_secret_look_the_same(house: House) -> None:
    _, key = house.new_tenant()
    stolen_id = ApiKey.compose("tenant", key.split("_")[2], "S" * 43).text
    bodies = []
    for text in (forged(), stolen_id):
        async with house.caller(text) as caller:
            body = problem(await caller.get("/v1/jobs"), 401, "UNAUTHENTICATED")
        bodies.append({name: value for name, value in body.items() if name != "request_id"})
    assert bodies[0] == bodies[1]


async def test_a_key_cannot_change_its_scope(house: House) -> None:
    _, key = house.new_tenant()
    _, _, key_id, secret, _ = key.split("_")
    async with house.caller(ApiKey("operator", key_id, secret).text) as caller:
        reply = await caller.post("/v1/tenants", json={"name": "mine"})
        problem(reply, 401, "UNAUTHENTICATED")


async def test_a_key_in_the_address_is_no_key(house: House, nobody: httpx2.AsyncClient) -> None:
    _, key = house.new_tenant()
    for name in ("api_key", "token", "authorization", "access_token"):
        problem(await nobody.get(f"/v1/jobs?{name}={key}"), 401, "UNAUTHENTICATED")


async def test_each_scope_opens_its_own_doors_only(
    house: House, tenant: httpx2.AsyncClient, operator: httpx2.AsyncClient
) -> None:
    async with house.caller(house.new_key({"scope": "worker"})) as worker:
        exchange = {"session": "0" * 32}
        tenants_doors = [
            ("POST", "/v1/jobs", JOB),
            ("POST", "/v1/jobs/batch", {"jobs": [JOB]}),
            ("GET", "/v1/jobs", None),
            ("GET", "/v1/jobs/01980a5e-7c1b-7000-8000-04a2b1c3d4e5", None),
            ("DELETE", "/v1/jobs/01980a5e-7c1b-7000-8000-04a2b1c3d4e5", None),
            ("GET", "/v1/jobs/01980a5e-7c1b-7000-8000-04a2b1c3d4e5/events", None),
        ]
        operators_doors = [
            ("POST", "/v1/tenants", {"name": "x"}),
            ("POST", "/v1/keys", {"scope": "worker"}),
            ("DELETE", "/v1/keys/00c0ffee", None),
        ]
        workers_doors = [("POST", "/v1/workers/w/exchange", exchange)]
        for doors, strangers in (
            (tenants_doors, (worker, operator)),
            (operators_doors, (worker, tenant)),
            (workers_doors, (tenant, operator)),
        ):
            for method, path, body in doors:
                for caller in strangers:
                    problem(await caller.request(method, path, json=body), 403, "FORBIDDEN")


async def test_a_revoked_key_stops_working_within_five_seconds(
    house: House, operator: httpx2.AsyncClient
) -> None:
    _, key = house.new_tenant()
    async with house.caller(key) as caller:
        assert (await caller.post("/v1/jobs", json=JOB)).status_code == 202
        assert (await operator.delete(f"/v1/keys/{key.split('_')[2]}")).status_code == 204
        async with asyncio.timeout(5):
            while (reply := await caller.get("/v1/jobs")).status_code == 200:
                continue
        problem(reply, 401, "UNAUTHENTICATED")


async def test_a_rotated_key_overlaps_with_the_old_one(
    house: House, operator: httpx2.AsyncClient
) -> None:
    name, old = house.new_tenant()
    new = house.new_key({"scope": "tenant", "tenant": name})
    async with house.caller(old) as before, house.caller(new) as after:
        location = (await before.post("/v1/jobs", json=JOB)).headers["location"]
        assert (await after.get(location)).status_code == 200


async def test_a_worker_of_one_tenant_gets_that_tenants_jobs_only(house: House) -> None:
    (ours, our_key), (_, their_key) = house.new_tenant(), house.new_tenant()
    key = house.new_key({"scope": "worker", "tenant": ours})
    async with (
        house.caller(key) as line,
        house.caller(our_key) as us,
        house.caller(their_key) as them,
    ):
        worker = HandWorker(line)
        await worker.hello(slots=10)
        theirs = (await them.post("/v1/jobs", json={"type": worker.type})).json()["id"]
        mine = (await us.post("/v1/jobs", json={"type": worker.type})).json()["id"]
        lease = await worker.lease()
        assert (lease["job"], lease["tenant"]) == (mine, ours)
        assert not (await worker.say(wait_ms=300)).get("leases")
        grab = worker.holding(lease) | {"job": theirs}
        reply = await worker.hello(slots=10, running=[worker.holding(lease), grab])
        assert reply["revoked"] == [theirs]
        assert (await them.get(f"/v1/jobs/{theirs}")).json()["state"] == "queued"
        await worker.leave()
