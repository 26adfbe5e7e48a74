"""Work that is refused costs its tenant what it would have cost had it been taken, and nobody else
waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.test_limits import told

from fairway.core.ids import TenantId
from fairway.services.backpressure.owner_slots import OwnerSlots
from fairway.services.platform import Platform

GOOD = {"type": "good"}


@contextmanager
def taken(house: House, slots: OwnerSlots, tenant: TenantId) -> Iterator[None]:
    """The place of a tenant is another call's meanwhile."""
    held = AsyncExitStack()
    house.inside(lambda _: held.enter_async_context(slots.held(tenant)))
    try:
        yield
    finally:
        house.inside(lambda _: held.aclose())


@pytest.mark.parametrize("bad", [{}, 0, {**GOOD, "pool": "huge"}], ids=["empty", "none", "pool"])
async def test_a_refused_item_of_a_batch_costs_a_token(house: House, bad: Any) -> None:
    _, key = house.new_tenant(rate_per_second=1, burst=1000)
    async with house.caller(key) as caller:
        reply = await caller.post("/v1/jobs/batch", json={"jobs": [bad] * 600})
        assert reply.json()["accepted"] == 0
        assert told(reply)[2] in range(400, 410)
        again = await caller.post("/v1/jobs/batch", json={"jobs": [bad] * 600})
        problem(again, 429, "TENANT_RATE_LIMIT_EXCEEDED")


async def test_few_bad_jobs_cost_their_own_tokens(house: House) -> None:
    _, key = house.new_tenant(rate_per_second=1, burst=100)
    async with house.caller(key) as caller:
        reply = await caller.post("/v1/jobs/batch", json={"jobs": [GOOD] * 10 + [{}] * 2})
        assert reply.json()["accepted"] == 10
        assert told(reply)[2] in (88, 89)


async def test_a_batch_above_the_burst_is_taken_though_one_of_it_is_bad(house: House) -> None:
    """It is let in by a full bucket: the bad one must not have been paid before."""
    _, key = house.new_tenant(rate_per_second=1, burst=10)
    async with house.caller(key) as caller:
        reply = await caller.post("/v1/jobs/batch", json={"jobs": [{}] + [GOOD] * 20})
        assert reply.json()["accepted"] == 20


async def test_a_tenants_long_batches_are_looked_at_one_by_one(
    house: House, stranger: httpx2.AsyncClient
) -> None:
    name, key = house.new_tenant()
    tenant = house.platform.directory.id_of(name)
    long: Any = {"jobs": [{}] * 600}
    short = {"jobs": [GOOD] * 100}
    async with house.caller(key) as caller:
        with taken(house, house.platform.long_looks, tenant):
            waiting = asyncio.create_task(caller.post("/v1/jobs/batch", json=long))
            assert (await caller.post("/v1/jobs/batch", json=short)).json()["accepted"] == 100
            assert (await stranger.post("/v1/jobs/batch", json=long)).status_code == 200
            assert not waiting.done()
        assert (await waiting).status_code == 200


async def test_what_waits_for_its_look_is_judged_when_it_comes(house: House) -> None:
    """Else as many as wait would be looked at for the tokens of one."""
    name, key = house.new_tenant(rate_per_second=1, burst=1000)
    tenant = house.platform.directory.id_of(name)
    async with house.caller(key) as caller:
        with taken(house, house.platform.long_looks, tenant):
            calls = [
                asyncio.create_task(caller.post("/v1/jobs/batch", json={"jobs": [{}] * 600}))
                for _ in range(4)
            ]
            await asyncio.wait(calls, timeout=0.2)
        replies = [await call for call in calls]
    assert sorted(reply.status_code for reply in replies) == [200, 429, 429, 429]


def flow(*more: Any) -> dict[str, Any]:
    return {"kind": "group", "jobs": [GOOD] * 600, **dict(more)}


@pytest.mark.parametrize(
    "bad", [("jobs", [GOOD] * 599 + [{}]), ("callback", {})], ids=["its last job", "its callback"]
)
async def test_a_refused_flow_costs_what_was_looked_at(house: House, bad: tuple[str, Any]) -> None:
    _, key = house.new_tenant(rate_per_second=1, burst=1000)
    async with house.caller(key) as caller:
        problem(await caller.post("/v1/flows", json=flow(bad)), 422, "INVALID_REQUEST")
        problem(await caller.post("/v1/flows", json=flow()), 429, "TENANT_RATE_LIMIT_EXCEEDED")
        reply = await caller.post("/v1/jobs/batch", json={"jobs": [GOOD]})
        assert told(reply)[2] in range(398, 408)


async def test_a_tenants_flows_are_looked_at_one_by_one(
    house: House, stranger: httpx2.AsyncClient
) -> None:
    name, key = house.new_tenant()
    tenant = house.platform.directory.id_of(name)
    async with house.caller(key) as caller:
        with taken(house, house.platform.long_looks, tenant):
            waiting = asyncio.create_task(caller.post("/v1/flows", json=flow()))
            assert (await stranger.post("/v1/flows", json=flow())).status_code == 202
            assert not waiting.done()
        assert (await waiting).status_code == 202


CAREFULLY = b'{"type":"a","payload":{"a":"\\u0041","b":[' + b"{}," * 5_000 + b"1e999]}}"


async def test_a_job_that_is_refused_after_a_careful_look_costs_a_token(house: House) -> None:
    """However short it is."""
    _, key = house.new_tenant(rate_per_second=1, burst=20)
    async with house.caller(key) as caller:
        replies = [await caller.post("/v1/jobs", content=CAREFULLY) for _ in range(40)]
    assert 20 <= sum(reply.status_code == 422 for reply in replies) < 30
    problem(replies[-1], 429, "TENANT_RATE_LIMIT_EXCEEDED")


async def test_a_careful_look_at_many_values_is_taken_in_the_lane(
    house: House, tenant: httpx2.AsyncClient
) -> None:
    async def taken_by(platform: Platform) -> asyncio.Task[bool]:
        return asyncio.create_task(platform.heavy.run(TenantId(0), done.wait))

    done = threading.Event()
    house.inside(taken_by)
    try:
        waiting = asyncio.create_task(tenant.post("/v1/jobs", content=CAREFULLY))
        escaped = await tenant.post("/v1/jobs", content=b'{"type":"a","payload":{"a":"\\u0041"}}')
        assert escaped.status_code == 202
        assert not waiting.done()
    finally:
        done.set()
    assert (await waiting).status_code == 422
