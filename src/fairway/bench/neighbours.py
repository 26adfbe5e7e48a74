"""The parts of `fairway bench fairness` that are about waiting: what others' floods do to a tenant.

A small tenant submits some jobs a second, open loop, and its pick-up counts from the intended send.
Its p99 is the median of those of five stretches. It is alone first; then a neighbour has a million
jobs queued; then a hundred thousand free tenants have one each as well. The neighbours' jobs are
naps, so slots are scarce and processors are not.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from fairway.bench.house import House, house
from fairway.bench.load import closed_loop, open_loop, post

SLOTS_HERE = 50
NAP_SECONDS = 0.02
VICTIM, NOISY = 0, 1
PER_SECOND = 40.0
LEARN_SECONDS = 14.0
STRETCHES = 5


class Waits(NamedTuple):
    """Pick-up p99 of the small tenant, in milliseconds."""

    alone_ms: float
    with_neighbour_ms: float
    with_free_burst_ms: float


async def waits(seconds: float, flood_jobs: int, free_tenants: int) -> Waits:
    async with house(free_tenants + 2) as place:
        await place.set_terms([VICTIM, NOISY], weight=10)
        await place.set_terms(range(2, free_tenants + 2), tier="free")
        await place.start_server()
        await asyncio.sleep(LEARN_SECONDS)  # it reads all those new tenants, more than once
        alone = await _pickup_p99_ms(place, seconds)
        await _flood(place, flood_jobs)
        with_neighbour = await _pickup_p99_ms(place, seconds)
        await _burst(place, free_tenants)
        with_free = await _pickup_p99_ms(place, seconds)
    return Waits(alone, with_neighbour, with_free)


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
    await asyncio.sleep(3.0)

    def make(intended: float) -> bytes:
        body = b'{"type":"bench.timed","payload":{"sent":%.6f}}' % intended
        return post("/v1/jobs", place.keys[VICTIM], body)

    await open_loop(place.address, make, per_second=PER_SECOND, seconds=seconds, connections=16)
    await asyncio.sleep(1.0)
    await place.stop(worker)
    return steady_p99([float(line) for line in delays.read_text().split()]) * 1000


def steady_p99(waits: Sequence[float]) -> float:
    """Of stretches in time, the median of their p99: a hiccup of the machine is in one of them."""
    ends = [len(waits) * n // STRETCHES for n in range(STRETCHES + 1)]
    stretches = [sorted(waits[start:end]) for start, end in itertools.pairwise(ends)]
    return median(one[int(len(one) * 0.99)] for one in stretches)
