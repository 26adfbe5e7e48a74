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
from contextlib import contextmanager
from itertools import islice

import httpx2
import uvloop
from rich.console import Console
from rich.table import Table

from fairway.bench import store_alone
from fairway.bench.house import House, house
from fairway.bench.load import Request, Tally, closed_loop, open_loop, post
from fairway.runtime.telemetry import configure_logging

screen = Console(stderr=True, highlight=False)

BATCH = 100
SLOTS = 2000
BACKLOG_MAX = 20_000  # the load rests while this many accepted jobs are not done yet
WARM_SECONDS = 2.0
JOBS_PER_SECOND_MAX = 60_000  # surely no more are recorded


def run(*, json_output: bool, tenants: int, seconds: float, burn_jobs: int) -> int:
    configure_logging(json_lines=False)
    figures = uvloop.run(measure(tenants, seconds, burn_jobs))
    if json_output:
        print(json.dumps(figures))  # noqa: T201  # data goes to stdout
    else:
        show(figures)
    return 0


async def measure(tenants: int, seconds: float, burn_jobs: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    async with house(tenants) as place:
        with _part("store alone"):
            figures["store_jobs_per_s"] = await store_alone.measure(place, seconds)
        await place.start_server()
        worker = await place.start_worker(SLOTS)
        with _part("batches of 100"):
            figures["batch_jobs_per_s"] = (await batches(place, seconds))[0]
        with _part("one job a request"):
            rate, tally = await singles(place, seconds)
            figures["single_jobs_per_s"] = rate
            figures["submit_p95_ms"] = tally.quantile_ms(0.95)
        await place.stop(worker)
        with _part("pick-up at half load"):
            figures |= await pickup(place, rate / 2, seconds)
        with _part(f"draining {burn_jobs} jobs"):
            figures["burn_jobs_per_s"] = await burn(place, burn_jobs)
    figures["ratio_to_store"] = figures["batch_jobs_per_s"] / figures["store_jobs_per_s"]
    return {name: round(value, 3) for name, value in figures.items()}


@contextmanager
def _part(name: str) -> Iterator[None]:
    with screen.status(f"measuring: {name} …"):
        yield


# -- requests ----------------------------------------------------------------------------------


def batch_requests(place: House) -> Iterator[tuple[Request, int]]:
    """Batches of 100 jobs of one tenant each, tenants drawn with their skew."""
    jobs = [{"type": "bench.noop", "payload": {"n": n}} for n in range(BATCH)]
    body = json.dumps({"jobs": jobs}, separators=(",", ":")).encode()
    ready = {key: post("/v1/jobs/batch", key, body) for key in place.keys}
    while True:
        for tenant in place.draw(1000):
            yield ready[place.keys[tenant]], BATCH


def single_requests(place: House) -> Iterator[tuple[Request, int]]:
    body = b'{"type":"bench.noop","payload":{"n":1}}'
    ready = {key: post("/v1/jobs", key, body) for key in place.keys}
    while True:
        for tenant in place.draw(1000):
            yield ready[place.keys[tenant]], 1


# -- parts -------------------------------------------------------------------------------------


async def batches(place: House, seconds: float) -> tuple[float, Tally]:
    return await lifecycle(place, batch_requests(place), seconds, connections=24)


async def singles(place: House, seconds: float) -> tuple[float, Tally]:
    return await lifecycle(place, single_requests(place), seconds, connections=32)


async def lifecycle(
    place: House,
    requests: Iterator[tuple[Request, int]],
    seconds: float,
    *,
    connections: int,
    backlog_max: int = BACKLOG_MAX,
    settle: bool = True,
) -> tuple[float, Tally]:
    """Jobs recorded a second while the load keeps a bounded backlog going."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        watch = Watch(place, client)
        await watch.look()
        start = watch.done
        following = asyncio.create_task(watch.run())
        end = time.perf_counter() + WARM_SECONDS + seconds
        load = asyncio.create_task(
            closed_loop(
                place.address,
                requests,
                connections=connections,
                may_go=lambda tally: tally.jobs - (watch.done - start) < backlog_max,
                is_over=lambda tally: time.perf_counter() > end,
            )
        )
        await asyncio.sleep(WARM_SECONDS)
        await watch.look()
        began, before = time.perf_counter(), watch.done
        tally = await load
        await watch.look()
        rate = (watch.done - before) / (time.perf_counter() - began)
        following.cancel()
        if settle:
            await watch.settle(start + tally.jobs)
    return rate, tally


class Watch:
    """Follows the server's own count of recorded outcomes."""

    def __init__(self, place: House, client: httpx2.AsyncClient) -> None:
        self._place = place
        self._client = client
        self.done = 0.0

    async def look(self) -> None:
        self.done = await self._place.counter(self._client, "fairway_outcomes_recorded_total")

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


async def pickup(place: House, per_second: float, seconds: float) -> dict[str, float]:
    delays = place.folder / "delays.txt"
    worker = await place.start_worker(SLOTS, FAIRWAY_BENCH_DELAYS=str(delays))
    await asyncio.sleep(2.0)
    tenants = iter(place.draw(int(per_second * seconds * 1.5) + 1000))

    def make(intended: float) -> Request:
        body = b'{"type":"bench.timed","payload":{"sent":%.6f}}' % intended
        return post("/v1/jobs", place.keys[next(tenants)], body)

    tally = await open_loop(
        place.address, make, per_second=per_second, seconds=seconds, connections=64
    )
    await asyncio.sleep(0.5)
    await place.stop(worker)
    found = sorted(float(line) for line in delays.read_text().split())
    return {
        "pickup_p50_ms": quantile(found, 0.5) * 1000,
        "pickup_p99_ms": quantile(found, 0.99) * 1000,
        "half_load_per_s": per_second,
        "half_load_submit_p95_ms": tally.quantile_ms(0.95),
        "generator_lag_max_ms": tally.lag_seconds_max * 1000,
    }


async def fill(place: House, jobs: int) -> None:
    """Queue jobs as fast as they are taken."""
    requests = islice(batch_requests(place), jobs // BATCH)
    await closed_loop(
        place.address,
        requests,
        connections=8,
        may_go=lambda tally: True,
        is_over=lambda tally: False,
    )


async def burn(place: House, jobs: int) -> float:
    """Jobs a second while one worker drains what was queued before it came."""
    await fill(place, jobs)
    async with httpx2.AsyncClient(trust_env=False) as client:
        watch = Watch(place, client)
        await watch.look()
        before = watch.done
        worker = await place.start_worker(SLOTS)
        while watch.done == before:
            await watch.look()
            await asyncio.sleep(0.005)
        began, first = time.perf_counter(), watch.done
        await watch.settle(before + jobs)
        rate = (watch.done - first) / (time.perf_counter() - began)
        await place.stop(worker)
    return rate


def quantile(ordered: list[float], q: float) -> float:
    return ordered[min(int(len(ordered) * q), len(ordered) - 1)] if ordered else 0.0


# -- output ------------------------------------------------------------------------------------

REACH: dict[str, tuple[str, Callable[[float], bool]]] = {
    "store_jobs_per_s": ("", lambda v: True),
    "batch_jobs_per_s": ("≥ 23 150", lambda v: v >= 23_150),
    "ratio_to_store": ("≥ 0.45", lambda v: v >= 0.45),
    "single_jobs_per_s": ("≥ 4 000", lambda v: v >= 4_000),
    "submit_p95_ms": ("< 15", lambda v: v < 15),
    "burn_jobs_per_s": ("≥ 36 000", lambda v: v >= 36_000),
    "pickup_p50_ms": ("< 5", lambda v: v < 5),
    "pickup_p99_ms": ("< 50", lambda v: v < 50),
}


def show(figures: dict[str, float]) -> None:
    table = Table(title="Engine, all parts on this machine's cores, fsync on")
    table.add_column("figure")
    table.add_column("measured", justify="right")
    table.add_column("to reach", justify="right")
    for name, value in figures.items():
        wanted, holds = REACH.get(name, ("", lambda v: True))
        colour = "green" if wanted and holds(value) else "red" if wanted else "default"
        table.add_row(name, f"[{colour}]{value:,.3f}[/]", wanted)
    Console().print(table)
