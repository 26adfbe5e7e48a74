"""100 000 dead letters: questions stay quick, a replay keeps its rate and survives its server.

`pytest -m slow` runs this.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import asyncpg
import pytest
from tests.acceptance.house import House

from fairway.core.ids import ShardId
from fairway.runtime.clock import SystemClock
from fairway.runtime.random_ids import JobIdFactory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COUNT = 100_000
CAUSES = 50
COLUMNS = ("shard", "id", "tenant", "type", "pool", "priority", "state", "attempts", "deliveries",
           "payload", "error", "fingerprint", "finished_at")  # fmt: skip


async def bury(house: House) -> None:
    """So many dead jobs, straight into the store."""
    connection = await asyncpg.connect(house.dsn)
    try:
        await connection.execute("ALTER TABLE jobs DISABLE TRIGGER trace")
        tenant = await connection.fetchval("SELECT id FROM tenants")
        type_ = await connection.fetchval(
            "INSERT INTO job_types (name) VALUES ('nap') RETURNING id"
        )
        now = await connection.fetchval("SELECT now()")
        ids = JobIdFactory(SystemClock()).make(ShardId(0), COUNT)
        error = b'{"failure":"app_error","reason":"attempts_exhausted","type":"E","message":"no"}'
        rows = [
            (0, job, tenant, type_, 1, 5, 4, 5, 5, b'{"seconds":0}', error, n % CAUSES, now)
            for n, job in enumerate(ids)
        ]
        await connection.copy_records_to_table("jobs", columns=COLUMNS, records=rows)
        await connection.execute("ANALYZE jobs")
    finally:
        await connection.close()


async def timed(house: House, method: str, path: str, **options: Any) -> tuple[float, Any]:
    began = time.monotonic()
    reply = await house.call(method, path, **options)
    assert reply.status_code < 300, reply.text
    return time.monotonic() - began, reply.json()


async def count(house: House, where: str) -> int:
    connection = await asyncpg.connect(house.dsn)
    try:
        return int(await connection.fetchval(f"SELECT count(*) FROM jobs WHERE {where}"))
    finally:
        await connection.close()


async def until_done(house: House, path: str, least: int) -> dict[str, Any]:
    async with asyncio.timeout(120):
        while True:
            _, action = await timed(house, "GET", path)
            if action["state"] != "running" or action["done"] >= least:
                found: dict[str, Any] = action
                return found
            await asyncio.sleep(0.2)


async def test_100_000_dead_letters(house: House, figures: dict[str, str]) -> None:
    first, second = house.start_server(), house.start_server()
    await first.ready()
    await second.ready()
    await bury(house)
    listing, page = await timed(house, "GET", "/v1/dead-letters?type=nap&limit=200")
    assert len(page["jobs"]) == 200
    grouping, groups = await timed(house, "GET", "/v1/dead-letters/groups")
    assert [group["count"] for group in groups["groups"]] == [COUNT // CAUSES] * CAUSES
    assert [kind["count"] for kind in groups["types"]] == [COUNT]
    replay = {"act": "replay", "filter": {"type": "nap"}}
    counting, dry = await timed(house, "POST", "/v1/bulk-actions", json=replay | {"dry_run": True})
    assert dry == {"matched": COUNT, "is_exact": True}
    assert max(listing, grouping, counting) < 5, (listing, grouping, counting)

    # A rate that is kept, and an abort that stops it.
    began = time.monotonic()
    _, action = await timed(house, "POST", "/v1/bulk-actions", json=replay | {"per_second": 1000})
    path = f"/v1/bulk-actions/{action['id']}"
    await until_done(house, path, 2000)
    _, aborted = await timed(house, "POST", f"{path}/abort")
    took = time.monotonic() - began
    assert aborted["state"] == "aborted"
    assert aborted["done"] <= 1000 * took + 200
    assert await count(house, "state = 1") == aborted["done"]

    # The rest as fast as it goes; its server dies in the middle.
    fast = replay | {"per_second": 10_000}
    _, action = await timed(house, "POST", "/v1/bulk-actions", json=fast)
    path = f"/v1/bulk-actions/{action['id']}"
    moved = await until_done(house, path, 10_000)
    assert moved["state"] == "running"
    _, owner_url = await house.book.owner()
    owner = next(server for server in house.servers if server.url == owner_url)
    await owner.kill()
    house.servers.remove(owner)
    began = time.monotonic()
    done = await until_done(house, path, COUNT)
    replaying = time.monotonic() - began
    assert (done["state"], done["done"]) == ("done", COUNT - aborted["done"])
    assert await count(house, "state = 1") == COUNT, "none lost"
    assert await count(house, "cardinality(history) <> 1") == 0, "none replayed twice"
    figures["100 000 dead letters"] = (
        f"list {listing * 1000:.0f} ms, groups {grouping * 1000:.0f} ms, count"
        f" {counting * 1000:.0f} ms; killed at {moved['done']}, the rest in {replaying:.0f} s"
    )

    # They run at the tenant's fair share like any other job.
    house.start_worker(pools=("short=100",))
    async with asyncio.timeout(120):
        while await count(house, "state = 3") < 2000:  # noqa: ASYNC110  # looks at the store
            await asyncio.sleep(0.5)
