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
from pathlib import Path

import uvloop
from rich.console import Console

from fairway.bench.engine import quantile
from fairway.bench.house import House, house
from fairway.bench.load import Request, open_loop, post
from fairway.core.pools import BUILT_IN
from fairway.runtime.telemetry import configure_logging

screen = Console(stderr=True, highlight=False)

TENANTS = 20
ROUNDS = 3
SLOTS = {"short": 50, "medium": 8, "long": 4}
SECONDS = {"short": 0.0, "medium": 0.3, "long": 2.0}
OF_A_HUNDRED = {"short": 90, "medium": 9, "long": 1}
REST_SECONDS = 3.0  # between turns: what is under way ends first
WARM_UP_SECONDS = 3.0


def run(*, json_output: bool, seconds: float, per_second: float) -> int:
    configure_logging(json_lines=False)
    figures = uvloop.run(measure(seconds, per_second))
    if json_output:
        print(json.dumps(figures))  # noqa: T201  # data goes to stdout
    else:
        Console().print(figures)
    return 0


async def measure(seconds: float, per_second: float) -> dict[str, float]:
    async with house(TENANTS) as made:
        await made.start_server()
        for pool, slots in SLOTS.items():
            delays = str(made.folder / f"{pool}.delays")
            await made.start_worker(slots, pool, FAIRWAY_BENCH_DELAYS=delays)
        await _turn(made, per_second, WARM_UP_SECONDS, is_mixed=True)
        found: dict[str, list[float]] = {"alone": [], **{pool: [] for pool in SLOTS}}
        for number in range(ROUNDS):
            screen.print(f"round {number + 1} of {ROUNDS}")
            alone = await _turn(made, per_second * 0.9, seconds, is_mixed=False)
            found["alone"] += alone["short"]
            mixed = await _turn(made, per_second, seconds, is_mixed=True)
            for pool, delays_of in mixed.items():
                found[pool] += delays_of
        return _figures(found)


async def _turn(
    made: House, per_second: float, seconds: float, *, is_mixed: bool
) -> dict[str, list[float]]:
    """The pick-up times of one turn, by pool."""
    before = {pool: len(_delays(made, pool)) for pool in SLOTS}
    dice = random.Random(5)
    pools, weights = list(OF_A_HUNDRED), list(OF_A_HUNDRED.values())

    def make(intended: float) -> Request:
        pool = dice.choices(pools, weights)[0] if is_mixed else "short"
        payload = {"sent": intended, "seconds": SECONDS[pool]}
        body = {"type": f"bench.held.{pool}", "pool": pool, "payload": payload}
        return post("/v1/jobs", dice.choice(made.keys), json.dumps(body).encode())

    tally = await open_loop(
        made.address, make, per_second=per_second, seconds=seconds, connections=16
    )
    if tally.refused:
        raise RuntimeError(f"{tally.refused} jobs were refused; see {made.folder}/server.log")
    await asyncio.sleep(REST_SECONDS)
    return {pool: _delays(made, pool)[count:] for pool, count in before.items()}


def _delays(made: House, pool: str) -> list[float]:
    path = Path(made.folder / f"{pool}.delays")
    return [float(line) for line in path.read_text().splitlines()] if path.exists() else []


def _figures(found: dict[str, list[float]]) -> dict[str, float]:
    found = {name: sorted(delays) for name, delays in found.items()}
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
