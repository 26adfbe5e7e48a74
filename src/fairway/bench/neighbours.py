"""The parts of `fairway bench fairness` that are about waiting: what others' floods do to a tenant.

A small tenant submits some jobs a second, open loop, and its pick-up counts from the intended send.
It does so on three platforms: on one it is alone; on one a neighbour has a million jobs queued; on
one a hundred thousand free tenants have one each as well. The neighbours' jobs are naps, so slots
are scarce and processors are not. The platforms are measured in turns, so that whatever else the
machine does meets all three, and compared within a turn; the median of the turns counts. A turn in
which other programs or guests had much of the machine is made again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import repeat
from statistics import median
from typing import NamedTuple

from fairway.bench.pickup import offer, pickup_seconds, timed
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig.foreign_load import Spent, undisturbed
from fairway.rig.load import closed_loop
from fairway.rig.load_client import post
from fairway.rig.quantile import quantile

SLOTS_HERE = 50
NAP_SECONDS = 0.02
VICTIM, NOISY = 0, 1
PER_SECOND = 120.0  # few of the pool, and enough for a p99
LEARN_SECONDS = 14.0
SETTLE_SECONDS = 8.0  # a worker that comes has a hundred thousand tenants read anew
TURNS = 7


class Waits(NamedTuple):
    """Pick-up p99 of the small tenant, in milliseconds."""

    alone_ms: float
    with_neighbour_ms: float
    with_free_burst_ms: float


class Turns(NamedTuple):
    kept: list[Waits]
    left_out: list[Spent | None]  # what passed in turns that others disturbed

    @property
    def victim_ratio(self) -> float:
        return median(turn.with_neighbour_ms / turn.alone_ms for turn in self.kept)

    @property
    def free_burst_ratio(self) -> float:
        return median(turn.with_free_burst_ms / turn.with_neighbour_ms for turn in self.kept)

    def medians(self) -> Waits:
        return Waits(*map(median, zip(*self.kept, strict=True)))


async def waits(turn_seconds: float, flood_jobs: int, free_tenants: int) -> Turns:
    """Each platform for so many seconds in each turn."""
    async with AsyncExitStack() as stack:
        platforms = [await stack.enter_async_context(_served(free_tenants)) for _ in Waits._fields]
        _, with_neighbour, with_free_burst = platforms
        await asyncio.sleep(LEARN_SECONDS)  # they read all those new tenants, more than once
        await _flood(with_neighbour, flood_jobs)
        await _flood(with_free_burst, flood_jobs)
        await _burst(with_free_burst, free_tenants)

        async def turn() -> Waits:
            return Waits(*[await _pickup_p99_ms(one, turn_seconds) for one in platforms])

        return Turns(*await undisturbed(turn, TURNS))


@asynccontextmanager
async def _served(free_tenants: int) -> AsyncIterator[BenchPlatform]:
    async with bench_platform(free_tenants + 2) as platform:
        await platform.set_entitlement([VICTIM, NOISY], weight=10)
        await platform.set_entitlement(range(2, free_tenants + 2), tier="free")
        await platform.start_server()
        yield platform


def _nap_body(count: int) -> bytes:
    nap = {"type": "bench.nap.0", "payload": {"who": "noisy", "seconds": NAP_SECONDS}}
    return json.dumps({"jobs": [nap] * count}, separators=(",", ":")).encode()


async def _flood(platform: BenchPlatform, jobs: int) -> None:
    request = post("/v1/jobs/batch", platform.keys[NOISY], _nap_body(1000))
    await closed_loop(platform.client(), repeat((request, 1000), jobs // 1000), connections=4)


async def _burst(platform: BenchPlatform, tenants: int) -> None:
    body = json.dumps(
        {"type": "bench.nap.1", "payload": {"who": "free", "seconds": NAP_SECONDS}}
    ).encode()
    requests = ((post("/v1/jobs", key, body), 1) for key in platform.keys[2 : tenants + 2])
    await closed_loop(platform.client(), requests, connections=32)


async def _pickup_p99_ms(platform: BenchPlatform, seconds: float) -> float:
    make = timed(repeat(platform.keys[VICTIM]))
    load = offer(platform, make, per_second=PER_SECOND, seconds=seconds, connections=16)
    _, waited = await pickup_seconds(platform, SLOTS_HERE, load, SETTLE_SECONDS)
    return quantile(waited, 0.99) * 1000
