"""Limits over HTTP: never silent, told in headers worth obeying, and nobody else's matter."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.api.house import House, open_house, own_house, problem
from tests.postgres import Server

POLICY = re.compile(r'^"jobs";q=(\d+);w=(\d+)$')
STATE = re.compile(r'^"jobs";r=(\d+);t=(\d+)$')


def batch(count: int) -> dict[str, Any]:
    return {"jobs": [{"type": "limited"}] * count}


def told(reply: httpx2.Response) -> tuple[int, int, int, int]:
    """Burst, window, jobs left, seconds until the bucket is full."""
    policy, state = (
        POLICY.match(reply.headers["ratelimit-policy"]),
        STATE.match(reply.headers["ratelimit"]),
    )
    assert policy is not None
    assert state is not None
    return int(policy[1]), int(policy[2]), int(state[1]), int(state[2])


async def test_every_submission_tells_what_is_left(house: House) -> None:
    _, key = house.new_tenant(rate_per_second=1, burst=20)
    async with house.caller(key) as caller:
        one = await caller.post("/v1/jobs", json={"type": "limited"})
        assert told(one)[:3] == (20, 20, 19)
        many = await caller.post("/v1/jobs/batch", json=batch(10))
        assert told(many)[2] in (9, 10)
        waited = await caller.post(
            "/v1/jobs", json={"type": "limited"}, headers={"prefer": "wait=1"}
        )
        assert told(waited)[2] in (8, 9, 10, 11)


@pytest.mark.parametrize("size", [1, 3, 25], ids=["single", "batch", "larger-than-burst"])
async def test_a_client_that_obeys_never_sees_a_second_429(house: House, size: int) -> None:
    """It posts as fast as it can until it is refused, waits as told, and goes on."""
    _, key = house.new_tenant(rate_per_second=10, burst=10)
    was_refused, rounds = False, 0
    async with house.caller(key) as caller, asyncio.timeout(60):
        while rounds < 2:
            if size == 1:
                reply = await caller.post("/v1/jobs", json={"type": "limited"})
            else:
                reply = await caller.post("/v1/jobs/batch", json=batch(size))
            if reply.status_code != 429:
                assert reply.status_code in (200, 202)
                was_refused = False
                continue
            assert not was_refused, "refused again though it waited as told"
            problem(reply, 429, "TENANT_RATE_LIMIT_EXCEEDED")
            assert told(reply)[2] < min(size, 10)
            was_refused, rounds = True, rounds + 1
            await asyncio.sleep(int(reply.headers["retry-after"]))


@pytest.mark.parametrize(("size", "calls"), [(1, 6), (4, 6), (25, 3)])
async def test_a_client_that_reads_ahead_is_never_refused_at_all(
    house: House, size: int, calls: int
) -> None:
    """It looks at `r` and `t` of each reply before it sends the next."""
    _, key = house.new_tenant(rate_per_second=50, burst=10)
    async with house.caller(key) as caller, asyncio.timeout(60):
        for _ in range(calls):
            reply = await caller.post("/v1/jobs/batch", json=batch(size))
            assert reply.status_code == 200, reply.text
            _, _, left, full_in_seconds = told(reply)
            if left < size:
                await asyncio.sleep(full_in_seconds)


async def test_refusals_are_counted_for_the_tenant_to_see(
    house: House, stranger: httpx2.AsyncClient
) -> None:
    _, key = house.new_tenant(rate_per_second=1, burst=2, depth_limit=3)
    async with house.caller(key) as caller:
        assert (await caller.post("/v1/jobs/batch", json=batch(2))).status_code == 200
        problem(
            await caller.post("/v1/jobs", json={"type": "limited"}),
            429,
            "TENANT_RATE_LIMIT_EXCEEDED",
        )
        problem(await caller.post("/v1/jobs/batch", json=batch(2)), 429, "QUEUE_DEPTH_EXCEEDED")
        problem(await caller.post("/v1/jobs", json={"type": ""}), 422, "INVALID_REQUEST", "/type")
        seen = (await caller.get("/v1/limits")).json()
    assert seen["refused"] == {
        "TENANT_RATE_LIMIT_EXCEEDED": 1, "QUEUE_DEPTH_EXCEEDED": 1, "INVALID_REQUEST": 1,
    }  # fmt: skip
    assert (seen["depth"], seen["depth_limit"], seen["burst"]) == (2, 3, 2)
    assert (seen["rate_per_second"], seen["tier"], seen["cap"]) == (1, "standard", None)
    assert (await stranger.get("/v1/limits")).json()["refused"] == {}


async def test_a_full_queue_is_refused_and_the_rest_see_nothing(
    house: House, stranger: httpx2.AsyncClient
) -> None:
    _, key = house.new_tenant(tier="pro", depth_limit=5)
    async with house.caller(key) as full:
        assert (await full.post("/v1/jobs/batch", json=batch(5))).json()["accepted"] == 5
        refused = await full.post("/v1/jobs", json={"type": "limited"})
        problem(refused, 429, "QUEUE_DEPTH_EXCEEDED")
        for _ in range(5):
            reply = await stranger.post("/v1/jobs", json={"type": "limited"})
            assert reply.status_code == 202
        (job,) = (await full.get("/v1/jobs", params={"limit": 1})).json()["jobs"]
        await full.delete(f"/v1/jobs/{job['id']}")
        assert (await full.post("/v1/jobs", json={"type": "limited"})).status_code == 202


async def test_one_tenants_rate_is_not_anothers(house: House, stranger: httpx2.AsyncClient) -> None:
    _, key = house.new_tenant(rate_per_second=1, burst=1)
    async with house.caller(key) as busy:
        replies = [await busy.post("/v1/jobs", json={"type": "limited"}) for _ in range(5)]
        assert [reply.status_code for reply in replies].count(429) >= 3
        assert (await stranger.post("/v1/jobs", json={"type": "limited"})).status_code == 202


async def test_a_raised_limit_holds_at_once(house: House, operator: httpx2.AsyncClient) -> None:
    who, key = house.new_tenant(rate_per_second=1, burst=1, depth_limit=1)
    async with house.caller(key) as caller:
        assert (await caller.post("/v1/jobs", json={"type": "limited"})).status_code == 202
        assert (await caller.post("/v1/jobs", json={"type": "limited"})).status_code == 429
        await operator.patch(
            f"/v1/tenants/{who}", json={"depth_limit": 9, "rate_per_second": 1_000_000}
        )
        assert (await caller.post("/v1/jobs", json={"type": "limited"})).status_code == 202


async def test_limits_say_what_else_is_bounded(tenant: httpx2.AsyncClient) -> None:
    seen = (await tenant.get("/v1/limits")).json()
    assert seen["batch_jobs_max"] > 0
    assert seen["batch_values_max"] > seen["payload_values_max"] > 0
    assert seen["payload_bytes_max"] > 0
    assert seen["jobs_left"] == seen["burst"]
    too_many = await tenant.post("/v1/jobs/batch", json=batch(seen["batch_jobs_max"] + 1))
    problem(too_many, 422, "INVALID_REQUEST", "/jobs")


# -- overload ------------------------------------------------------------------------------------


@pytest.fixture
def small_house(postgres_server: Server) -> Iterator[House]:
    """A server that lets twenty jobs wait for the disk."""
    with own_house(postgres_server, "small_house", submit_waiting_max=20) as house:
        yield house


async def test_overload_sheds_before_memory_grows(small_house: House) -> None:
    _, key = small_house.new_tenant(tier="enterprise")
    async with small_house.caller(key) as caller:
        assert (await caller.post("/v1/jobs", json={"type": "limited"})).status_code == 202
        submissions = small_house.platform.submissions
        most = 0
        replies = []
        for _ in range(10):
            calls = [caller.post("/v1/jobs/batch", json=batch(10)) for _ in range(30)]
            replies += await asyncio.gather(*calls)
            most = max(most, sum(group.jobs_waiting for group in submissions._groups.values()))
        shed = [reply for reply in replies if reply.status_code != 200]
        assert shed
        for reply in shed:
            problem(reply, 503, "OVERLOADED")
        assert most <= 20
        accepted = sum(reply.json()["accepted"] for reply in replies if reply.status_code == 200)
        limits = (await caller.get("/v1/limits")).json()
        assert limits["depth"] == accepted + 1  # what was shed left nothing behind
        assert limits["refused"]["OVERLOADED"] == len(shed)


async def test_any_server_tells_what_the_owner_knows(
    house: House, tenant: httpx2.AsyncClient
) -> None:
    """With two servers behind one address every second answer was that nothing waits."""
    assert (await tenant.post("/v1/jobs/batch", json=batch(2))).status_code == 200
    with open_house(house.dsn) as other:
        async with (
            other.caller(tenant.headers["authorization"].split()[1]) as far,
            other.caller(house.operator_key) as staff,
        ):
            name = (await tenant.get("/v1/spend-cap")).json()["tenant"]
            for caller, path in ((far, "/v1/limits"), (staff, f"/v1/tenants/{name}/limits")):
                found = await caller.get(path)
                assert (found.status_code, found.json()["depth"]) == (200, 2), found.text
