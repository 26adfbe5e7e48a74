"""Shards over HTTP: who owns which, more of them, and tenants that were given one."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.api.house import open_house, problem

from fairway.core.ids import shard_of


async def test_shards_are_listed_and_made_more_and_a_tenant_is_given_one(database_url: str) -> None:
    with open_house(database_url, shard_count=2) as house:
        async with house.caller(house.operator_key) as operator:

            async def shards(count: int) -> list[dict[str, Any]]:
                async with asyncio.timeout(10):
                    while True:
                        found = (await operator.get("/v1/shards")).json()
                        if found["count"] == count and all(s["is_open"] for s in found["shards"]):
                            return list(found["shards"])
                        await asyncio.sleep(0.02)

            assert [one["shard"] for one in await shards(2)] == [0, 1]
            large = {"name": "large", "shard": 3}
            early = await operator.post("/v1/tenants", json=large)
            problem(early, 422, "INVALID_REQUEST", "/shard")
            done = await operator.post("/v1/shards/split", json={"to": 4})
            assert done.json() == {"before": 2, "count": 4}
            found = await shards(4)
            assert {one["owner"] for one in found} == {house.platform.ownership.server_name}
            told = (await operator.get("/v1/servers")).json()
            assert (told["shards_owned"], told["shards"]) == (4, 4)
            fewer = await operator.post("/v1/shards/split", json={"to": 3})
            problem(fewer, 409, "CONFLICT")
            many = await operator.post("/v1/shards/split", json={"to": 4096})
            problem(many, 409, "CONFLICT")
            lines = (await operator.get("/v1/audit")).json()["entries"]
            (line,) = [one for one in lines if one["action"] == "split_shards"]
            assert (line["before"], line["after"]) == ({"shards": 2}, {"shards": 4})

            added = (await operator.post("/v1/tenants", json=large)).json()
            assert added["shard"] == 3
        async with house.caller(added["api_key"]) as tenant:
            made = (await tenant.post("/v1/jobs", json={"type": "of.large"})).json()
            assert shard_of(made["id"]) == 3
            assert (await tenant.get(f"/v1/jobs/{made['id']}")).json()["state"] == "queued"
            listed = (await tenant.get("/v1/jobs")).json()
            assert [one["id"] for one in listed["jobs"]] == [made["id"]]
        async with house.caller(house.operator_key) as operator:
            (mine,) = [one for one in await shards(4) if one["shard"] == 3]
            assert (mine["tenants"], mine["queued"]) == (1, 1)
