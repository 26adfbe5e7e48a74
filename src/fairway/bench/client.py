"""`fairway bench client`: what one process hands in through the SDK, as jobs on disk a second.

    one      one caller, one job after the other: how long a call takes
    asyncio  50 callers on one event loop, one job a call
    threads  50 threads, one job a call
    many     1 000 jobs a call, one call after the other

Nothing runs the jobs, and nothing is asked but to take them. Server and PostgreSQL share this
machine's cores with the client. Each part ends with a look at the server's own count: what callers
were told is what is on disk.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from fairway.bench import output
from fairway.bench.output import Aim, part
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig.quantile import quantile
from fairway.sdk.app import App
from fairway.sdk.job import Job

CALLERS = 50
MANY = 1000
WARM_SECONDS = 0.5
DEPTH_MAX = 100_000_000  # nothing runs: what is measured is not the limit

Noop: TypeAlias = "Job[[int], None]"
Load: TypeAlias = Callable[[Noop, float], int]


def run(*, json_output: bool, seconds: float) -> int:
    figures = output.measured(measure(seconds))
    if json_output:
        output.show(figures, json_output=True)
    else:
        output.show_table("Client, server and store on this machine's cores", figures, AIMS)
    return 0


async def measure(seconds: float) -> dict[str, float]:
    figures: dict[str, float] = {}
    async with bench_platform(tenants=1) as platform:
        await platform.set_entitlement([0], depth_limit=DEPTH_MAX)
        await platform.start_server()
        job = _noop(platform)
        with part("one caller"):
            took = await asyncio.to_thread(asyncio.run, one_caller(job, seconds / 4))
            figures["one_call_p50_ms"] = quantile(took, 0.5) * 1000
        for name in LOADS:
            with part(name):
                figures |= await measured(platform, job, name, seconds)
        await asyncio.to_thread(job.app.close)
    return {name: round(value, 3) for name, value in figures.items()}


def _noop(platform: BenchPlatform) -> Noop:
    app = App("bench", url=platform.url, api_key=platform.keys[0])

    @app.job(name="bench.noop", pool="short")
    def noop(n: int) -> None: ...

    return noop


async def measured(
    platform: BenchPlatform, job: Noop, name: str, seconds: float
) -> dict[str, float]:
    """Jobs a second by the callers' count, and what one costs this process.

    RuntimeError when the server's own count is another.
    """
    load = LOADS[name]
    await asyncio.to_thread(load, job, WARM_SECONDS)
    before = await platform.metric("fairway_jobs_accepted_total")
    began, used = time.perf_counter(), time.process_time()
    jobs = await asyncio.to_thread(load, job, seconds)
    took, used = time.perf_counter() - began, time.process_time() - used
    on_disk = await platform.metric("fairway_jobs_accepted_total") - before
    if on_disk != jobs:
        raise RuntimeError(f"callers were told of {jobs} jobs, the server accepted {on_disk:.0f}")
    return {f"{name}_jobs_per_s": jobs / took, f"{name}_client_us_per_job": used / jobs * 1e6}


# -- loads: so many jobs were accepted in about so many seconds -----------------------------------


async def one_caller(job: Noop, seconds: float) -> list[float]:
    took = []
    for _ in _until(seconds):
        began = time.perf_counter()
        await job.aenqueue(1)
        took.append(time.perf_counter() - began)
    return took


def asyncio_callers(job: Noop, seconds: float) -> int:
    async def caller(turns: Iterator[int]) -> int:
        jobs = 0
        for n in turns:
            await job.aenqueue(n)
            jobs += 1
        return jobs

    async def callers() -> int:
        turns = _until(seconds)
        return sum(await asyncio.gather(*(caller(turns) for _ in range(CALLERS))))

    return asyncio.run(callers())


def thread_callers(job: Noop, seconds: float) -> int:
    def caller(_: int) -> int:
        return len([job.enqueue(n) for n in _until(seconds)])

    with ThreadPoolExecutor(CALLERS) as threads:
        return sum(threads.map(caller, range(CALLERS)))


def many_a_call(job: Noop, seconds: float) -> int:
    calls = [(n,) for n in range(MANY)]
    return sum(len(job.enqueue_many(calls)) for _ in _until(seconds))


def _until(seconds: float) -> Iterator[int]:
    """Numbers, for so long."""
    ends_at = time.perf_counter() + seconds
    return itertools.takewhile(lambda _: time.perf_counter() < ends_at, itertools.count())


LOADS: dict[str, Load] = {
    "asyncio": asyncio_callers,
    "threads": thread_callers,
    "many": many_a_call,
}

AIMS = {
    "asyncio_jobs_per_s": Aim("≥ 12 000", lambda v: v >= 12_000),
    "threads_jobs_per_s": Aim("≥ 6 000", lambda v: v >= 6_000),
}
