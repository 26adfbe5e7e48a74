"""The engine's rate with fair share over its rate with first come, first served.

Both on one database, measured in pairs: what else the machine does changes from minute to minute,
and meets both of a pair. Who goes first changes, and a first run on the fresh database, which is
slower whoever has it, is not counted. A run in which nothing was recorded, because the machine
stood still for all of it, says nothing of either and is made again. The answer is the median of the
pairs' ratios.
"""

from __future__ import annotations

import statistics

from fairway.bench.engine import SLOTS, batches
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.core.errors import Unavailable
from fairway.rig.platform import SERVER

FIFO_SERVER = ("fairway.bench.fifo_server",)
TRIES = 3


async def throughput_ratio(tenants: int, seconds: float, pairs: int = 7) -> float:
    ratios: list[float] = []
    async with bench_platform(tenants) as platform:
        await _rate(platform, SERVER, seconds)
        for number in range(pairs):
            order = (SERVER, FIFO_SERVER) if number % 2 else (FIFO_SERVER, SERVER)
            rates = {command: await _rate(platform, command, seconds) for command in order}
            ratios.append(rates[SERVER] / rates[FIFO_SERVER])
    return statistics.median(ratios)


async def _rate(platform: BenchPlatform, command: tuple[str, ...], seconds: float) -> float:
    server = await platform.start_server(command=command)
    worker = await platform.start_worker(SLOTS)
    try:
        for _ in range(TRIES):
            rate, _ = await batches(platform, seconds)
            if rate > 0:
                return rate
        raise Unavailable(f"No job was recorded in {TRIES} runs of {seconds:g} s: is it too busy?")
    finally:
        await worker.stop()
        await server.stop()
