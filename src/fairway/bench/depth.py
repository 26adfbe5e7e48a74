"""`fairway bench depth`: does a deep queue cost anything?

The same load (submit, run, record, batches of 100) with a backlog of some ten thousand jobs and
with a million in front of it. What is compared is the rate of recorded outcomes; what is watched is
the server's memory.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import uvloop
from rich.console import Console

from fairway.bench import engine
from fairway.bench.house import House, house
from fairway.runtime.telemetry import configure_logging

SHALLOW_JOBS = 10_000


def run(*, json_output: bool, tenants: int, seconds: float, jobs: int) -> int:
    configure_logging(json_lines=False)
    figures = uvloop.run(measure(tenants, seconds, jobs))
    if json_output:
        print(json.dumps(figures))  # noqa: T201  # data goes to stdout
    else:
        Console().print(figures)
    return 0


async def measure(tenants: int, seconds: float, jobs: int) -> dict[str, float]:
    async with house(tenants) as place:
        server = await place.start_server()
        worker = await place.start_worker(engine.SLOTS)
        shallow = await _rate(place, seconds, SHALLOW_JOBS)
        await place.stop(worker)
        await engine.fill(place, jobs)
        memory_filled = _memory_mb(server)
        await place.start_worker(engine.SLOTS)
        deep = await _rate(place, seconds, SHALLOW_JOBS)
        return {
            "shallow_jobs_per_s": round(shallow, 1),
            "deep_jobs_per_s": round(deep, 1),
            "depth_ratio": round(deep / shallow, 3),
            "server_memory_mb": round(max(memory_filled, _memory_mb(server)), 1),
        }


async def _rate(place: House, seconds: float, backlog_max: int) -> float:
    requests = engine.batch_requests(place)
    rate, _ = await engine.lifecycle(
        place, requests, seconds, connections=16, backlog_max=backlog_max, settle=False
    )
    return rate


def _memory_mb(process: asyncio.subprocess.Process) -> float:
    text = Path(f"/proc/{process.pid}/status").read_text()
    resident = next(line for line in text.splitlines() if line.startswith("VmRSS"))
    return int(resident.split()[1]) / 1024
