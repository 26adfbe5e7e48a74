"""Tenants, tiers and pauses over HTTP: what operators may set, and what tenants may."""

from __future__ import annotations

import secrets
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem

NEVER = "never-was"


def name() -> str:
    return f"n-{secrets.token_hex(6)}"


async def test_a_tenant_is_shown_with_the_values_in_force(operator: httpx2.AsyncClient) -> None:
    wanted = {"name": name(), "tier": "pro", "cap": 7, "reserved": {"short": 2}}
    added = (await operator.post("/v1/tenants", json=wanted)).json()
    shown = (await operator.get(f"/v1/tenants/{wanted['name']}")).json()
    assert shown == {key: value for key, value in added.items() if key != "api_key"}
    assert (shown["weight"], shown["floor_per_mille"], shown["cap"]) == (100, 10, 7)
    assert (shown["rate_per_second"], shown["burst"]) == (10_000, 100_000)
    assert shown["reserved"] == {"short": 2}
    path = f"/v1/tenants/{wanted['name']}"  # other tests share these slots
    assert (await operator.patch(path, json={"reserved": {}})).json()["reserved"] == {}


async def test_a_change_holds_at_once_and_null_takes_the_tiers_value(
    operator: httpx2.AsyncClient,
) -> None:
    path = f"/v1/tenants/{name()}"
    await operator.post("/v1/tenants", json={"name": path.split("/")[-1]})
    changed = await operator.patch(path, json={"weight": 33, "rate_per_second": 5, "cap": 2})
    assert changed.status_code == 200
    facts = changed.json()
    assert (facts["weight"], facts["rate_per_second"], facts["burst"], facts["cap"]) == (
        33,
        5,
        50,
        2,
    )
    assert (await operator.get(path)).json() == facts
    back = (await operator.patch(path, json={"weight": None, "cap": None, "tier": "free"})).json()
    assert (back["weight"], back["cap"], back["tier"], back["rate_per_second"]) == (
        1,
        None,
        "free",
        5,
    )
    assert (await operator.patch(path, json={})).json() == back


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"weight": 0}, "/weight", "INVALID_REQUEST"),
        ({"weight": "many"}, "/weight", "INVALID_REQUEST"),
        ({"tier": "gold"}, "/tier", "INVALID_REQUEST"),
        ({"tier": None}, "/tier", "INVALID_REQUEST"),
        ({"cap": 0}, "/cap", "INVALID_REQUEST"),
        ({"rate_per_second": 0}, "/rate_per_second", "INVALID_REQUEST"),
        ({"burst": -1}, "/burst", "INVALID_REQUEST"),
        ({"depth_limit": -1}, "/depth_limit", "INVALID_REQUEST"),
        ({"reserved": {"huge": 1}}, "/reserved", "UNKNOWN_POOL"),
        ({"reserved": {"short": -1}}, "/reserved", "INVALID_REQUEST"),
        ({"name": "other"}, "/name", "INVALID_REQUEST"),
    ],
)
async def test_a_wrong_change_names_its_field_and_changes_nothing(
    house: House, operator: httpx2.AsyncClient, body: dict[str, Any], pointer: str, code: str
) -> None:
    path = f"/v1/tenants/{house.new_tenant()[0]}"
    before = (await operator.get(path)).json()
    problem(await operator.patch(path, json=body), 422, code, pointer)
    assert (await operator.get(path)).json() == before


@pytest.mark.parametrize("who", [NEVER, "%00", "A" * 400, "%F0%9F%92%A9"])
async def test_an_unknown_tenant_is_not_found(operator: httpx2.AsyncClient, who: str) -> None:
    problem(await operator.get(f"/v1/tenants/{who}"), 404, "NOT_FOUND")
    problem(await operator.patch(f"/v1/tenants/{who}", json={"weight": 3}), 404, "NOT_FOUND")


# -- tiers ---------------------------------------------------------------------------------------


async def test_the_tiers_that_come_with_it(operator: httpx2.AsyncClient) -> None:
    tiers = {tier["name"]: tier for tier in (await operator.get("/v1/tiers")).json()["tiers"]}
    assert {"free", "standard", "pro", "enterprise"} <= tiers.keys()
    assert [tiers[n]["weight"] for n in ("free", "standard", "pro", "enterprise")] == [
        1,
        10,
        100,
        1000,
    ]
    assert [tiers[n]["rate_per_second"] for n in ("free", "standard", "pro")] == [10, 100, 10_000]
    assert (tiers["free"]["group"], tiers["pro"]["floor_per_mille"]) == ("free", 10)


async def test_a_tier_is_made_and_edited_and_its_tenants_follow(
    operator: httpx2.AsyncClient,
) -> None:
    tier = f"t{secrets.token_hex(4)}"
    made = await operator.put(f"/v1/tiers/{tier}", json={"weight": 40, "cap": 3})
    assert (made.status_code, made.json()["name"], made.json()["burst"]) == (200, tier, 1000)
    who = name()
    added = (await operator.post("/v1/tenants", json={"name": who, "tier": tier})).json()
    assert (added["weight"], added["cap"]) == (40, 3)
    await operator.put(f"/v1/tiers/{tier}", json={"weight": 50, "rate_per_second": 9, "burst": 90})
    now = (await operator.get(f"/v1/tenants/{who}")).json()
    assert (now["weight"], now["cap"], now["rate_per_second"], now["burst"]) == (50, None, 9, 90)


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("gold", {}, "/weight"),
        ("gold", {"weight": 0}, "/weight"),
        ("gold", {"weight": 1, "group": "vip"}, "/group"),
        ("gold", {"weight": 1, "floor_per_mille": 1001}, "/floor_per_mille"),
        ("gold", {"weight": 1, "burst": 0}, "/burst"),
        ("gold", {"weight": 1, "colour": 1}, "/colour"),
        ("Gold!", {"weight": 1}, "/name"),
        ("x" * 33, {"weight": 1}, "/name"),
    ],
)
async def test_a_wrong_tier_names_its_field(
    operator: httpx2.AsyncClient, path: str, body: dict[str, Any], pointer: str
) -> None:
    problem(await operator.put(f"/v1/tiers/{path}", json=body), 422, "INVALID_REQUEST", pointer)
    assert path not in (await operator.get("/v1/tiers")).text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/tenants"),
        ("GET", f"/v1/tenants/{NEVER}"),
        ("PATCH", f"/v1/tenants/{NEVER}"),
        ("GET", "/v1/tiers"),
        ("PUT", "/v1/tiers/gold"),
    ],
)
async def test_these_are_for_operators_alone(
    tenant: httpx2.AsyncClient, nobody: httpx2.AsyncClient, method: str, path: str
) -> None:
    problem(await tenant.request(method, path, json={}), 403, "FORBIDDEN")
    problem(await nobody.request(method, path, json={}), 401, "UNAUTHENTICATED")
