"""What a key may do over HTTP: permissions, bounds of workers' keys, ends, rotation, last use."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.api.house import NO_TLS, House, problem
from tests.api.test_tenancy_matrix import Caller, asked

from fairway.api.endpoint import Endpoint
from fairway.api.routes import OPERATIONS
from fairway.core.keys import PERMISSIONS

WAIT_SECONDS = 20.0


@pytest.fixture(scope="module")
def narrow(house: House) -> dict[tuple[str, str], str]:
    """A key of each scope for each permission alone."""
    name, _ = house.new_tenant()
    return {
        (scope, one): house.new_key(
            {"scope": scope, "permissions": [one]} | ({"tenant": name} if scope == "tenant" else {})
        )
        for scope in ("tenant", "operator")
        for one in PERMISSIONS[scope]
    }


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_each_operation_takes_its_permission_and_no_other(
    house: House, narrow: dict[tuple[str, str], str], operation: Endpoint
) -> None:
    with httpx2.Client(base_url=house.url, verify=NO_TLS, timeout=30) as line:
        for (scope, permission), key in narrow.items():
            if scope not in operation.keys:
                continue
            reply = asked(line, operation, Caller(scope, key))
            if permission == operation.permission:
                assert reply.status_code not in (401, 403), reply.text
            elif operation.method == "HEAD":
                assert reply.status_code == 403
            else:
                told = problem(reply, 403, "FORBIDDEN")
                assert f"'{operation.permission}'" in told["detail"]


def test_what_operations_need() -> None:
    """The usual follows from the method; these were said."""
    needs = {one.call: one.permission for one in OPERATIONS if one.keys}
    assert needs["POST /v1/jobs"] == needs["POST /v1/jobs/batch"] == "submit"
    assert needs["POST /v1/jobs/wait"] == needs["GET /v1/jobs"] == "read"
    assert needs["DELETE /v1/jobs/{id}"] == needs["POST /v1/pauses"] == "operate"
    assert needs["POST /v1/keys"] == needs["PATCH /v1/tenants/{name}"] == "admin"
    assert needs["POST /v1/workers/{name}/exchange"] == "worker"


@pytest.mark.parametrize(
    ("wanted", "pointer"),
    [
        ({"permissions": []}, "/permissions"),
        ({"permissions": ["king"]}, "/permissions/0"),
        ({"permissions": ["admin"]}, "/permissions"),
        ({"scope": "worker", "permissions": ["read"]}, "/permissions"),
        ({"scope": "operator"}, "/tenant"),
        ({"pools": ["long"]}, "/pools"),
        ({"types": ["a"]}, "/types"),
        ({"scope": "worker", "types": ["a b"]}, "/types/0"),
        ({"name": "x" * 101}, "/name"),
        ({"name": "a\nb"}, "/name"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "2027-01-01T00:00:00"}, "/expires_at"),
    ],
)
async def test_a_key_that_cannot_be_is_refused(
    house: House, operator: httpx2.AsyncClient, wanted: dict[str, Any], pointer: str
) -> None:
    who, _ = house.new_tenant()
    reply = await operator.post("/v1/keys", json={"tenant": who} | wanted)
    problem(reply, 422, "INVALID_REQUEST", pointer)


async def test_an_unknown_pool_is_named(operator: httpx2.AsyncClient) -> None:
    reply = await operator.post("/v1/keys", json={"scope": "worker", "pools": ["no-such"]})
    assert reply.status_code in (404, 422)
    assert reply.json()["code"] == "UNKNOWN_POOL"


async def test_a_workers_key_offers_nothing_beyond_its_bounds(
    house: House, operator: httpx2.AsyncClient
) -> None:
    wanted = {"scope": "worker", "pools": ["long"], "types": ["video.render"]}
    key = (await operator.post("/v1/keys", json=wanted)).json()["api_key"]

    async def hello(slots: dict[str, int], *types: str) -> httpx2.Response:
        said = {"slots": slots, "types": [{"name": name} for name in types]}
        body = {"session": "0" * 32, "call": 1, "hello": said, "wait_ms": 0}
        async with house.caller(key) as worker:
            return await worker.post("/v1/workers/w/exchange", json=body)

    problem(await hello({"long": 1, "short": 1}, "video.render"), 403, "FORBIDDEN", "/hello/slots")
    problem(await hello({"long": 1}, "video.render", "mail"), 403, "FORBIDDEN", "/hello/types")
    assert (await hello({"long": 1}, "video.render")).status_code == 200


async def test_a_key_is_listed_with_all_that_is_known_of_it(
    house: House, operator: httpx2.AsyncClient
) -> None:
    who, _ = house.new_tenant()
    ends = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    wanted = {"tenant": who, "name": "board", "permissions": ["read"], "expires_at": str(ends)}
    made = (await operator.post("/v1/keys", json=wanted)).json()
    (one,) = [key for key in await _keys(operator, who) if key["id"] == made["id"]]
    assert (one["name"], one["permissions"], one["last_used_at"]) == ("board", ["read"], None)
    assert datetime.fromisoformat(one["expires_at"]) == ends
    async with house.caller(made["api_key"]) as board, asyncio.timeout(WAIT_SECONDS):
        while one["last_used_at"] is None:  # written with the directory's next look
            assert (await board.get("/v1/jobs")).status_code == 200
            (one,) = [key for key in await _keys(operator, who) if key["id"] == made["id"]]
            await asyncio.sleep(0.2)


async def test_a_rotated_key_ends_after_the_overlap(
    house: House, operator: httpx2.AsyncClient
) -> None:
    who, _ = house.new_tenant()
    wanted = {"tenant": who, "name": "app", "permissions": ["read", "submit"]}
    old = (await operator.post("/v1/keys", json=wanted)).json()
    new = (await operator.post(f"/v1/keys/{old['id']}/rotate", json={})).json()
    facts = {key["id"]: key for key in await _keys(operator, who)}
    for one in (old, new):  # both work for a day
        assert facts[one["id"]]["permissions"] == ["read", "submit"]
        async with house.caller(one["api_key"]) as app:
            assert (await app.get("/v1/jobs")).status_code == 200
    assert facts[new["id"]]["expires_at"] is None
    assert facts[old["id"]]["expires_at"] is not None
    now = {"overlap_seconds": 0}
    assert (await operator.post(f"/v1/keys/{new['id']}/rotate", json=now)).status_code == 201
    async with house.caller(new["api_key"]) as app, asyncio.timeout(WAIT_SECONDS):
        while (await app.get("/v1/jobs")).status_code == 200:
            pass
        assert (await app.get("/v1/jobs")).status_code == 401
    gone = await operator.post(f"/v1/keys/{new['id']}/rotate", json={})
    problem(gone, 404, "NOT_FOUND")


async def _keys(operator: httpx2.AsyncClient, tenant: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        await operator.get("/v1/keys", params={"tenant": tenant})
    ).json()["keys"]
    return found
