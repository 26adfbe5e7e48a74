"""The engine's rate with fair share over its rate with first come, first served.

Both on one database, measured in pairs: what else the machine does changes from minute to minute,
and meets both of a pair. Who goes first changes, and a first run on the fresh database, which is
slower whoever has it, is not counted. The answer is the median of the pairs' ratios.
"""

from __future__ import annotations

import statistics

from fairway.bench.engine import SLOTS, batches
from fairway.bench.house import House, house


async def throughput_ratio(tenants: int, seconds: float, pairs: int = 7) -> float:
    ratios: list[float] = []
    async with house(tenants) as place:
        await _rate(place, "fair", seconds)
        for number in range(pairs):
            order = ("fair", "fifo") if number % 2 else ("fifo", "fair")
            rates = {scheduler: await _rate(place, scheduler, seconds) for scheduler in order}
            ratios.append(rates["fair"] / rates["fifo"])
    return statistics.median(ratios)


async def _rate(place: House, scheduler: str, seconds: float) -> float:
    server = await place.start_server(FAIRWAY_SCHEDULER=scheduler)
    worker = await place.start_worker(SLOTS)
    rate, _ = await batches(place, seconds)
    await place.stop(worker)
    await place.stop(server)
    return rate
