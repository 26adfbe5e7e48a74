"""The autoscaler with real workers on one machine: a day's wave, what must not scale, and deaths.

A day takes five minutes here, so its patience is cut with it (`down_after_seconds`); how soon jobs
must start is not. Started by `make fleet-soak`.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import statistics
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.acceptance.house import APP, House
from tests.acceptance.processes import Program, tree, until

from fairway.core.autoscale.rules import rules_of
from fairway.core.pools import SHORT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

DAY_SECONDS = 300.0
DOWN_AFTER_SECONDS = 6.0
SLOTS = 3  # of a worker
NAP_SECONDS = 0.6
MEAN_SLOTS, SWING_SLOTS = 6.0, 5.0  # what runs at once, over the day
SLO_SECONDS = 0.5
DECISIONS_MAX = 40


class Seen(NamedTuple):
    at: float
    workers: int
    wanted: int


class Fleet:
    """A server, a fleet of the pool short, and somebody who watches both."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.program: Program | None = None
        self.seen: list[Seen] = []
        self._http = httpx2.AsyncClient(timeout=10, trust_env=False)

    async def open(self, **settings: Any) -> None:
        self.house.settings["FAIRWAY_LEASE_SECONDS"] = "short=10"
        self.house.settings["FAIRWAY_TERM_SECONDS"] = "3"
        await self.house.start_server().ready()
        await self.put({"mode": "on", "down_after_seconds": DOWN_AFTER_SECONDS} | settings)
        environment = {
            "FAIRWAY_URL": self.house.urls[0],
            "FAIRWAY_API_KEY": self.house.worker_key,
            "ACCEPTANCE_LEDGER": str(self.house.ledger.path),
            "FAIRWAY_DATA_DIR": str(self.house.room),
        }
        words = ["fleet", APP, "--pool", f"short={SLOTS}", "--grace", "10"]
        self.program = Program(words, environment, self.house.room / "fleet.log")
        self.house.programs.append(self.program)
        await self.until(lambda one: one["workers"] >= 1)

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"authorization": f"Bearer {self.house.operator_key}"}
        url = self.house.urls[0] + path
        reply = await self._http.request(method, url, headers=headers, json=body)
        assert reply.status_code < 300, reply.text
        return reply.json()

    async def put(self, settings: dict[str, Any]) -> Any:
        return await self.call("PUT", "/v1/autoscale/short", settings)

    async def view(self) -> Any:
        found = await self.call("GET", "/v1/autoscale/short")
        self.seen.append(Seen(time.monotonic(), found["workers"], found["wanted_workers"]))
        return found

    async def until(self, is_so: Any, within_seconds: float = 90.0) -> Any:
        async with asyncio.timeout(within_seconds):
            while True:
                if is_so(found := await self.view()):
                    return found
                await asyncio.sleep(0.2)

    async def decisions(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (
            await self.call("GET", "/v1/autoscale/decisions?pool=short&limit=200")
        )["items"]
        return items

    def keepers(self) -> list[int]:
        """Processes that the fleet started itself: a keeper each."""
        assert self.program is not None
        children = f"/proc/{self.program.pid}/task/{self.program.pid}/children"
        with open(children) as file:
            return [int(pid) for pid in file.read().split()]


@pytest.fixture
async def fleet(house: House) -> AsyncIterator[Fleet]:
    made = Fleet(house)
    yield made
    await made.close()


def load_at(second: float) -> float:
    """Slots in use at this second of the day: least at its beginning."""
    return MEAN_SLOTS - SWING_SLOTS * math.cos(2 * math.pi * second / DAY_SECONDS)


def ideal_worker_seconds() -> float:
    """Of somebody who knows the day beforehand and keeps the head-room that the policy keeps."""
    head_room = rules_of(SHORT).head_room
    per_second = (math.ceil(load_at(s) * head_room / SLOTS) for s in range(int(DAY_SECONDS)))
    return float(sum(per_second))


class Sent(NamedTuple):
    at: dict[str, float]  # job → when it was accepted
    late: float  # seconds that we were behind at the worst


async def send_day(house: House, day_seconds: float = DAY_SECONDS) -> Sent:
    """Jobs at the pace of the day, whatever becomes of them."""
    began, owed, at, late = time.monotonic(), 0.0, dict[str, float](), 0.0
    last = began
    while (now := time.monotonic()) - began < day_seconds:
        owed += load_at(now - began) / NAP_SECONDS * (now - last)
        late, last = max(late, now - last), now
        while owed >= 1:
            owed -= 1
            job = await house.post("nap", "short", seconds=NAP_SECONDS)
            at[job] = time.time()
        await asyncio.sleep(0.02)
    return Sent(at, late)


def waits(house: House, sent: dict[str, float]) -> list[float]:
    """How long each was waited for, by the ledger."""
    lines = [one for one in house.ledger.lines() if one["event"] == "begin" and one["job"] in sent]
    assert len({one["job"] for one in lines}) == len(sent), "some never ran"
    assert len(lines) == len(sent), "some ran twice: a worker that was busy went"
    return sorted(max(one["at"] - sent[one["job"]], 0.0) for one in lines)


async def test_a_day(fleet: Fleet, house: House, figures: dict[str, str]) -> None:
    await fleet.open(minimum_workers=1, maximum_workers=8)
    began = time.monotonic()
    watching = asyncio.create_task(watch(fleet))
    sent = await send_day(house)
    watching.cancel()
    within = [one for one in fleet.seen if began <= one.at <= began + DAY_SECONDS]
    cost = sum((b.at - a.at) * a.workers for a, b in pairwise(within))
    ideal = ideal_worker_seconds()
    verdict = await house.check(list(sent.at), 60)
    found = waits(house, sent.at)
    p99 = found[int(len(found) * 0.99)]
    decisions = await fleet.decisions()
    figures["day: jobs, p50 and p99 of their waits"] = (
        f"{len(found)}, {statistics.median(found) * 1000:.0f} ms, {p99 * 1000:.0f} ms"
        f" (sender behind by {sent.late:.1f} s at most)"
    )
    figures["day: worker-seconds, of the ideal"] = f"{cost:.0f}, {cost / ideal:.3f}"
    figures["day: decisions, most workers"] = (
        f"{len(decisions)}, {max(one.workers for one in within)}"
    )
    assert (verdict.ran_twice, verdict.lost_leases) == (0, 0), "a busy worker was ended"
    assert p99 < SLO_SECONDS
    assert len(decisions) <= DECISIONS_MAX
    assert cost <= 1.15 * ideal
    assert max(one.workers for one in within) >= math.ceil((MEAN_SLOTS + SWING_SLOTS) / SLOTS)


async def watch(fleet: Fleet) -> None:
    while True:
        await fleet.view()
        await asyncio.sleep(0.5)


async def test_backlog_that_cannot_run_wants_nobody(fleet: Fleet, house: House) -> None:
    """At its tenant's cap, and paused."""
    await fleet.open(minimum_workers=1, maximum_workers=6)
    await fleet.call("PATCH", "/v1/tenants/acme", {"cap": 1})
    capped = [await house.post("nap", "short", seconds=0.5) for _ in range(60)]
    fleet.seen.clear()
    await house.ledger.begins(capped[30])
    while len(fleet.seen) < 20:
        await fleet.view()
        await asyncio.sleep(0.2)
    assert {one.wanted for one in fleet.seen} == {1}
    await house.finished(capped[-1], 90)
    await fleet.call("POST", "/v1/pauses", {"tenant": "acme"})
    await fleet.call("PATCH", "/v1/tenants/acme", {"cap": None})
    for _ in range(60):
        await house.post("nap", "short", seconds=0.5)
    fleet.seen.clear()
    while len(fleet.seen) < 50:
        await fleet.view()
        await asyncio.sleep(0.2)
    assert {one.wanted for one in fleet.seen} == {1}
    assert {one["code"] for one in await fleet.decisions()} <= {"MINIMUM"}


async def test_a_tenth_of_the_workers_is_killed(
    fleet: Fleet, house: House, figures: dict[str, str]
) -> None:
    await fleet.open(minimum_workers=1, maximum_workers=10)
    await fleet.call("PUT", "/v1/autoscale/short/override", {"workers": 10, "for_seconds": 600})
    await fleet.until(lambda one: one["workers"] == 10)
    before = fleet.keepers()
    assert len(before) == 10
    sending = asyncio.create_task(send_day(house, 60.0))
    await asyncio.sleep(10)
    for pid in (before[3], *tree(before[3])):
        os.kill(pid, signal.SIGKILL)
    took = await until(
        lambda: len(fleet.keepers()) == 10 and before[3] not in fleet.keepers(), 60, "another one"
    )
    sent = await sending
    await house.check(list(sent.at), 60)
    last = max(sent.at.values()) - 20
    lines = [one for one in house.ledger.lines() if one["event"] == "begin"]
    late = [one["at"] - sent.at[one["job"]] for one in lines if sent.at.get(one["job"], 0) > last]
    figures["a tenth killed: replaced after"] = f"{took:.1f} s"
    p99 = sorted(late)[int(len(late) * 0.99)]
    figures["a tenth killed: p99 of waits 30 s later"] = f"{p99 * 1000:.0f} ms"
    assert p99 < SLO_SECONDS


async def test_a_fleet_ends_and_leaves_nobody(fleet: Fleet, house: House) -> None:
    await fleet.open(minimum_workers=2, maximum_workers=2)
    await fleet.until(lambda one: one["workers"] == 2)
    job = await house.post("nap", "short", seconds=2)
    await house.ledger.begins(job)
    assert fleet.program is not None
    family = [fleet.program.pid, *tree(fleet.program.pid)]
    fleet.program.send(signal.SIGTERM)
    assert await fleet.program.ended(60) == 0, fleet.program.said
    await until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in family), 30, "the end")
    assert (await house.view(job))["state"] in ("succeeded", "queued")
