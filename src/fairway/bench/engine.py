"""`fairway bench engine`: the engine's figures on this machine, all parts on the same cores.

    store    the two hot statements alone, in batches of 500
    batch    submit → durable → dispatch → run → durable outcome, 100 jobs a request
    single   the same, one job a request
    pickup   open-loop arrivals at half the single rate: from intended send to handler
    burn     jobs queued beforehand, drained by one worker process

The job is a plain function in the loop, on one worker process with SLOTS slots: as little work as
possible, so that the platform is what is measured. The loads are closed loops, except for pick-up.
Absolute figures belong to the machine; `ratio_to_store` is what travels.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from fairway.bench import output, store_alone
from fairway.bench.output import Aim, part
from fairway.bench.pickup import offer, pickup_seconds, timed
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig.load import Tally, closed_loop
from fairway.rig.load_client import post
from fairway.rig.quantile import quantile

Requests = Iterator[tuple[bytes, int]]  # each with its number of jobs

BATCH = 100
SLOTS = 2000
BACKLOG_MAX = 20_000  # the load rests while this many accepted jobs are not done yet
WARM_SECONDS = 2.0
JOBS_PER_SECOND_MAX = 60_000  # surely no more are recorded


class EngineOptions(NamedTuple):
    tenants: int
    seconds: float  # of each timed part
    burn_jobs: int
    shards: int | None  # None: as the settings say


class Pressure(NamedTuple):
    connections: int
    backlog_max: int = BACKLOG_MAX
    settle: bool = True  # wait until all that was accepted is done


OF_BATCHES, OF_SINGLES = Pressure(24), Pressure(32)


def run(options: EngineOptions, *, json_output: bool) -> int:
    figures = output.measured(measure(options))
    if json_output:
        output.show(figures, json_output=True)
    else:
        output.show_table("Engine, all parts on this machine's cores, fsync on", figures, AIMS)
    return 0


async def measure(options: EngineOptions) -> dict[str, float]:
    figures: dict[str, float] = {}
    seconds, burn_jobs = options.seconds, options.burn_jobs
    async with bench_platform(options.tenants, options.shards) as platform:
        with part("store alone"):
            figures["store_jobs_per_s"] = await store_alone.measure(platform, seconds)
        await platform.start_server()
        worker = await platform.start_worker(SLOTS)
        with part("batches of 100"):
            figures["batch_jobs_per_s"] = (await batches(platform, seconds))[0]
        with part("one job a request"):
            rate, tally = await singles(platform, seconds)
            figures["single_jobs_per_s"] = rate
            figures["submit_p95_ms"] = quantile(tally.seconds, 0.95) * 1000
        await worker.stop()
        with part("pick-up at half load"):
            figures |= await pickup(platform, rate / 2, seconds)
        with part(f"draining {burn_jobs} jobs"):
            figures["burn_jobs_per_s"] = await burn(platform, burn_jobs)
    figures["ratio_to_store"] = figures["batch_jobs_per_s"] / figures["store_jobs_per_s"]
    return {name: round(value, 3) for name, value in figures.items()}


# -- requests ----------------------------------------------------------------------------------


def one_batch(key: str) -> bytes:
    jobs = [{"type": "bench.noop", "payload": {"n": n}} for n in range(BATCH)]
    return post("/v1/jobs/batch", key, json.dumps({"jobs": jobs}, separators=(",", ":")).encode())


def one_job(key: str) -> bytes:
    return post("/v1/jobs", key, b'{"type":"bench.noop","payload":{"n":1}}')


def batch_requests(platform: BenchPlatform) -> Requests:
    """Batches of 100 jobs of one tenant each, tenants drawn with their skew."""
    return _drawn(platform, one_batch, BATCH)


def single_requests(platform: BenchPlatform) -> Requests:
    return _drawn(platform, one_job, 1)


def _drawn(platform: BenchPlatform, request: Callable[[str], bytes], jobs: int) -> Requests:
    """Each tenant's is made when it is first drawn: to make those of 10 000 tenants beforehand took
    the load seconds, in which it was thought to be on its way."""
    ready: dict[str, bytes] = {}
    while True:
        for tenant in platform.draw(1000):
            key = platform.keys[tenant]
            if key not in ready:
                ready[key] = request(key)
            yield ready[key], jobs


# -- parts -------------------------------------------------------------------------------------


async def batches(platform: BenchPlatform, seconds: float) -> tuple[float, Tally]:
    return await lifecycle(platform, batch_requests(platform), seconds, OF_BATCHES)


async def singles(platform: BenchPlatform, seconds: float) -> tuple[float, Tally]:
    return await lifecycle(platform, single_requests(platform), seconds, OF_SINGLES)


async def lifecycle(
    platform: BenchPlatform, requests: Requests, seconds: float, pressure: Pressure
) -> tuple[float, Tally]:
    """Jobs recorded a second while the load keeps a bounded backlog going."""
    watch = Watch(platform)
    await watch.look()
    start = watch.done
    following = asyncio.create_task(watch.run())
    end = time.perf_counter() + WARM_SECONDS + seconds
    load = asyncio.create_task(
        closed_loop(
            platform.client(),
            requests,
            connections=pressure.connections,
            may_go=lambda tally: tally.jobs - (watch.done - start) < pressure.backlog_max,
            is_over=lambda tally: time.perf_counter() > end,
        )
    )
    try:
        await asyncio.sleep(WARM_SECONDS)
        await watch.look()
        began, before = time.perf_counter(), watch.done
        tally = await load
        await watch.look()
        rate = (watch.done - before) / (time.perf_counter() - began)
    finally:
        load.cancel()
        following.cancel()
    if pressure.settle:
        await watch.settle(start + tally.jobs)
    return rate, tally


class Watch:
    """Follows the server's own count of recorded outcomes."""

    def __init__(self, platform: BenchPlatform) -> None:
        self._platform = platform
        self.done = 0.0

    async def look(self) -> None:
        self.done = await self._platform.metric("fairway_outcomes_recorded_total")

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(0.25)

    async def settle(self, count: float) -> None:
        """Wait until everything that was accepted is done. A look takes milliseconds of the
        server's time, so they are rare until the end is near."""
        while self.done < count:
            half_way = (count - self.done) / JOBS_PER_SECOND_MAX / 2
            await asyncio.sleep(min(max(half_way, 0.02), 1.0))
            await self.look()


async def pickup(platform: BenchPlatform, per_second: float, seconds: float) -> dict[str, float]:
    tenants = platform.draw(int(per_second * seconds * 1.5) + 1000)
    make = timed(platform.keys[tenant] for tenant in tenants)
    load = offer(platform, make, per_second=per_second, seconds=seconds, connections=64)
    volley, found = await pickup_seconds(platform, SLOTS, load)
    return {
        "pickup_p50_ms": quantile(found, 0.5) * 1000,
        "pickup_p99_ms": quantile(found, 0.99) * 1000,
        "half_load_per_s": per_second,
        "half_load_submit_p95_ms": volley.reply_quantile(0.95) * 1000,
        "generator_lag_max_ms": volley.lag_seconds_max * 1000,
    }


async def fill(platform: BenchPlatform, jobs: int) -> None:
    """Queue jobs as fast as they are taken."""
    requests = islice(batch_requests(platform), jobs // BATCH)
    await closed_loop(platform.client(), requests, connections=8)


async def burn(platform: BenchPlatform, jobs: int) -> float:
    await fill(platform, jobs)
    return await drain(platform, jobs)


async def drain(platform: BenchPlatform, jobs: int) -> float:
    """Jobs a second while one worker drains what was queued before it came."""
    watch = Watch(platform)
    await watch.look()
    before = watch.done
    worker = await platform.start_worker(SLOTS)
    while watch.done == before:
        await watch.look()
        await asyncio.sleep(0.005)
    began, first = time.perf_counter(), watch.done
    await watch.settle(before + jobs)
    rate = (watch.done - first) / (time.perf_counter() - began)
    await worker.stop()
    return rate


# -- what is to be reached ---------------------------------------------------------------------

AIMS = {
    "batch_jobs_per_s": Aim("≥ 23 150", lambda v: v >= 23_150),
    "ratio_to_store": Aim("≥ 0.45", lambda v: v >= 0.45),
    "single_jobs_per_s": Aim("≥ 4 000", lambda v: v >= 4_000),
    "submit_p95_ms": Aim("< 15", lambda v: v < 15),
    "burn_jobs_per_s": Aim("≥ 36 000", lambda v: v >= 36_000),
    "pickup_p50_ms": Aim("< 5", lambda v: v < 5),
    "pickup_p99_ms": Aim("< 50", lambda v: v < 50),
}
