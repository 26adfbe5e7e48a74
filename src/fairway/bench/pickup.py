"""How long jobs take from their client's intended send to the first line of their handler.

Open loop, Poisson arrivals. The handlers write what they saw to a file; one machine, one wall
clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

from fairway.bench.platform import BenchPlatform
from fairway.rig.arrivals import plan
from fairway.rig.load import Volley, open_loop
from fairway.rig.load_client import LoadClient, post

LoadT = TypeVar("LoadT")

COME_SECONDS = 2.0  # a worker is there by then
REST_SECONDS = 1.0  # after the last was sent


async def offer(
    platform: BenchPlatform,
    make: Callable[[float], bytes],
    *,
    per_second: float,
    seconds: float,
    connections: int,
) -> Volley:
    """`make` gets the intended wall-clock moment of its request."""
    client = LoadClient(platform.url)
    await client.open_beforehand(connections)

    async def shoot(number: int, intended: float) -> tuple[int, str]:
        return (await client.send(make(intended))).status, ""

    volley = await open_loop(plan(per_second, seconds, shape="poisson"), shoot)
    client.close()
    if volley.errors:
        raise RuntimeError(f"{len(volley.errors)} requests broke, the first: {volley.errors[0]}")
    return volley


def timed(keys: Iterator[str]) -> Callable[[float], bytes]:
    """Requests of one job each that says how long it took to be picked up."""

    def make(intended: float) -> bytes:
        body = b'{"type":"bench.timed","payload":{"sent":%.6f}}' % intended
        return post("/v1/jobs", next(keys), body)

    return make


async def pickup_seconds(
    platform: BenchPlatform,
    slots: int,
    load: Awaitable[LoadT],
    come_seconds: float = COME_SECONDS,
) -> tuple[LoadT, list[float]]:
    """Run a load with a worker of its own; answers what came of it, and what its handlers saw."""
    file = platform.folder / "delays.txt"
    file.unlink(missing_ok=True)
    worker = await platform.start_worker(slots, FAIRWAY_BENCH_DELAYS=str(file))
    await asyncio.sleep(come_seconds)
    found = await load
    await asyncio.sleep(REST_SECONDS)
    await worker.stop()
    return found, read_delays(file)


def read_delays(file: Path) -> list[float]:
    return [float(line) for line in file.read_text().split()] if file.exists() else []
