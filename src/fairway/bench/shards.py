"""`fairway bench shards`: what many shards cost one server, against one shard.

    batch, single, burn   as in `bench engine`, of a platform with many shards and of one with one

Both are there during the whole run and take turns. A virtual machine may be half as fast a few
seconds later, and that is not what is asked: so each rate is set against a *yardstick*, the
processor time a job of worker and load in the same seconds. They do the same whatever the number of
shards, so if a job costs them a fifth more, the machine was a fifth slower. `ratio` is of rates at
the same speed of the machine, `rate_ratio` of the rates as they were; each is the mean of the
middle half of the turns, and `spread` is the range of that half. Each turn changes who goes first,
and half of the turns are of platforms that were made in the opposite order: two that are the same
may differ by some hundredths, for as long as they are there.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from math import isnan, nan
from typing import NamedTuple

from fairway.bench import engine, output
from fairway.bench.output import Aim, part
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig.load import Tally
from fairway.rig.program import Program
from fairway.rig.usage import run_seconds

MANY, ONE = "many", "one"
PARTS = ("batch", "single", "burn")
READY = "worker ready"
RATIO_MIN = 0.97
AIMS = {f"{name}_ratio": Aim(f"≥ {RATIO_MIN}", lambda value: value >= RATIO_MIN) for name in PARTS}


class Pace(NamedTuple):
    """Jobs a second, and the processor time a job of what does the same for all."""

    per_second: float
    yardstick_us: float


Platforms = Mapping[str, BenchPlatform]
Paces = dict[tuple[str, str], list[Pace]]  # of a part and a platform, turn by turn
Work = Callable[[BenchPlatform], Awaitable[Pace]]
Timed = Callable[[BenchPlatform, float, engine.Note], Awaitable[tuple[float, Tally]]]


class ShardOptions(NamedTuple):
    tenants: int
    seconds: float  # of each timed part
    turns: int
    burn_jobs: int
    shards: int


class Yardstick:
    """What a worker and the load, which is this process, use a job; looked at twice."""

    def __init__(self, worker: Program) -> None:
        self._worker = worker
        self._looks: list[tuple[float, float]] = []  # processor seconds, jobs

    def note(self, done: float) -> None:
        self._looks.append((run_seconds(self._worker.pid) + time.process_time(), done))

    def us_a_job(self) -> float:
        (began, before), (ended, done) = self._looks
        return (ended - began) * 1e6 / (done - before) if done > before else nan


def run(options: ShardOptions, *, json_output: bool) -> int:
    figures = output.measured(measure(options))
    title = f"{options.shards} shards against one, in turns: jobs a second"
    return output.show_judged(title, figures, AIMS, (), json_output=json_output)


async def measure(options: ShardOptions) -> dict[str, float]:
    paces: Paces = defaultdict(list)
    counts = {MANY: options.shards, ONE: 1}
    half = options.turns // 2
    await _turns(paces, counts, range(half), options)
    await _turns(paces, dict(reversed(counts.items())), range(half, options.turns), options)
    return figures_of(paces)


async def _turns(
    paces: Paces, counts: Mapping[str, int], turns: Iterable[int], options: ShardOptions
) -> None:
    """With platforms of their own, made in this order."""
    async with AsyncExitStack() as platforms:
        both: dict[str, BenchPlatform] = {}
        for which, shards in counts.items():
            platform = bench_platform(options.tenants, shards)
            both[which] = await platforms.enter_async_context(platform)
            await both[which].start_server()
        for turn in turns:
            await _turn(paces, both, turn, options)


async def _turn(paces: Paces, both: Platforms, turn: int, options: ShardOptions) -> None:
    def loaded(load: Timed) -> Work:
        return lambda platform: _with_worker(platform, load, options.seconds)

    with part(f"batches of 100, turn {turn + 1}"):
        await take(paces, both, turn, "batch", loaded(engine.batches))
    with part(f"one job a request, turn {turn + 1}"):
        await take(paces, both, turn, "single", loaded(engine.singles))
    with part(f"draining {options.burn_jobs} jobs, turn {turn + 1}"):
        await take(paces, both, turn, "burn", lambda it: _burn(it, options.burn_jobs))


async def _with_worker(platform: BenchPlatform, load: Timed, seconds: float) -> Pace:
    """It is there only while its platform is measured: an idle one costs a little, too."""
    worker = await platform.start_worker(engine.SLOTS)
    await worker.says(READY)
    yardstick = Yardstick(worker)
    rate, _ = await load(platform, seconds, yardstick.note)
    await worker.stop()
    return Pace(rate, yardstick.us_a_job())


async def _burn(platform: BenchPlatform, jobs: int) -> Pace:
    yardsticks: list[Yardstick] = []

    def noting(worker: Program) -> engine.Note:
        yardsticks.append(Yardstick(worker))
        return yardsticks[0].note

    await engine.fill(platform, jobs)
    rate = await engine.drain(platform, jobs, noting)
    return Pace(rate, yardsticks[0].us_a_job())


async def take(paces: Paces, both: Platforms, turn: int, name: str, work: Work) -> None:
    """One after the other; who was first the last time is second now."""
    order = [MANY, ONE] if turn % 2 else [ONE, MANY]
    for which in order:
        paces[name, which].append(await work(both[which]))


def figures_of(paces: Mapping[tuple[str, str], Sequence[Pace]]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name in PARTS:
        many, one = paces[name, MANY], paces[name, ONE]
        figures[f"{name}_many_per_s"] = round(statistics.median(pace.per_second for pace in many))
        figures[f"{name}_one_per_s"] = round(statistics.median(pace.per_second for pace in one))
        turns = list(zip(many, one, strict=True))
        rates = [_ratio(this.per_second, that.per_second) for this, that in turns]
        ratios = [
            rate * _ratio(this.yardstick_us, that.yardstick_us)
            for rate, (this, that) in zip(rates, turns, strict=True)
        ]
        figures[f"{name}_rate_ratio"] = round(statistics.fmean(_middle_half(rates)), 3)
        middle = _middle_half(ratios)
        figures[f"{name}_ratio"] = round(statistics.fmean(middle), 3)
        figures[f"{name}_spread"] = round(middle[-1] - middle[0], 3)
    return figures


def _ratio(this: float, that: float) -> float:
    return this / that if that else nan


def _middle_half(values: Sequence[float]) -> list[float]:
    """In order; of three the one between, of fewer all."""
    if any(map(isnan, values)):
        return [nan]
    aside = max(len(values) // 4, int(len(values) > 2))
    return sorted(values)[aside : len(values) - aside]
