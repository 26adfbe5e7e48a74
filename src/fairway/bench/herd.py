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
from datetime import UTC, datetime
from itertools import repeat
from typing import NamedTuple

import asyncpg

from fairway.bench import output
from fairway.bench.engine import SLOTS
from fairway.bench.output import screen
from fairway.bench.pickup import offer, pickup_seconds, timed
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig.load import closed_loop
from fairway.rig.load_client import post
from fairway.rig.quantile import quantile
from fairway.rig.usage import memory_mb

TENANTS = 50  # the first has the herd
HERD_BATCH = 1000
IDLE_JOBS = 1000
IDLE_SECONDS = 10.0
HAND_IN_SECONDS = 8.0
PROBES_PER_SECOND = 100.0
FILL_PER_SECOND = 3000  # slower than it is: the herd must be there before it is due
LOST_AFTER_SECONDS = 1800.0
PROMOTED = "fairway_jobs_promoted_total"


class Notice(NamedTuple):
    """What other tenants notice."""

    submit_p95_ms: float
    pickup_p99_ms: float


def run(*, json_output: bool, jobs: int, seconds: float, per_second: int) -> int:
    output.show(output.measured(measure(jobs, seconds, per_second)), json_output=json_output)
    return 0


async def measure(jobs: int, seconds: float, per_second: int) -> dict[str, float]:
    rates = {
        "FAIRWAY_PROMOTE_PER_SECOND": str(per_second),
        "FAIRWAY_PROMOTE_TENANT_PER_SECOND": str(per_second),
    }
    async with bench_platform(TENANTS) as platform:
        server = await platform.start_server(rates)
        figures = await idle(platform)
        screen.print("quiet …")
        quiet = await probe(platform, seconds)
        screen.print(f"handing in {jobs} jobs …")
        due = await fill(platform, jobs)
        screen.print("herd …")
        figures |= await under_herd(platform, quiet, due, seconds)
        figures["server_memory_mb"] = memory_mb(server.pid, "VmHWM")
        await server.kill()
        screen.print("another server takes over …")
        await platform.start_server(rates)
        figures |= await finish(platform, jobs, due)
    return {name: round(value, 3) for name, value in figures.items()}


# -- parts -------------------------------------------------------------------------------------


async def idle(platform: BenchPlatform) -> dict[str, float]:
    """How late jobs start that are due one by one."""
    screen.print("idle …")
    _, found = await pickup_seconds(platform, SLOTS, _one_by_one(platform))
    return {
        "idle_jobs": len(found),
        "idle_late_p50_ms": quantile(found, 0.5) * 1000,
        "idle_late_p99_ms": quantile(found, 0.99) * 1000,
    }


async def _one_by_one(platform: BenchPlatform) -> None:
    """Jobs of many tenants, each due at a moment of its own; returns when all were."""
    dice = random.Random(5)
    begin = time.time() + HAND_IN_SECONDS
    for n in range(IDLE_JOBS // 20):
        moments = [begin + dice.random() * IDLE_SECONDS for _ in range(20)]
        jobs = [
            {"type": "bench.timed", "payload": {"sent": moment}, "execute_at": _iso(moment)}
            for moment in moments
        ]
        client = platform.client(platform.keys[1 + n % (TENANTS - 1)])
        answer = await client.send_json("POST", "/v1/jobs/batch", {"jobs": jobs})
        if answer.status >= 300:
            raise RuntimeError(f"Jobs were refused: {answer.status} {answer.body[:300]!r}")
    if time.time() > begin:
        raise RuntimeError("Handing the jobs in took longer than it may; nothing was measured.")
    await asyncio.sleep(max(begin + IDLE_SECONDS + 1 - time.time(), 0))


async def probe(platform: BenchPlatform, seconds: float) -> Notice:
    """Other tenants' jobs at a steady rate: the front door, and the way to the handler."""
    others = random.Random(3).choices(platform.keys[1:], k=int(seconds * 300) + 1000)
    load = offer(
        platform, timed(iter(others)), per_second=PROBES_PER_SECOND, seconds=seconds, connections=32
    )
    volley, found = await pickup_seconds(platform, SLOTS, load)
    return Notice(volley.reply_quantile(0.95) * 1000, quantile(found, 0.99) * 1000)


async def fill(platform: BenchPlatform, jobs: int) -> float:
    """Hand the herd in; answers when it is due."""
    due = float(round(time.time() + 10 + jobs / FILL_PER_SECOND))
    job = {"type": "bench.noop", "payload": {"n": 1}, "execute_at": _iso(due), "exact": True}
    body = json.dumps({"jobs": [job] * HERD_BATCH}).encode()
    request = post("/v1/jobs/batch", platform.keys[0], body)
    requests = repeat((request, HERD_BATCH), jobs // HERD_BATCH)
    await closed_loop(platform.client(), requests, connections=4)
    return due


async def under_herd(
    platform: BenchPlatform, quiet: Notice, due: float, seconds: float
) -> dict[str, float]:
    await asyncio.sleep(max(due - time.time(), 0))
    began, before = time.time(), await platform.metric(PROMOTED)
    notice = await probe(platform, seconds)
    rate = (await platform.metric(PROMOTED) - before) / (time.time() - began)
    return {
        "promoted_per_s": rate,
        "quiet_submit_p95_ms": quiet.submit_p95_ms,
        "herd_submit_p95_ms": notice.submit_p95_ms,
        "submit_p95_ratio": notice.submit_p95_ms / quiet.submit_p95_ms,
        "quiet_pickup_p99_ms": quiet.pickup_p99_ms,
        "herd_pickup_p99_ms": notice.pickup_p99_ms,
        "pickup_p99_ratio": notice.pickup_p99_ms / quiet.pickup_p99_ms,
    }


async def finish(platform: BenchPlatform, jobs: int, due: float) -> dict[str, float]:
    """Wait for the last of the herd; count what ran, and what ran again after the crash."""
    worker = await platform.start_worker(SLOTS)
    connection = await asyncpg.connect(platform.dsn)
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
    await worker.stop()
    return {
        "herd_jobs": rows,
        "herd_succeeded": done,
        "herd_lost": jobs - done,
        "delivered_again": again,
        "herd_seconds": time.time() - due,
    }


def _iso(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat()
