"""Two servers that own half of the shards each, and a worker that was told of one of them."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import asyncpg
import httpx2
from tests.acceptance.house import House, Server

from fairway.core.ids import shard_of
from fairway.core.lifecycle import State
from fairway.core.tenant import TenantSettings
from fairway.runtime.random_ids import new_api_key
from fairway.store import leadership
from fairway.store.registry import tenants

SHARDS = 4
SLOTS = 12


class Split:
    """The house with two owners, and a tenant with jobs at each."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.keys: list[str] = ["", ""]  # of a tenant at the first owner, and at the second
        self.servers: list[Server] = []
        self._owners: dict[int, int] = {}  # shard → which of the servers owned it at first

    async def open(self) -> None:
        house = self.house
        await house.found(SHARDS)
        self.servers = [house.start_server() for _ in range(2)]
        await asyncio.gather(*(server.ready() for server in self.servers))
        connection = await asyncpg.connect(house.dsn)
        try:
            async with asyncio.timeout(60):
                while sorted(self._owners.values()) != [0, 0, 1, 1]:  # they share the shards
                    await asyncio.sleep(0.1)
                    found = await leadership.read_owners(connection)
                    urls = [server.url for server in self.servers]
                    self._owners = {s: urls.index(one.owner_url) for s, one in found.items()}
            for number in range(SHARDS):
                tenant, key = await self._tenant(connection, f"tenant-{number}")
                self.keys[self._owners[tenant % SHARDS]] = key
        finally:
            await connection.close()

    async def _tenant(self, connection: Any, name: str) -> tuple[int, str]:
        tenant = await tenants.add_tenant(connection, name, TenantSettings(tier="enterprise"))
        assert tenant is not None
        key = new_api_key("tenant")
        stored = tenants.StoredKey(key.id, key.scope, tenant.id, key.secret_hash)
        await tenants.add_key(connection, stored)
        return tenant.id, key.text

    async def post(self, owner: int, count: int, **payload: Any) -> list[str]:
        """Jobs of the tenant at this owner, handed in at the first server."""
        jobs = [{"type": "nap", "pool": "short", "payload": payload}] * count
        headers = {"authorization": f"Bearer {self.keys[owner]}"}
        async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
            reply = await http.post(
                f"{self.servers[0].url}/v1/jobs/batch", json={"jobs": jobs}, headers=headers
            )
        assert reply.status_code < 300, reply.text
        ids = [str(one["id"]) for one in reply.json()["items"]]
        assert {self._owners[shard_of(job)] for job in ids} == {owner}
        return ids

    async def replace_of_second(self) -> str:
        """As `post`, one job that would take the place of another."""
        unique = {"key": "only", "on_conflict": "replace"}
        job = {"type": "nap", "pool": "short", "unique": unique}
        headers = {"authorization": f"Bearer {self.keys[1]}"}
        async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
            reply = await http.post(f"{self.servers[0].url}/v1/jobs", json=job, headers=headers)
        assert reply.status_code == 202, reply.text
        return str(reply.json()["id"])

    async def done(self) -> list[int]:
        """How many jobs have succeeded, owner by owner."""
        rows = await self.house.book.rows()
        ended = [
            self._owners[shard_of(row.id)] for row in rows.values() if row.state == State.SUCCEEDED
        ]
        return [ended.count(0), ended.count(1)]

    async def until_each(self, at_least: int) -> list[int]:
        """Both are served: from now on they are compared."""
        async with asyncio.timeout(60):
            while min(found := await self.done()) < at_least:  # noqa: ASYNC110  (other processes)
                await asyncio.sleep(0.05)
        return found

    async def until_done(self, at_least: int, within_seconds: float = 60.0) -> list[int]:
        async with asyncio.timeout(within_seconds):
            while sum(found := await self.done()) < at_least:  # noqa: ASYNC110  (other processes)
                await asyncio.sleep(0.1)
        return found

    async def workers(self) -> list[list[dict[str, Any]]]:
        """As each server that lives lists them."""
        headers = {"authorization": f"Bearer {self.house.operator_key}"}
        lists = []
        async with httpx2.AsyncClient(timeout=10, trust_env=False) as http:
            for server in self.servers:
                reply = await http.get(f"{server.url}/v1/workers", headers=headers)
                lists.append(reply.json()["workers"])
        return lists


async def test_one_worker_serves_both_owners_alike_and_goes_on_when_one_is_killed(
    house: House, figures: dict[str, str]
) -> None:
    split = Split(house)
    await split.open()
    worker = house.start_worker([split.servers[0].url], pools=(f"short={SLOTS}",))
    await worker.says("serving owners")

    accepted = [*await split.post(0, 500, seconds=0.05), *await split.post(1, 500, seconds=0.05)]
    before = await split.until_each(20)
    after = await split.until_done(sum(before) + 240)
    first, second = after[0] - before[0], after[1] - before[1]
    share = first / (first + second)
    figures["one worker, two owners: share of the first"] = f"{share:.2f}"
    assert 0.4 < share < 0.6, "both wait, and both are served alike"
    lists = await split.workers()
    assert [[one["slots"] for one in seen] for seen in lists] == [[{"short": SLOTS}]] * 2
    assert lists[0][0]["life"] == lists[1][0]["life"], "it is one worker, whoever is asked"
    await split.until_done(1000)

    accepted += await split.post(1, 100, seconds=0.02)  # of the second alone: it has all slots
    await split.until_done(1100)

    accepted += [*await split.post(0, 60, seconds=0.2), *await split.post(1, 60, seconds=0.2)]
    await split.until_done(1120)
    await split.servers.pop().kill()
    accepted.append(await split.replace_of_second())  # only an owner can: it waits for the next
    await split.until_done(1221)
    assert worker.alive
    await house.check(accepted)
    worker.send(signal.SIGTERM)
    assert await worker.ended(15) == 0
