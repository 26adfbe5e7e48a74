"""Tenants and keys for operators; health and metrics for machines, also while the store is away."""

from __future__ import annotations

import secrets

import httpx2
import pytest
from tests.api.house import House, problem

from fairway.core.keys import ApiKey


def name() -> str:
    return f"n-{secrets.token_hex(6)}"


# -- tenants and keys --------------------------------------------------------------------------


async def test_a_tenant_comes_with_its_first_key(
    house: House, operator: httpx2.AsyncClient
) -> None:
    wanted = {"name": name(), "weight": 3, "depth_limit": 7}
    reply = await operator.post("/v1/tenants", json=wanted)
    assert reply.status_code == 201
    assert {field: reply.json()[field] for field in wanted} == wanted
    key = ApiKey.parse(reply.json()["api_key"])
    assert key is not None
    assert key.scope == "tenant"
    async with house.caller(key.text) as tenant:
        assert (await tenant.post("/v1/jobs", json={"type": "a"})).status_code == 202


async def test_tenants_are_listed_by_name_page_by_page(operator: httpx2.AsyncClient) -> None:
    made = sorted([name() for _ in range(3)])
    for one in made:
        await operator.post("/v1/tenants", json={"name": one, "tier": "pro"})
    found, cursor = [], "n-"  # names of other tests may stand between
    while cursor is not None:
        page = (await operator.get("/v1/tenants", params={"limit": 2, "cursor": cursor})).json()
        assert len(page["tenants"]) <= 2
        found += page["tenants"]
        cursor = page["next_cursor"]
    names = [one["name"] for one in found]
    assert names == sorted(set(names))
    assert set(made) <= set(names)
    assert found[names.index(made[0])] == (await operator.get(f"/v1/tenants/{made[0]}")).json()
    for bad in ({"limit": 0}, {"cursor": "\x00"}, {"cursor": "n" * 65}, {"colour": "red"}):
        reply = await operator.get("/v1/tenants", params=bad)
        problem(reply, 422, "INVALID_REQUEST", next(iter(bad)))


async def test_keys_are_listed_without_their_secrets(
    house: House, operator: httpx2.AsyncClient
) -> None:
    who, text = house.new_tenant()
    second = (await operator.post("/v1/keys", json={"scope": "worker", "tenant": who})).json()
    reply = await operator.get("/v1/keys", params={"tenant": who})
    assert text.split("_")[3] not in reply.text
    found = {one["id"]: (one["scope"], one["tenant"]) for one in reply.json()["keys"]}
    assert found == {text.split("_")[2]: ("tenant", who), second["id"]: ("worker", who)}
    workers = await operator.get("/v1/keys", params={"tenant": who, "scope": "worker"})
    assert [one["id"] for one in workers.json()["keys"]] == [second["id"]]
    first = (await operator.get("/v1/keys", params={"tenant": who, "limit": 1})).json()
    rest = {"tenant": who, "cursor": first["next_cursor"]}
    both = first["keys"] + (await operator.get("/v1/keys", params=rest)).json()["keys"]
    assert [one["id"] for one in both] == sorted(found)
    await operator.delete(f"/v1/keys/{second['id']}")
    left = (await operator.get("/v1/keys", params={"tenant": who})).json()["keys"]
    assert [one["id"] for one in left] == [text.split("_")[2]]
    problem(await operator.get("/v1/keys?scope=king"), 422, "INVALID_REQUEST", "scope")
    problem(await operator.get("/v1/keys?tenant=nobody-here"), 404, "NOT_FOUND", "tenant")


async def test_what_operators_do_is_audited(house: House, operator: httpx2.AsyncClient) -> None:
    """By whom, and to what; what a tenant does with its own jobs is not."""
    who = name()
    text = (await operator.post("/v1/tenants", json={"name": who})).json()["api_key"]
    await operator.patch(f"/v1/tenants/{who}", json={"weight": 7, "cap": None})
    made = (await operator.post("/v1/keys", json={"scope": "worker", "tenant": who})).json()["id"]
    await operator.delete(f"/v1/keys/{made}")
    paused = {"tenant": who, "pool": "long"}
    await operator.post("/v1/pauses", json=paused)
    await operator.delete("/v1/pauses", params=paused)
    async with house.caller(text) as tenant:
        await tenant.post("/v1/pauses", json={"pool": "long"})
    entries = (await operator.get("/v1/audit", params={"limit": 200})).json()["entries"]
    mine = [entry for entry in entries if entry["tenant"] == who]
    actor, theirs = house.operator_key.split("_")[2], text.split("_")[2]
    assert [entry["actor"] for entry in mine] == [theirs, *[actor] * 7]
    assert [(entry["action"], entry["subject"]) for entry in reversed(mine)] == [
        ("add_tenant", who),
        ("add_key", text.split("_")[2]),
        ("change_tenant", who),
        ("add_key", made),
        ("revoke_key", made),
        ("pause", f"tenant={who} pool=long"),
        ("resume", f"tenant={who} pool=long"),
        ("pause", f"tenant={who} pool=long"),
    ]
    (change,) = [entry for entry in mine if entry["action"] == "change_tenant"]
    assert (change["before"], change["after"]) == ({"weight": None}, {"weight": 7})


async def test_a_name_is_taken_once(operator: httpx2.AsyncClient) -> None:
    wanted = {"name": name()}
    assert (await operator.post("/v1/tenants", json=wanted)).status_code == 201
    problem(await operator.post("/v1/tenants", json=wanted), 409, "CONFLICT", "/name")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": "Acme"}, "/name"),
        ({"name": "a\n"}, "/name"),
        ({"name": "x" * 64}, "/name"),
        ({"name": "a\x00b"}, "/name"),
        ({"name": "a", "weight": 0}, "/weight"),
        ({"name": "a", "weight": 10**6}, "/weight"),
        ({"name": "a", "depth_limit": -1}, "/depth_limit"),
        ({"name": "a", "depth_limit": 10**30}, "/depth_limit"),
        ({"name": "a", "tier": "gold"}, "/tier"),
        ({"name": "a", "cap": 0}, "/cap"),
        ({"name": "a", "rate_per_second": 0}, "/rate_per_second"),
        ({"name": "a", "colour": "red"}, "/colour"),
    ],
)
async def test_a_bad_tenant_is_named(
    operator: httpx2.AsyncClient, body: dict[str, object], pointer: str
) -> None:
    problem(await operator.post("/v1/tenants", json=body), 422, "INVALID_REQUEST", pointer)


async def test_bodies_of_operators_are_bounded_and_read_with_care(
    operator: httpx2.AsyncClient,
) -> None:
    problem(await operator.post("/v1/tenants", content=b"{"), 400, "INVALID_JSON")
    problem(await operator.post("/v1/tenants", content=b'{"name":"\xff"}'), 400, "INVALID_JSON")
    problem(await operator.post("/v1/keys", content=b" " * 70_000), 413, "PAYLOAD_TOO_LARGE")
    headers = {"content-type": "text/plain"}
    reply = await operator.post("/v1/keys", content=b"{}", headers=headers)
    problem(reply, 415, "UNSUPPORTED_MEDIA_TYPE")


async def test_a_key_is_made_and_revoked_once(operator: httpx2.AsyncClient) -> None:
    made = (await operator.post("/v1/keys", json={"scope": "worker"})).json()
    assert (made["scope"], made["tenant"]) == ("worker", None)
    assert made["api_key"].startswith(f"fw_worker_{made['id']}_")
    gone = await operator.delete(f"/v1/keys/{made['id']}")
    assert (gone.status_code, gone.content) == (204, b"")
    problem(await operator.delete(f"/v1/keys/{made['id']}"), 404, "NOT_FOUND")


@pytest.mark.parametrize("key_id", ["00c0ffee", "%00", "x" * 500, "a'b", "%F0%9F%92%A9"])
async def test_a_key_that_is_not_there_cannot_be_revoked(
    operator: httpx2.AsyncClient, key_id: str
) -> None:
    problem(await operator.delete(f"/v1/keys/{key_id}"), 404, "NOT_FOUND")


async def test_a_key_needs_a_tenant_that_exists(operator: httpx2.AsyncClient) -> None:
    problem(await operator.post("/v1/keys", json={}), 422, "INVALID_REQUEST", "/tenant")
    unknown = {"tenant": "nobody\x00"}
    problem(await operator.post("/v1/keys", json=unknown), 404, "NOT_FOUND", "/tenant")
    for scope in ("king", "", None):
        reply = await operator.post("/v1/keys", json={"scope": scope})
        problem(reply, 422, "INVALID_REQUEST", "/scope")
