"""The engine's rate with fair share over its rate with first come, first served.

Two houses, measured in turns, so that a noisy moment meets both.
"""

from __future__ import annotations

import statistics

from fairway.bench.engine import SLOTS, batches
from fairway.bench.house import house


async def throughput_ratio(tenants: int, seconds: float, repeats: int = 3) -> float:
    rates: dict[str, list[float]] = {"fair": [], "fifo": []}
    async with house(tenants) as place:
        for _ in range(repeats):
            for scheduler, found in rates.items():
                server = await place.start_server(FAIRWAY_SCHEDULER=scheduler)
                worker = await place.start_worker(SLOTS)
                rate, _ = await batches(place, seconds)
                found.append(rate)
                await place.stop(worker)
                await place.stop(server)
    return statistics.median(rates["fair"]) / statistics.median(rates["fifo"])
