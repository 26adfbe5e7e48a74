"""Time with real processes: a herd over a failover, an outage with schedules, idle lateness."""

from __future__ import annotations

import asyncio
import json
import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.acceptance.house import House
from tests.acceptance.pace import Pace

HERD = 3000
PER_SECOND = {
    "FAIRWAY_PROMOTE_PER_SECOND": "800",
    "FAIRWAY_PROMOTE_TENANT_PER_SECOND": "800",
}


async def rows(house: House, query: str) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(house.dsn)
    try:
        return [dict(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def hand_in(house: House, moments: list[datetime]) -> list[str]:
    """Naps, each due at its moment; answers their ids."""
    found: list[str] = []
    for start in range(0, len(moments), 500):
        jobs = [
            {"type": "nap", "execute_at": moment.isoformat(), "exact": True}
            for moment in moments[start : start + 500]
        ]
        reply = await house.call("POST", "/v1/jobs/batch", json={"jobs": jobs})
        assert reply.status_code == 200, reply.text
        found += [item["id"] for item in reply.json()["items"]]
    return found


async def promoted(house: House) -> int:
    (row,) = await rows(house, "SELECT count(*) AS n FROM jobs WHERE state > 0")
    return int(row["n"])


@pytest.mark.slow
async def test_a_herd_over_a_failover_loses_and_doubles_nothing(
    house: House, figures: dict[str, str]
) -> None:
    house.settings = house.settings | PER_SECOND
    await house.open(servers=2, workers=1)
    due = datetime.now(UTC) + timedelta(seconds=4)
    accepted = await hand_in(house, [due] * HERD)
    began = time.monotonic()
    while not 300 < (moved := await promoted(house)) < HERD:
        assert time.monotonic() - began < 30, moved
        await asyncio.sleep(0.05)
    (owner,) = await rows(house, "SELECT owner_url FROM shards")
    killed = next(server for server in house.servers if server.url == owner["owner_url"])
    await killed.kill()
    house.servers.remove(killed)
    verdict = await house.check(accepted, drain_seconds=60)
    seconds = time.monotonic() - began
    assert verdict.jobs == HERD
    assert seconds >= (HERD - moved) / 800 * 0.8, "it was spread at the configured rate"
    figures["a herd over a failover"] = (
        f"{HERD} jobs due at one second, owner killed after {moved}; all done in {seconds:.1f} s,"
        f" {verdict.ran_twice} ran twice"
    )


@pytest.mark.slow
async def test_idle_lateness(house: House, figures: dict[str, str]) -> None:
    await house.open()
    dice = random.Random(1)
    begin = datetime.now(UTC) + timedelta(seconds=5)
    moments = [begin + timedelta(seconds=dice.random() * 30) for _ in range(1000)]
    due = dict(zip(await hand_in(house, moments), moments, strict=True))
    with Pace() as pace:
        await asyncio.sleep(37)
    began = [
        (line["at"] - due[line["job"]].timestamp()) * 1000
        for line in map(json.loads, house.ledger.path.read_text().splitlines())
        if line["event"] == "begin"
    ]
    assert len(began) == 1000
    late = sorted(began)
    figures["idle lateness of 1 000 scheduled jobs"] = (
        f"p50 {late[500]:.0f} ms, p99 {late[990]:.0f} ms, most {late[-1]:.0f} ms"
        f" ({pace.slowdown:.1f} times as slow as alone)"
    )
    assert late[0] > -20, "never before its time"
    assert late[990] <= 150


@pytest.mark.slow
async def test_all_servers_down_with_a_schedule(house: House, figures: dict[str, str]) -> None:
    """Ten minutes and a minute, scaled down to 25 seconds and one."""
    house.settings = house.settings | {"FAIRWAY_SCHEDULE_SECONDS_MIN": "1"}
    await house.open()
    for policy in ("none", "last", "all"):
        body = {"every_seconds": 1, "type": "nap", "catch_up": policy, "overlap": "allow"}
        reply = await house.call("PUT", f"/v1/schedules/{policy}", json=body)
        assert reply.status_code == 201, reply.text
    await asyncio.sleep(4)
    killed_at = datetime.now(UTC)
    await house.servers[0].kill()
    await asyncio.sleep(25)
    back_at = datetime.now(UTC)
    await house.restart(house.servers[0]).ready()
    await asyncio.sleep(6)
    found = await rows(house, "SELECT name, tick, job FROM schedule_runs ORDER BY tick")
    missed = {
        policy: [
            run["tick"]
            for run in found
            if run["name"] == policy and killed_at < run["tick"] < back_at - timedelta(seconds=16)
        ]
        for policy in ("none", "last", "all")
    }
    assert missed["none"] == []
    assert missed["last"] == [], "the newest was on time, and stands for those before it"
    gaps = {later - tick for tick, later in zip(missed["all"], missed["all"][1:], strict=False)}
    assert gaps == {timedelta(seconds=1)}, "every tick, each once"
    jobs = await rows(house, "SELECT count(*) AS n FROM jobs")
    assert jobs[0]["n"] == len(found) == len({(run["name"], run["tick"]) for run in found})
    figures["25 s without a server, a tick a second"] = ", ".join(
        f"{policy}: {sum(run['name'] == policy for run in found)} runs" for policy in missed
    )
