"""The only server restarts under many workers: no run is stopped, no lease lost, nobody's jobs go
to another tenant's worker."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg
import pytest
from tests.acceptance.hand_worker import HandWorker
from tests.acceptance.house import House, Server

from fairway.core.tenant import TenantSettings
from fairway.runtime.random_ids import new_api_key
from fairway.store.registry import tenants

WORKERS, SLOTS = 60, 8
PAYLOAD = {"text": "x" * 30_000}
PATIENT = {"FAIRWAY_LEASE_SECONDS": "short=20,medium=60,long=60", "FAIRWAY_TERM_SECONDS": "1.5"}
WITHIN_SECONDS = 60.0
JOBS_OF_A_NEIGHBOUR = 80


class Town:
    """A house whose only server has many workers, every second one a tenant's own."""

    def __init__(self, house: House, connection: asyncpg.Connection) -> None:
        self.house = house
        self.connection = connection
        self.hands: list[HandWorker] = []
        self.neighbour_key = ""
        self.sent = 0

    async def furnish(self) -> None:
        acme = await self.connection.fetchval("SELECT id FROM tenants WHERE name = 'acme'")
        terms = TenantSettings(tier="enterprise")
        neighbour = await tenants.add_tenant(self.connection, "neighbour", terms)
        assert neighbour is not None
        own, other = new_api_key("worker"), new_api_key("tenant")
        for key, owner in ((own, acme), (other, neighbour.id)):
            stored = tenants.StoredKey(key.id, key.scope, owner, key.secret_hash)
            await tenants.add_key(self.connection, stored)
        self.neighbour_key = other.text
        (url,) = self.house.urls
        for number in range(WORKERS):
            of_acme = number % 2 == 1
            secret = own.text if of_acme else self.house.worker_key
            self.hands.append(HandWorker(url, secret, "acme" if of_acme else None))

    async def fill(self) -> None:
        """So many jobs that every worker runs as many as it can."""
        job = {"type": "hand", "pool": "medium", "payload": PAYLOAD}
        for _ in range(SLOTS):
            body = {"jobs": [job] * WORKERS}
            reply = await self.house.call("POST", "/v1/jobs/batch", json=body)
            assert reply.status_code == 200, reply.text
        await self.until(lambda: self.held == WORKERS * SLOTS)

    @property
    def held(self) -> int:
        return sum(lease["pool"] == "medium" for hand in self.hands for lease in hand.held.values())

    async def restart(self, *, kill: bool) -> None:
        server = self.house.servers[0]
        before = [hand.hellos for hand in self.hands]
        await _end(server, kill=kill)
        await self.house.restart(server).ready(WITHIN_SECONDS)
        await self.send_neighbours_jobs()
        await self.until(
            lambda: all(hand.hellos > count for hand, count in zip(self.hands, before, strict=True))
        )
        await self.until(self._has_neighbour_run)

    async def send_neighbours_jobs(self) -> None:
        """While everybody greets: what a worker of acme's must never see."""
        headers = {"authorization": f"Bearer {self.neighbour_key}"}
        body = {"jobs": [{"type": "hand", "pool": "short"}] * JOBS_OF_A_NEIGHBOUR}
        reply = await self.house.call("POST", "/v1/jobs/batch", headers=headers, json=body)
        assert reply.status_code == 200, reply.text
        self.sent += JOBS_OF_A_NEIGHBOUR

    async def _has_neighbour_run(self) -> bool:
        assert not any(hand.foreign for hand in self.hands), "a job of another tenant's"
        return await self._count("pool = 1 AND state = 3") == self.sent

    async def _count(self, what: str) -> int:
        found: int = await self.connection.fetchval(f"SELECT count(*) FROM jobs WHERE {what}")
        return found

    async def until(self, holds: Callable[[], bool] | Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(WITHIN_SECONDS):
            while True:
                found = holds()
                if found if isinstance(found, bool) else await found:
                    return
                await asyncio.sleep(0.02)

    async def check(self) -> None:
        hands = self.hands
        seen = {
            "runs stopped": sum(len(hand.stopped) for hand in hands),
            "outcomes refused": sum(len(hand.refused) for hand in hands),
            "foreign jobs": sum(len(hand.foreign) for hand in hands),
            "leases lost": await self._count("pool = 2 AND deliveries > 0"),
            "running and not held": await self._count("pool = 2 AND state = 2") - self.held,
        }
        assert not any(seen.values()), seen
        assert self.held == WORKERS * SLOTS

    async def finish(self) -> None:
        """Everything ends under the lease that it was given out with first."""
        for hand in self.hands:
            hand.finish()
        await self.until(lambda: all(hand.is_settled for hand in self.hands))
        assert await self._count("pool = 2 AND state = 3 AND deliveries = 1") == WORKERS * SLOTS
        assert not any(hand.refused for hand in self.hands)


async def _end(server: Server, *, kill: bool) -> None:
    if kill:
        await server.kill()
    else:
        server.send(signal.SIGTERM)
        await server.ended(30)


@asynccontextmanager
async def busy_town(house: House) -> AsyncIterator[Town]:
    house.settings = house.settings | PATIENT
    connection = await asyncpg.connect(house.dsn)
    town = Town(house, connection)
    await house.open(servers=1, workers=0)
    await town.furnish()
    tasks = [asyncio.create_task(hand.run()) for hand in town.hands]
    try:
        await town.fill()
        yield town
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for hand in town.hands:
            hand.close()
        await connection.close()


async def restarts(house: House, times: int) -> None:
    async with busy_town(house) as town:
        for number in range(times):
            await town.restart(kill=number % 2 == 1)
            await town.check()
        await town.finish()


async def test_a_restart_of_the_only_server_costs_its_workers_nothing(house: House) -> None:
    await restarts(house, 2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_twenty_restarts_cost_nothing(house: House, figures: dict[str, str]) -> None:
    await restarts(house, 20)
    figures["20 restarts, 60 workers × 8 jobs"] = "0 runs stopped, 0 leases lost, 0 foreign jobs"
