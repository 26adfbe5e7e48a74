"""Two servers that own half of the shards each, and a worker that was told of one of them."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import asyncpg
import httpx2
from tests.acceptance.house import House, Server, free_port

from fairway.core.ids import shard_of
from fairway.core.lifecycle import State
from fairway.core.tenant import TenantSettings
from fairway.runtime.random_ids import new_api_key
from fairway.store.registry import tenants

SHARDS = 4
SLOTS = 12

#: A shard goes only to the server at the port that is written down for it, while it is.
PLACES = """
CREATE TABLE places (shard int, port text);
CREATE FUNCTION keep_place() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NEW.owner IS DISTINCT FROM OLD.owner
       AND EXISTS (SELECT FROM places WHERE shard = NEW.shard AND NEW.owner_url NOT LIKE port) THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER keep_place BEFORE UPDATE ON shards FOR EACH ROW EXECUTE FUNCTION keep_place();
"""


class Split:
    """The house with two owners, and a tenant with jobs at each."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.keys: list[str] = []  # of the tenant at the first owner, and at the second
        self.servers: list[Server] = []

    async def open(self) -> None:
        house, ports = self.house, [free_port(), free_port()]
        house.settings = {**house.settings, "FAIRWAY_SHARD_COUNT": str(SHARDS)}
        connection = await asyncpg.connect(house.dsn)
        try:
            await connection.execute(PLACES)
            places = [(shard, f"%:{ports[shard % 2]}") for shard in range(SHARDS)]
            await connection.executemany("INSERT INTO places VALUES ($1, $2)", places)
            found = [await self._tenant(connection, f"tenant-{number}") for number in range(2)]
            self.keys = [key for _, key in sorted(found)]
        finally:
            await connection.close()
        self.servers = [house.start_server(port) for port in ports]
        await asyncio.gather(*(server.ready() for server in self.servers))

    async def _tenant(self, connection: Any, name: str) -> tuple[int, str]:
        tenant = await tenants.add_tenant(connection, name, TenantSettings(tier="enterprise"))
        assert tenant is not None
        key = new_api_key("tenant")
        stored = tenants.StoredKey(key.id, key.scope, tenant.id, key.secret_hash)
        await tenants.add_key(connection, stored)
        return tenant.id % SHARDS % 2, key.text

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
        assert {shard_of(job) % 2 for job in ids} == {owner}
        return ids

    async def done(self) -> list[int]:
        """How many jobs have succeeded, owner by owner."""
        rows = await self.house.book.rows()
        ended = [shard_of(row.id) % 2 for row in rows.values() if row.state == State.SUCCEEDED]
        return [ended.count(0), ended.count(1)]

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

    async def free_places(self) -> None:
        """Whoever lives may own everything."""
        connection = await asyncpg.connect(self.house.dsn)
        await connection.execute("DELETE FROM places")
        await connection.close()


async def test_one_worker_serves_both_owners_alike_and_goes_on_when_one_is_killed(
    house: House, figures: dict[str, str]
) -> None:
    split = Split(house)
    await split.open()
    worker = house.start_worker([split.servers[0].url], pools=(f"short={SLOTS}",))
    await worker.says("serving owners")

    accepted = [*await split.post(0, 300, seconds=0.05), *await split.post(1, 300, seconds=0.05)]
    before = await split.done()
    after = await split.until_done(sum(before) + 240)
    first, second = after[0] - before[0], after[1] - before[1]
    share = first / (first + second)
    figures["one worker, two owners: share of the first"] = f"{share:.2f}"
    assert 0.4 < share < 0.6, "both wait, and both are served alike"
    lists = await split.workers()
    assert [[one["slots"] for one in seen] for seen in lists] == [[{"short": SLOTS}]] * 2
    assert lists[0][0]["life"] == lists[1][0]["life"], "it is one worker, whoever is asked"
    await split.until_done(600)

    accepted += await split.post(1, 100, seconds=0.02)  # of the second alone: it has all slots
    await split.until_done(700)

    accepted += [*await split.post(0, 60, seconds=0.2), *await split.post(1, 60, seconds=0.2)]
    await split.until_done(720)
    await split.servers.pop().kill()
    await split.free_places()
    await split.until_done(820)
    assert worker.alive
    await house.check(accepted)
    worker.send(signal.SIGTERM)
    assert await worker.ended(15) == 0
