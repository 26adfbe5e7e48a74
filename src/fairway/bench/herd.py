"""`fairway bench herd`: a million jobs due at the same second, and what everybody else notices.

    idle    1 000 jobs of many tenants, each due at a moment of its own: how late they start
    quiet   other tenants' jobs at a steady rate, nothing else going on
    herd    the same while one tenant's herd comes due: ratios to `quiet`, rate, memory
    crash   the server is killed in the middle and another takes over: nothing lost

The herd is handed in through the front door, with `exact`. Ratios travel; the rest is this
machine's own.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import asyncpg
import httpx2
import uvloop
from rich.console import Console

from fairway.bench.engine import SLOTS, quantile
from fairway.bench.house import House, house
from fairway.bench.load import Request, Tally, closed_loop, open_loop, post
from fairway.runtime.telemetry import configure_logging

screen = Console(stderr=True, highlight=False)

TENANTS = 50  # the first has the herd
HERD_BATCH = 1000
IDLE_JOBS = 1000
IDLE_SECONDS = 10.0
HAND_IN_SECONDS = 8.0
PROBES_PER_SECOND = 100.0
FILL_PER_SECOND = 3000  # slower than it is: the herd must be there before it is due
LOST_AFTER_SECONDS = 1800.0


class Notice(NamedTuple):
    """What other tenants notice."""

    submit_p95_ms: float
    pickup_p99_ms: float


def run(*, json_output: bool, jobs: int, seconds: float, per_second: int) -> int:
    configure_logging(json_lines=False)
    figures = uvloop.run(measure(jobs, seconds, per_second))
    if json_output:
        print(json.dumps(figures))  # noqa: T201  # data goes to stdout
    else:
        Console().print(figures)
    return 0


async def measure(jobs: int, seconds: float, per_second: int) -> dict[str, float]:
    rates = {
        "FAIRWAY_PROMOTE_PER_SECOND": str(per_second),
        "FAIRWAY_PROMOTE_TENANT_PER_SECOND": str(per_second),
    }
    async with house(TENANTS) as place:
        server = await place.start_server(**rates)
        figures = await idle(place)
        screen.print("quiet …")
        quiet = await probe(place, seconds)
        screen.print(f"handing in {jobs} jobs …")
        due = await fill(place, jobs)
        screen.print("herd …")
        figures |= await under_herd(place, quiet, due, seconds)
        figures["server_memory_mb"] = _memory_mb(server.pid)
        server.kill()
        await server.wait()
        screen.print("another server takes over …")
        await place.start_server(**rates)
        figures |= await finish(place, jobs, due)
    return {name: round(value, 3) for name, value in figures.items()}


# -- parts -------------------------------------------------------------------------------------


async def idle(place: House) -> dict[str, float]:
    """How late jobs start that are due one by one."""
    screen.print("idle …")
    dice = random.Random(5)

    async def hand_in() -> None:
        begin = time.time() + HAND_IN_SECONDS
        async with httpx2.AsyncClient(base_url=place.url, trust_env=False) as client:
            for n in range(IDLE_JOBS // 20):
                moments = [begin + dice.random() * IDLE_SECONDS for _ in range(20)]
                jobs = [
                    {"type": "bench.timed", "payload": {"sent": moment}, "execute_at": _iso(moment)}
                    for moment in moments
                ]
                key = place.keys[1 + n % (TENANTS - 1)]
                headers = {"authorization": f"Bearer {key}"}
                reply = await client.post("/v1/jobs/batch", json={"jobs": jobs}, headers=headers)
                reply.raise_for_status()
        if time.time() > begin:
            raise RuntimeError("Handing the jobs in took longer than it may; nothing was measured.")
        await asyncio.sleep(max(begin + IDLE_SECONDS + 1 - time.time(), 0))

    found = await delays(place, "idle", hand_in)
    return {
        "idle_jobs": len(found),
        "idle_late_p50_ms": quantile(found, 0.5) * 1000,
        "idle_late_p99_ms": quantile(found, 0.99) * 1000,
    }


async def probe(place: House, seconds: float) -> Notice:
    """Other tenants' jobs at a steady rate: the front door, and the way to the handler."""
    tally = Tally()
    others = iter(random.Random(3).choices(range(1, TENANTS), k=int(seconds * 300) + 1000))

    def make(intended: float) -> Request:
        body = b'{"type":"bench.timed","payload":{"sent":%.6f}}' % intended
        return post("/v1/jobs", place.keys[next(others)], body)

    async def load() -> None:
        nonlocal tally
        tally = await open_loop(
            place.address, make, per_second=PROBES_PER_SECOND, seconds=seconds, connections=32
        )
        await asyncio.sleep(0.5)

    found = await delays(place, f"probe-{time.time()}", load)
    return Notice(tally.quantile_ms(0.95), quantile(found, 0.99) * 1000)


async def delays(place: House, name: str, load: Callable[[], Awaitable[None]]) -> list[float]:
    """Run a load with a worker of its own; answers what its handlers saw, in order of size."""
    file = place.folder / f"delays-{name}.txt"
    worker = await place.start_worker(SLOTS, FAIRWAY_BENCH_DELAYS=str(file))
    await asyncio.sleep(2)
    await load()
    await place.stop(worker)
    return sorted(float(line) for line in file.read_text().split())


async def fill(place: House, jobs: int) -> float:
    """Hand the herd in; answers when it is due."""
    due = float(round(time.time() + 10 + jobs / FILL_PER_SECOND))
    job = {"type": "bench.noop", "payload": {"n": 1}, "execute_at": _iso(due), "exact": True}
    body = json.dumps({"jobs": [job] * HERD_BATCH}).encode()
    request = post("/v1/jobs/batch", place.keys[0], body)
    await closed_loop(
        place.address,
        repeat((request, HERD_BATCH), jobs // HERD_BATCH),
        connections=4,
        may_go=lambda tally: True,
        is_over=lambda tally: False,
    )
    return due


async def under_herd(place: House, quiet: Notice, due: float, seconds: float) -> dict[str, float]:
    await asyncio.sleep(max(due - time.time(), 0))
    async with httpx2.AsyncClient(trust_env=False) as client:
        began, before = time.time(), await _promoted(place, client)
        notice = await probe(place, seconds)
        promoted = await _promoted(place, client) - before
        rate = promoted / (time.time() - began)
    return {
        "promoted_per_s": rate,
        "quiet_submit_p95_ms": quiet.submit_p95_ms,
        "herd_submit_p95_ms": notice.submit_p95_ms,
        "submit_p95_ratio": notice.submit_p95_ms / quiet.submit_p95_ms,
        "quiet_pickup_p99_ms": quiet.pickup_p99_ms,
        "herd_pickup_p99_ms": notice.pickup_p99_ms,
        "pickup_p99_ratio": notice.pickup_p99_ms / quiet.pickup_p99_ms,
    }


async def finish(place: House, jobs: int, due: float) -> dict[str, float]:
    """Wait for the last of the herd; count what ran, and what ran again after the crash."""
    worker = await place.start_worker(SLOTS)
    connection = await asyncpg.connect(place.dsn)
    done = 0
    try:
        while done < jobs and time.time() - due < LOST_AFTER_SECONDS:
            await asyncio.sleep(1)
            done = await connection.fetchval(
                "SELECT count(*) FROM jobs WHERE tenant = 1 AND state = 3"
            )
        again = await connection.fetchval(
            "SELECT count(*) FROM jobs WHERE tenant = 1 AND deliveries > 1"
        )
        rows = await connection.fetchval("SELECT count(*) FROM jobs WHERE tenant = 1")
    finally:
        await connection.close()
    await place.stop(worker)
    return {
        "herd_jobs": rows,
        "herd_succeeded": done,
        "herd_lost": jobs - done,
        "delivered_again": again,
        "herd_seconds": time.time() - due,
    }


# -- looks -------------------------------------------------------------------------------------


async def _promoted(place: House, client: httpx2.AsyncClient) -> float:
    return await place.counter(client, "fairway_jobs_promoted_total")


def _memory_mb(pid: int) -> float:
    """The most the process ever had."""
    text = Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in text.splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def _iso(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat()
