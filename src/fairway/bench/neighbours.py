"""The parts of `fairway bench fairness` that are about waiting: what others' floods do to a tenant.

A small tenant submits some jobs a second, open loop, and its pick-up counts from the intended send.
It does so in three houses: in one it is alone; in one a neighbour has a million jobs queued; in one
a hundred thousand free tenants have one each as well. The neighbours' jobs are naps, so slots are
scarce and processors are not. The houses are measured in turns, so that whatever else the machine
does meets all three; a house's p99 is the median of those of its turns.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median
from typing import NamedTuple

from fairway.bench.house import House, house
from fairway.bench.load import closed_loop, open_loop, post

SLOTS_HERE = 50
NAP_SECONDS = 0.02
VICTIM, NOISY = 0, 1
PER_SECOND = 40.0
LEARN_SECONDS = 14.0
SETTLE_SECONDS = 8.0  # a worker that comes has a hundred thousand tenants read anew
TURNS = 5


class Waits(NamedTuple):
    """Pick-up p99 of the small tenant, in milliseconds."""

    alone_ms: float
    with_neighbour_ms: float
    with_free_burst_ms: float


async def waits(seconds: float, flood_jobs: int, free_tenants: int) -> Waits:
    """Each house for so many seconds in all."""
    async with AsyncExitStack() as stack:
        places = [await stack.enter_async_context(_served(free_tenants)) for _ in Waits._fields]
        _, with_neighbour, with_free_burst = places
        await asyncio.sleep(LEARN_SECONDS)  # they read all those new tenants, more than once
        await _flood(with_neighbour, flood_jobs)
        await _flood(with_free_burst, flood_jobs)
        await _burst(with_free_burst, free_tenants)
        p99s_ms: list[list[float]] = [[] for _ in places]
        for _ in range(TURNS):
            for place, found in zip(places, p99s_ms, strict=True):
                found.append(await _pickup_p99_ms(place, seconds / TURNS))
    return Waits(*(median(found) for found in p99s_ms))


@asynccontextmanager
async def _served(free_tenants: int) -> AsyncIterator[House]:
    async with house(free_tenants + 2) as place:
        await place.set_terms([VICTIM, NOISY], weight=10)
        await place.set_terms(range(2, free_tenants + 2), tier="free")
        await place.start_server()
        yield place


def _nap_body(count: int) -> bytes:
    nap = {"type": "bench.nap.0", "payload": {"who": "noisy", "seconds": NAP_SECONDS}}
    return json.dumps({"jobs": [nap] * count}, separators=(",", ":")).encode()


async def _flood(place: House, jobs: int) -> None:
    request = post("/v1/jobs/batch", place.keys[NOISY], _nap_body(1000))
    await closed_loop(
        place.address, iter([(request, 1000)] * (jobs // 1000)), connections=4,
        may_go=lambda tally: True, is_over=lambda tally: False,
    )  # fmt: skip


async def _burst(place: House, tenants: int) -> None:
    body = json.dumps(
        {"type": "bench.nap.1", "payload": {"who": "free", "seconds": NAP_SECONDS}}
    ).encode()
    requests = ((post("/v1/jobs", key, body), 1) for key in place.keys[2 : tenants + 2])
    await closed_loop(
        place.address, requests, connections=32,
        may_go=lambda tally: True, is_over=lambda tally: False,
    )  # fmt: skip


async def _pickup_p99_ms(place: House, seconds: float) -> float:
    delays = place.folder / "delays.txt"
    delays.unlink(missing_ok=True)
    worker = await place.start_worker(SLOTS_HERE, FAIRWAY_BENCH_DELAYS=str(delays))
    await asyncio.sleep(SETTLE_SECONDS)

    def make(intended: float) -> bytes:
        body = b'{"type":"bench.timed","payload":{"sent":%.6f}}' % intended
        return post("/v1/jobs", place.keys[VICTIM], body)

    await open_loop(place.address, make, per_second=PER_SECOND, seconds=seconds, connections=16)
    await asyncio.sleep(1.0)
    await place.stop(worker)
    waited = sorted(float(line) for line in delays.read_text().split())
    return waited[int(len(waited) * 0.99)] * 1000
