"""No owner is left for minutes: jobs flow from the store, and owners that return double nothing."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.acceptance.checker import QUEUED, RUNNING, SUCCEEDED
from tests.acceptance.house import House

STOPPED_SECONDS = 120.0
PATIENCE_SECONDS = 15.0


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_all_owners_stopped_for_two_minutes_under_load(
    house: House, figures: dict[str, str]
) -> None:
    house.settings = {  # leases and terms as they are by default
        name: value for name, value in house.settings.items() if not name.endswith("_SECONDS")
    }
    house.start_server()
    house.start_server()
    owners = list(house.servers)
    own = dict(house.settings)
    house.settings |= {
        "FAIRWAY_OWNS_SHARDS": "false",
        "FAIRWAY_DEGRADED_AFTER_SECONDS": str(PATIENCE_SECONDS),
    }
    doors = [house.start_server(), house.start_server()]
    await asyncio.gather(*(server.ready() for server in house.servers))
    door_urls = [server.url for server in doors]
    workers = [house.start_worker(urls=door_urls) for _ in range(2)]
    await asyncio.gather(*(worker.says("worker ready") for worker in workers))
    house.servers = doors  # clients know those that stay
    async with house.load(rate=60, clients=6) as load:
        await load.has_accepted(200, within_seconds=60)
        stopped_at = time.time()
        for owner in owners:
            await owner.kill()
        await asyncio.sleep(STOPPED_SECONDS)
        back_at = time.time()
        house.settings = own
        returned = [house.start_server(int(one.url.rpartition(":")[2])) for one in owners]
        house.servers = doors
        await asyncio.gather(*(server.ready() for server in returned))
        await load.has_accepted(300, within_seconds=60)
    verdict = await house.check(load.accepted, drain_seconds=120)
    changes = await house.book.changes()
    names = {server.name for server in doors}
    pulled = [
        one
        for one in changes
        if (one.before, one.after) == (QUEUED, RUNNING) and one.writer in names
    ]
    ended = [one.at for one in changes if one.after == SUCCEEDED]
    first = min(one.at for one in pulled)
    while_away = [at for at in ended if first <= at < back_at]
    accepted = [at for at in load.accepted_at if first <= at < back_at]
    after = [at for at in ended if at >= back_at]
    assert first - stopped_at >= PATIENCE_SECONDS
    assert len(while_away) >= 0.9 * len(accepted), "jobs did not flow"
    assert verdict.ran_twice <= verdict.lost_leases + 20, verdict
    figures["all owners stopped for two minutes"] = (
        f"first pull after {first - stopped_at:.1f} s; {len(pulled)} pulled,"
        f" {len(while_away)} ended of {len(accepted)} accepted meanwhile; {len(after)} ended since;"
        f" {verdict.jobs} jobs, 0 lost, {verdict.lost_leases} leases lost,"
        f" {verdict.ran_twice} jobs ran twice"
    )
