"""Jobs whose ids name another shard than the one they are in, as of a tenant that was moved."""

from __future__ import annotations

from typing import Any

import asyncpg
from tests.api.house import House, open_house
from tests.api.worker import HandWorker

from fairway.core.ids import ShardId, shard_of
from fairway.services.platform import Platform

HOME, NAMED = ShardId(1), ShardId(0)


async def test_they_are_found_run_and_acted_on_where_they_are(database_url: str) -> None:
    with open_house(database_url, shard_count=2) as house:
        name, key = house.new_tenant(shard=HOME)
        moved_from(house, name, NAMED)
        worker_key = house.new_key({"scope": "worker"})
        async with house.caller(key) as tenant, house.caller(worker_key) as client:
            worker = HandWorker(client)
            await worker.hello()
            later = {"type": worker.type, "delay_seconds": 3600}
            sent = [(await tenant.post("/v1/jobs", json=later)).json()["id"] for _ in range(4)]
            assert {shard_of(one) for one in sent} == {HOME}
            good, bad, stopped, moved = await renamed(database_url, sent)

            await due(database_url, good)
            lease = await worker.lease()
            assert (lease["job"], lease["shard"]) == (good, HOME)
            heard = await worker.tell(worker.report(lease, result={"a": 1}))
            assert heard["recorded"] == [1]
            done = (await tenant.get(f"/v1/jobs/{good}")).json()
            assert done["state"] == "succeeded"

            await due(database_url, bad)
            why: dict[str, Any] = {"failure": "permanent", "error": {"type": "E", "message": "no"}}
            await worker.run(kind="failed", **why)
            (letter,) = (await tenant.get("/v1/dead-letters")).json()["jobs"]
            assert letter["id"] == bad
            assert (await tenant.post(f"/v1/dead-letters/{bad}/replay")).status_code == 202
            assert (await worker.run(result=None))["job"] == bad

            ended = await tenant.post("/v1/jobs/wait", json={"ids": [good, bad], "all": True})
            assert {one["id"] for one in ended.json()["jobs"]} == {good, bad}
            assert (await tenant.delete(f"/v1/jobs/{stopped}")).status_code == 200
            sooner = await tenant.patch(f"/v1/jobs/{moved}", json={"delay_seconds": 60})
            assert sooner.status_code == 200, sooner.text
            listed = (await tenant.get("/v1/jobs")).json()["jobs"]
            assert {one["id"]: one["state"] for one in listed} == {
                good: "succeeded", bad: "succeeded", stopped: "cancelled", moved: "scheduled"
            }  # fmt: skip
            await worker.leave()


def moved_from(house: House, name: str, before: ShardId) -> None:
    """What a server will read of a tenant that was in another shard before."""

    async def learn(platform: Platform) -> None:
        number = platform.directory.tenant_ids[name]
        platform.tenant_shards.learn(number, HOME, moved_from=(before,))

    house.inside(learn)


async def renamed(url: str, ids: list[str]) -> list[str]:
    """The same jobs, with ids that name the other shard."""
    new = [f"{one[:15]}{NAMED:03x}{one[18:]}" for one in ids]
    await told(url, "UPDATE jobs SET id = new.id FROM unnest($1::uuid[], $2::uuid[])"
               " AS new (old, id) WHERE jobs.id = new.old", ids, new)  # fmt: skip
    return new


async def due(url: str, job: str) -> None:
    await told(url, "UPDATE jobs SET execute_at = now() WHERE id = $1::uuid", job)


async def told(url: str, statement: str, *values: Any) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement, *values)
    finally:
        await connection.close()
