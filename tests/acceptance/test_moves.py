"""Tenants are moved between two servers: one that stands still meanwhile accepts nothing twice, and
with very many jobs on the way others wait no longer for theirs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

import asyncpg
import httpx2
import pytest
from tests.acceptance.cluster import URL
from tests.acceptance.house import House
from tests.acceptance.test_two_owners import Split

JOBS = int(os.environ.get("FAIRWAY_MOVED_JOBS", "1000000"))
TO = 7
KEYS = 20
BEFORE_SECONDS = 15.0
SLOWER_MAX = 1.5  # of others' p99 while rows move, beside the same load before
NOISE_SECONDS = 0.1  # below this a ratio says nothing


class Others:
    """A tenant that hands jobs in, one by one, and hears when each was accepted."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.seconds: list[float] = []
        self.ids: list[str] = []
        self._http = http

    async def go_on(self) -> None:
        async with self._http:
            while True:
                began = time.monotonic()
                reply = await self._http.post("/v1/jobs", json={"type": "other", "pool": "short"})
                assert reply.status_code == 202, reply.text
                self.seconds.append(time.monotonic() - began)
                self.ids.append(reply.json()["id"])
                await asyncio.sleep(0.01)

    def take_p99(self) -> float:
        seconds, self.seconds = sorted(self.seconds), []
        return seconds[len(seconds) * 99 // 100]


@pytest.mark.skipif(bool(URL), reason="tenants cannot be moved on a cluster")
async def test_a_server_that_stood_still_accepts_no_key_twice(house: House) -> None:
    """It let requests in before, and wakes when their tenant is elsewhere, and has their keys."""
    split = Split(house)
    await split.open()
    awake, frozen = split.servers
    connection = await asyncpg.connect(house.dsn)
    key, name = split.keys[1], await _name_of(connection, split.keys[1])
    keys = [f"key-{n}" for n in range(KEYS)]
    operator, here, there = (
        _caller(awake.url, house.operator_key),
        _caller(awake.url, key),
        _caller(frozen.url, key),
    )
    async with operator, here, there:
        found = await operator.post("/v1/shards/split", json={"to": 8})
        assert found.status_code == 200, found.text
        before = await _post(there, "before")
        assert before.status_code == 202, before.text
        frozen.send_tree(signal.SIGSTOP)
        late = [asyncio.create_task(_post(there, one)) for one in keys]  # they are at its door
        await asyncio.sleep(0.5)
        asked = {"tenant": name, "to": TO}
        reply = await operator.post("/v1/shards/move", json=asked)
        assert reply.status_code == 202, reply.text
        last = await _over(operator)
        assert last["state"] == "done", last
        ids = [await _accepted(here, one) for one in keys]
        frozen.send_tree(signal.SIGCONT)
        for one, reply in zip(ids, await asyncio.gather(*late), strict=True):
            assert reply.status_code == 503 or reply.json()["id"] == one, reply.text
        assert [await _accepted(there, one) for one in keys] == ids  # once it has heard
        assert await _accepted(there, "before") == before.json()["id"]
    rows = await connection.fetch(
        "SELECT used.shard, count(*) AS n FROM idempotency AS used JOIN tenants"
        " ON tenants.id = used.tenant AND tenants.name = $1 JOIN jobs"
        " ON jobs.tenant = used.tenant AND jobs.shard = used.shard GROUP BY 1",
        name,
    )
    count = KEYS + 1
    assert [tuple(row) for row in rows] == [(TO, count * count)]
    await connection.close()


async def _name_of(connection: Any, key: str) -> str:
    name: str = await connection.fetchval(
        "SELECT tenants.name FROM tenants JOIN api_keys ON api_keys.tenant = tenants.id"
        " WHERE strpos($1, api_keys.id) > 0",
        key,
    )
    return name


async def _post(http: httpx2.AsyncClient, key: str) -> httpx2.Response:
    headers = {"idempotency-key": key}
    return await http.post("/v1/jobs", json={"type": "nap", "pool": "short"}, headers=headers)


async def _accepted(http: httpx2.AsyncClient, key: str) -> str:
    """Its id, once somebody takes it."""
    async with asyncio.timeout(30):
        while True:
            reply = await _post(http, key)
            if reply.status_code != 503:
                break
            await asyncio.sleep(0.2)
    assert reply.status_code in (200, 202), reply.text
    found: str = reply.json()["id"]
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_a_million_jobs_move_while_others_go_on(
    house: House, figures: dict[str, str]
) -> None:
    await Split(house).open()
    url, connection = house.servers[0].url, await asyncpg.connect(house.dsn)
    (moved, home), (_, other_home) = await connection.fetch(
        "SELECT id, id % 4 FROM tenants WHERE name IN ('tenant-3', 'acme') ORDER BY id DESC"
    )
    assert home == other_home  # who shares the shard has most to lose
    operator = _caller(url, house.operator_key)
    found = await operator.post("/v1/shards/split", json={"to": 8})
    assert found.status_code == 200, found.text
    await _fill(connection, moved, home)
    others = Others(_caller(url, house.api_key))
    going_on = asyncio.create_task(others.go_on())
    await asyncio.sleep(BEFORE_SECONDS)
    before, began = others.take_p99(), time.monotonic()
    reply = await operator.post("/v1/shards/move", json={"tenant": "tenant-3", "to": TO})
    assert reply.status_code == 202, reply.text
    last = await _over(operator)
    took, during = time.monotonic() - began, others.take_p99()
    going_on.cancel()
    figures[f"moving {JOBS} queued jobs"] = (
        f"{took:.0f} s; {len(others.ids)} jobs of others, p99 {before * 1000:.1f} ms before,"
        f" {during * 1000:.1f} meanwhile: {during / before:.2f}"
    )
    assert last["state"] == "done", last
    rows = await connection.fetch(
        "SELECT shard, count(*) AS n, count(DISTINCT id) AS ids FROM jobs WHERE tenant = $1"
        " GROUP BY 1",
        moved,
    )
    assert [tuple(row) for row in rows] == [(TO, JOBS, JOBS)]  # none is lost, none is there twice
    there = await connection.fetch("SELECT id::text FROM jobs WHERE id = ANY($1)", others.ids)
    assert len(there) == len(set(others.ids)) == len(others.ids)
    assert during < max(SLOWER_MAX * before, NOISE_SECONDS)
    await connection.close()
    await operator.aclose()


async def _over(operator: httpx2.AsyncClient) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = (await operator.get("/v1/shards")).json()["moves"][0]
        if found["finished_at"] is not None:
            return found
        await asyncio.sleep(0.5)


def _caller(url: str, key: str) -> httpx2.AsyncClient:
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False)


async def _fill(connection: Any, tenant: int, shard: int) -> None:
    """Queued jobs, as if they had been handed in: rows alone, in the form of one that was."""
    number = await connection.fetchval("INSERT INTO job_types (name) VALUES ('waits') RETURNING id")
    await connection.execute(
        "INSERT INTO jobs (shard, id, tenant, type, pool, priority, state, payload)"
        " SELECT $1::int, (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0')"
        "   || '7' || lpad(to_hex($1::int), 3, '0') || '8' || lpad(to_hex(n::int), 15, '0'))::uuid,"
        " $2, $3, 1, 5, 1, '{}' FROM generate_series(1, $4::int) AS n",
        shard,
        tenant,
        number,
        JOBS,
    )
