"""The overview, live and over time: an operator sees the platform, a tenant only itself."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from tests.api.events.test_stream import Stream
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.test_revocation import within_five_seconds
from tests.api.worker import HandWorker

from fairway.core.insight.history import COLUMNS
from fairway.services.platform import Platform


async def overview(client: httpx2.AsyncClient) -> dict[str, Any]:
    reply = await client.get("/v1/overview")
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def short(found: dict[str, Any]) -> dict[str, Any]:
    return next(pool for pool in found["pools"] if pool["name"] == "short")


async def until_seen(house: House) -> None:
    """A look that began after all that happened so far."""

    async def look(platform: Platform) -> None:
        for _ in range(2):
            platform.loops["gauges"].wake()
            await platform.insight.board.changed.wait()

    await asyncio.to_thread(house.inside, look)


async def test_an_operator_sees_all_and_a_tenant_itself(
    house: House,
    operator: httpx2.AsyncClient,
    tenant: httpx2.AsyncClient,
    stranger: httpx2.AsyncClient,
    worker: HandWorker,
) -> None:
    await worker.hello()
    for _ in range(3):
        await submit(tenant)
    await submit(tenant, worker.type)
    await worker.run()
    await until_seen(house)
    seen = await overview(operator)
    assert seen["shards"]["owned"] == seen["shards"]["total"] >= 1
    assert seen["workers"]["live"] >= 1
    assert seen["health"]["status"] in ("ok", "warning", "critical")
    pool = short(seen)
    assert pool["queued"] >= 3
    assert pool["slots"] >= 1
    assert pool["slo_seconds"] == 0.5
    assert set(pool["held"]) == {"paused", "throttled", "circuit", "no_worker"}
    own, other = await overview(tenant), await overview(stranger)
    assert (short(own)["queued"], short(other)["queued"]) == (3, 0)
    assert not {"health", "workers", "shards", "restraints"} & own.keys()
    assert own["tenant"] != other["tenant"]
    shares = (await operator.get("/v1/shares")).json()["items"]
    mine = [one for one in shares if one["tenant"] == own["tenant"]]
    assert [one["queued"] for one in mine] == [3]
    problem(await operator.get("/v1/shares?cursor=x"), 400, "INVALID_CURSOR")
    assert pool["held"]["no_worker"] >= 3, "nobody runs their type"


async def test_shares_of_one_tenant_are_told_however_small_it_is(
    house: House, operator: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.services.insight.observer.SHARES_MAX", 0)  # nobody is large enough
    (name, key), (idle, _) = house.new_tenant(weight=7), house.new_tenant()
    async with house.caller(key) as tenant:
        await submit(tenant)
    await until_seen(house)
    assert (await operator.get("/v1/shares")).json()["items"] == []
    (mine,) = (await operator.get(f"/v1/shares?tenant={name}")).json()["items"]
    assert (mine["tenant"], mine["pool"], mine["weight"], mine["queued"]) == (name, "short", 7, 1)
    assert (await operator.get(f"/v1/shares?tenant={idle}")).json() == {"items": [], "next": None}
    problem(await operator.get("/v1/shares?tenant=nobody"), 404, "NOT_FOUND")


async def test_the_overview_comes_live_until_the_key_is_revoked(
    house: House, operator: httpx2.AsyncClient
) -> None:
    await until_seen(house)
    name, _ = house.new_tenant()
    key = house.new_key({"tenant": name})
    async with operator.stream("GET", "/v1/live") as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        stream = Stream(reply)
        first, second = await stream.next(2)
    assert {first.kind, second.kind} == {"overview"}
    assert first.data["at"] < second.data["at"]
    async with house.caller(key) as caller, caller.stream("GET", "/v1/live") as reply:
        stream = Stream(reply)
        (event,) = await stream.next(1)
        assert event.data["tenant"] == name
        assert (await operator.delete(f"/v1/keys/{key.split('_')[2]}")).status_code == 204
        async with within_five_seconds():
            with pytest.raises(StopAsyncIteration):
                await stream.next(1_000)


async def test_history_has_columns_of_one_length(
    house: House, operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient
) -> None:
    await submit(tenant)

    async def end_minute(platform: Platform) -> None:
        await platform.insight.minutes.close()

    await asyncio.to_thread(house.inside, end_minute)
    span = "from=2026-01-01T00:00:00Z&to=2026-01-01T02:00:00Z"
    found = (await operator.get(f"/v1/history?of=pool&name=short&{span}")).json()
    assert found["step_seconds"] == 60
    assert {len(found[name]) for name in ("at", *COLUMNS)} == {120}
    by_hour = (await operator.get("/v1/history?of=pool&name=short&step=hour")).json()
    assert by_hour["accepted"][-1] is None or by_hour["accepted"][-1] >= 1
    own = (await tenant.get("/v1/history?of=tenant")).json()
    assert sum(value or 0 for value in own["accepted"]) == 1
    of_type = (await tenant.get("/v1/history?of=type&name=never.run")).json()
    assert sum(value or 0 for value in of_type["accepted"]) == 1


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 422, "INVALID_REQUEST"),
        ("of=pool", 422, "INVALID_REQUEST"),
        ("of=pool&name=nowhere", 422, "UNKNOWN_POOL"),
        ("of=tenant&name=nobody", 404, "NOT_FOUND"),
        ("of=type&name=a&from=2026-01-01", 422, "INVALID_REQUEST"),
        ("of=type&name=a&from=2026-01-02T00:00Z&to=2026-01-01T00:00Z", 422, "INVALID_REQUEST"),
        ("of=type&name=a&from=2025-01-01T00:00Z&to=2026-01-01T00:00Z", 422, "INVALID_REQUEST"),
        ("of=type&name=a&more=1", 422, "INVALID_REQUEST"),
    ],
)
async def test_what_cannot_be_answered_is_said(
    operator: httpx2.AsyncClient, query: str, status: int, code: str
) -> None:
    problem(await operator.get(f"/v1/history?{query}"), status, code)


async def test_a_tenant_asks_about_nobody_else(house: House, tenant: httpx2.AsyncClient) -> None:
    name, _ = house.new_tenant()
    problem(await tenant.get(f"/v1/history?of=tenant&name={name}"), 404, "NOT_FOUND")
    reply = await tenant.get("/v1/history?of=pool&name=short")
    assert reply.json()["code"] == "INVALID_REQUEST"
    assert (await tenant.get("/v1/shares")).status_code == 403
