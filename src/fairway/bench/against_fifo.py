"""The engine's rate with fair share over its rate with first come, first served.

Both on one database, measured in turns, so that a noisy moment meets both; who goes first changes,
and a first run on the fresh database, which is slower whoever has it, is not counted.
"""

from __future__ import annotations

import statistics

from fairway.bench.engine import SLOTS, batches
from fairway.bench.house import House, house


async def throughput_ratio(tenants: int, seconds: float, repeats: int = 3) -> float:
    rates: dict[str, list[float]] = {"fair": [], "fifo": []}
    async with house(tenants) as place:
        await _rate(place, "fair", seconds / 2)
        for number in range(repeats):
            for scheduler in sorted(rates, reverse=number % 2 == 1):
                rates[scheduler].append(await _rate(place, scheduler, seconds))
    return statistics.median(rates["fair"]) / statistics.median(rates["fifo"])


async def _rate(place: House, scheduler: str, seconds: float) -> float:
    server = await place.start_server(FAIRWAY_SCHEDULER=scheduler)
    worker = await place.start_worker(SLOTS)
    rate, _ = await batches(place, seconds)
    await place.stop(worker)
    await place.stop(server)
    return rate
