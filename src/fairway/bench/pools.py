"""`fairway bench pools`: do short jobs notice that long ones run beside them?

    alone   short jobs at a steady rate, nothing else
    mixed   the same short jobs, and for every 90 of them 9 medium and 1 long one

Both by turns, several times over, so that a slow minute of the machine meets both. Times are scaled
down: a medium job holds its slot for 0.3 s, a long one for 2 s in a process of its own. Pick-up is
counted from the client's intended send to the first line of the handler. Ratios travel; the rest is
this machine's own.
"""

from __future__ import annotations

import asyncio
import json
import random

from fairway.bench import output
from fairway.bench.output import screen
from fairway.bench.pickup import offer, read_delays
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.core.pools import BUILT_IN
from fairway.rig.load_client import post
from fairway.rig.quantile import quantile

TENANTS = 20
ROUNDS = 3
SLOTS = {"short": 50, "medium": 8, "long": 4}
SECONDS = {"short": 0.0, "medium": 0.3, "long": 2.0}
OF_A_HUNDRED = {"short": 90, "medium": 9, "long": 1}
REST_SECONDS = 3.0  # between turns: what is under way ends first
WARM_UP_SECONDS = 3.0


def run(*, json_output: bool, seconds: float, per_second: float) -> int:
    output.show(output.measured(measure(seconds, per_second)), json_output=json_output)
    return 0


async def measure(seconds: float, per_second: float) -> dict[str, float]:
    async with bench_platform(TENANTS) as platform:
        await platform.start_server()
        for pool, slots in SLOTS.items():
            delays = str(platform.folder / f"{pool}.delays")
            await platform.start_worker(slots, pool, FAIRWAY_BENCH_DELAYS=delays)
        await _turn(platform, per_second, WARM_UP_SECONDS, is_mixed=True)
        found: dict[str, list[float]] = {"alone": [], **{pool: [] for pool in SLOTS}}
        for number in range(ROUNDS):
            screen.print(f"round {number + 1} of {ROUNDS}")
            alone = await _turn(platform, per_second * 0.9, seconds, is_mixed=False)
            found["alone"] += alone["short"]
            mixed = await _turn(platform, per_second, seconds, is_mixed=True)
            for pool, delays_of in mixed.items():
                found[pool] += delays_of
        return _figures(found)


async def _turn(
    platform: BenchPlatform, per_second: float, seconds: float, *, is_mixed: bool
) -> dict[str, list[float]]:
    """The pick-up times of one turn, by pool."""
    files = {pool: platform.folder / f"{pool}.delays" for pool in SLOTS}
    before = {pool: len(read_delays(file)) for pool, file in files.items()}
    dice = random.Random(5)
    pools, weights = list(OF_A_HUNDRED), list(OF_A_HUNDRED.values())

    def make(intended: float) -> bytes:
        pool = dice.choices(pools, weights)[0] if is_mixed else "short"
        payload = {"sent": intended, "seconds": SECONDS[pool]}
        body = {"type": f"bench.held.{pool}", "pool": pool, "payload": payload}
        return post("/v1/jobs", dice.choice(platform.keys), json.dumps(body).encode())

    volley = await offer(platform, make, per_second=per_second, seconds=seconds, connections=16)
    if volley.refused:
        raise RuntimeError(f"{volley.refused} jobs were refused")
    await asyncio.sleep(REST_SECONDS)
    return {pool: read_delays(file)[before[pool] :] for pool, file in files.items()}


def _figures(found: dict[str, list[float]]) -> dict[str, float]:
    alone = quantile(found["alone"], 0.99)
    figures = {
        "short_alone_p50_ms": quantile(found["alone"], 0.5) * 1000,
        "short_alone_p99_ms": alone * 1000,
        "short_mixed_p50_ms": quantile(found["short"], 0.5) * 1000,
        "short_mixed_p99_ms": quantile(found["short"], 0.99) * 1000,
        "short_p99_ratio": quantile(found["short"], 0.99) / max(alone, 1e-9),
    }
    for pool in BUILT_IN:
        p99 = quantile(found[pool.name], 0.99)
        figures[f"{pool.name}_jobs"] = len(found[pool.name])
        figures[f"{pool.name}_p99_of_target"] = p99 / pool.pickup_target_seconds
    return {name: round(value, 3) for name, value in figures.items()}
