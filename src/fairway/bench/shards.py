"""`fairway bench shards`: what many shards cost one server, against one shard.

    batch, single, burn   as in `bench engine`, of a platform with many shards and of one with one

Both are there during the whole run and take turns, so that they meet the same moments of the
machine: two runs of one tree may differ by a fifth on a machine with other work. Each turn changes
who goes first; a ratio is the median of the turns'.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import nan
from typing import NamedTuple

from fairway.bench import engine, output
from fairway.bench.output import Aim, part
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig.load import Tally

MANY, ONE = "many", "one"
PARTS = ("batch", "single", "burn")
RATIO_MIN = 0.97
AIMS = {f"{name}_ratio": Aim(f"≥ {RATIO_MIN}", lambda value: value >= RATIO_MIN) for name in PARTS}

Platforms = Mapping[str, BenchPlatform]
Rates = dict[tuple[str, str], list[float]]  # of a part and a platform, turn by turn
Work = Callable[[BenchPlatform], Awaitable[float]]


class ShardOptions(NamedTuple):
    tenants: int
    seconds: float  # of each timed part
    turns: int
    burn_jobs: int
    shards: int


def run(options: ShardOptions, *, json_output: bool) -> int:
    figures = output.measured(measure(options))
    title = f"{options.shards} shards against one, in turns: jobs a second"
    return output.show_judged(title, figures, AIMS, (), json_output=json_output)


async def measure(options: ShardOptions) -> dict[str, float]:
    rates: Rates = defaultdict(list)
    tenants = options.tenants
    async with bench_platform(tenants, options.shards) as many, bench_platform(tenants, 1) as one:
        both = {MANY: many, ONE: one}
        for platform in both.values():
            await platform.start_server()
        for turn in range(options.turns):
            await _turn(rates, both, turn, options)
    return figures_of(rates)


async def _turn(rates: Rates, both: Platforms, turn: int, options: ShardOptions) -> None:
    async def batches(platform: BenchPlatform) -> float:
        return await _with_worker(platform, engine.batches(platform, options.seconds))

    async def singles(platform: BenchPlatform) -> float:
        return await _with_worker(platform, engine.singles(platform, options.seconds))

    with part(f"batches of 100, turn {turn + 1}"):
        await take(rates, both, turn, "batch", batches)
    with part(f"one job a request, turn {turn + 1}"):
        await take(rates, both, turn, "single", singles)
    with part(f"draining {options.burn_jobs} jobs, turn {turn + 1}"):
        await take(rates, both, turn, "burn", lambda it: engine.burn(it, options.burn_jobs))


async def _with_worker(platform: BenchPlatform, load: Awaitable[tuple[float, Tally]]) -> float:
    """It is there only while its platform is measured: an idle one costs a little, too."""
    worker = await platform.start_worker(engine.SLOTS)
    rate, _ = await load
    await worker.stop()
    return rate


async def take(rates: Rates, both: Platforms, turn: int, name: str, work: Work) -> None:
    """One after the other; who was first the last time is second now."""
    order = [MANY, ONE] if turn % 2 else [ONE, MANY]
    for which in order:
        rates[name, which].append(await work(both[which]))


def figures_of(rates: Mapping[tuple[str, str], Sequence[float]]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name in PARTS:
        many, one = rates[name, MANY], rates[name, ONE]
        figures[f"{name}_many_per_s"] = round(statistics.median(many))
        figures[f"{name}_one_per_s"] = round(statistics.median(one))
        ratios = [this / that if that else nan for this, that in zip(many, one, strict=True)]
        figures[f"{name}_ratio"] = round(statistics.median(ratios), 3)
    return figures
