"""`fairway bench shards`: what many shards cost one server, against one shard.

    batch, single, burn   as in `bench engine`, of a platform with many shards and of one with one

Both are there during the whole run and are measured in pairs, one right after the other: a virtual
machine may be half as fast some seconds later, and that is not what is asked. Of batches and single
jobs a measurement is a short slice of a closed loop, from its first request until all that it
brought is recorded; draining is a queue that is filled, and a worker that comes. Each pair changes
who goes first, and half of them are of platforms that were made in the opposite order: two that are
the same may differ by some hundredths, for as long as they are there.

A ratio is the mean of the middle half of the pairs' ratios, for a machine may stand still for a
slice; in 19 of 20 runs it is right to `within`. Where that is more than the figure may fall short,
the machine was too uneven to say.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from math import isnan, nan, sqrt
from typing import NamedTuple

from fairway.bench import engine, output
from fairway.bench.output import Aim, part
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig.load import Tally, closed_loops
from fairway.rig.load_client import LoadConnection

MANY, ONE = "many", "one"
PARTS = ("batch", "single", "burn")
READY = "worker ready"
WARM_SECONDS = 2.0
SLICES_A_DRAIN = 5  # it takes several times as long, and is steadier
RATIO_MIN = 0.97
WITHIN_MAX = 1 - RATIO_MIN
AIMS = {f"{name}_ratio": Aim(f"≥ {RATIO_MIN}", lambda value: value >= RATIO_MIN) for name in PARTS}

Platforms = Mapping[str, BenchPlatform]
Rates = dict[tuple[str, str], list[float]]  # of a part and a platform, pair by pair


class ShardOptions(NamedTuple):
    tenants: int
    seconds: float  # of each slice of batches and single jobs
    slices: int  # of each of them, on both
    burn_jobs: int
    shards: int


class LoadKind(NamedTuple):
    name: str
    requests: Callable[[BenchPlatform], engine.Requests]
    connections: int
    backlog_max: int


#: Of batches less is under way than in `bench engine`: a slice ends when all of it is recorded.
LOADS = (
    LoadKind("batch", engine.batch_requests, engine.OF_BATCHES.connections, 5_000),
    LoadKind("single", engine.single_requests, engine.OF_SINGLES.connections, engine.BACKLOG_MAX),
)


class SlicedLoad:
    """One load on one platform, a slice at a time; its connections stay."""

    def __init__(
        self, platform: BenchPlatform, load: LoadKind, connections: Sequence[LoadConnection]
    ) -> None:
        requests = load.requests(platform)
        self._platform = platform
        self._backlog_max = load.backlog_max
        self._sources = [(connection, requests) for connection in connections]

    async def rate(self, seconds: float) -> float:
        """Jobs a second that came in so many seconds, until the last of them was recorded."""
        watch = engine.Watch(self._platform)
        await watch.look()
        before, following = watch.done, asyncio.create_task(watch.run())
        began = time.perf_counter()

        def may_go(tally: Tally) -> bool:
            return tally.jobs - (watch.done - before) < self._backlog_max

        def is_over(tally: Tally) -> bool:
            return time.perf_counter() > began + seconds

        try:
            tally = await closed_loops(self._sources, may_go=may_go, is_over=is_over)
        finally:
            following.cancel()
        await watch.settle(before + tally.jobs)
        return tally.jobs / (time.perf_counter() - began)


def run(options: ShardOptions, *, json_output: bool) -> int:
    figures = output.measured(measure(options))
    title = f"{options.shards} shards against one, in pairs: jobs a second"
    return output.show_judged(title, figures, AIMS, doubts_of(figures), json_output=json_output)


async def measure(options: ShardOptions) -> dict[str, float]:
    rates: Rates = defaultdict(list)
    counts = {MANY: options.shards, ONE: 1}
    for order in (counts, dict(reversed(counts.items()))):
        async with _platforms(order, options.tenants) as both:
            async with _workers(both):
                for load in LOADS:
                    await _slices(rates, both, load, options)
            await _drains(rates, both, options)
    return figures_of(rates)


@asynccontextmanager
async def _platforms(counts: Mapping[str, int], tenants: int) -> AsyncIterator[Platforms]:
    """Made in this order."""
    async with AsyncExitStack() as stack:
        both: dict[str, BenchPlatform] = {}
        for which, shards in counts.items():
            both[which] = await stack.enter_async_context(bench_platform(tenants, shards))
            await both[which].start_server()
        yield both


@asynccontextmanager
async def _workers(both: Platforms) -> AsyncIterator[None]:
    workers = [await platform.start_worker(engine.SLOTS) for platform in both.values()]
    for worker in workers:
        await worker.says(READY)
    yield
    for worker in workers:
        await worker.stop()


async def _slices(rates: Rates, both: Platforms, load: LoadKind, options: ShardOptions) -> None:
    async with AsyncExitStack() as opened:
        loads = {}
        for which, platform in both.items():
            connecting = (platform.client().connect() for _ in range(load.connections))
            connections = await asyncio.gather(*connecting)
            for connection in connections:
                opened.callback(connection.close)
            loads[which] = SlicedLoad(platform, load, connections)
            await loads[which].rate(WARM_SECONDS)
        pairs = options.slices // 2
        for pair in range(pairs):
            with part(f"{load.name}, slice {pair + 1} of {pairs} of these platforms"):
                for which in turn(pair):
                    rates[load.name, which].append(await loads[which].rate(options.seconds))


async def _drains(rates: Rates, both: Platforms, options: ShardOptions) -> None:
    pairs = options.slices // 2 // SLICES_A_DRAIN
    for pair in range(pairs):
        with part(f"draining {options.burn_jobs} jobs, {pair + 1} of {pairs} of these platforms"):
            for which in turn(pair):
                rates["burn", which].append(await engine.burn(both[which], options.burn_jobs))


def turn(pair: int) -> tuple[str, str]:
    """Who was first the last time is second now."""
    return (MANY, ONE) if pair % 2 else (ONE, MANY)


# -- figures -----------------------------------------------------------------------------------


def figures_of(rates: Mapping[tuple[str, str], Sequence[float]]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name in PARTS:
        many, one = rates[name, MANY], rates[name, ONE]
        figures[f"{name}_many_per_s"] = round(statistics.median(many))
        figures[f"{name}_one_per_s"] = round(statistics.median(one))
        ratios = [this / that if that else nan for this, that in zip(many, one, strict=True)]
        middle = _middle_half(ratios)
        figures[f"{name}_ratio"] = round(statistics.fmean(middle), 3)
        figures[f"{name}_within"] = round(_within(middle, len(ratios)), 3)
    return figures


def doubts_of(figures: Mapping[str, float]) -> list[str]:
    return [
        f"the machine was too uneven: {name} is known to within {figures[f'{name}_within']} only"
        for name in PARTS
        if figures[f"{name}_within"] > WITHIN_MAX
    ]


def _middle_half(values: Sequence[float]) -> list[float]:
    """In order; of three the one between, of fewer all."""
    if any(map(isnan, values)):
        return [nan]
    aside = max(len(values) // 4, int(len(values) > 2))
    return sorted(values)[aside : len(values) - aside]


def _within(middle: Sequence[float], count: int) -> float:
    """Two standard errors of the mean of the middle half, whose range is 1.35 deviations."""
    return 1.6 * (middle[-1] - middle[0]) / sqrt(count)
