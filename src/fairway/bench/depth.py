"""`fairway bench depth`: does a deep queue cost anything?

The same load (submit, run, record, batches of 100) with a backlog of some ten thousand jobs and
with a million in front of it. What is compared is the rate of recorded outcomes; what is watched is
the server's memory.
"""

from __future__ import annotations

from fairway.bench import engine, output
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig.usage import memory_mb

SHALLOW_JOBS = 10_000


def run(*, json_output: bool, tenants: int, seconds: float, jobs: int) -> int:
    output.show(output.measured(measure(tenants, seconds, jobs)), json_output=json_output)
    return 0


async def measure(tenants: int, seconds: float, jobs: int) -> dict[str, float]:
    async with bench_platform(tenants) as platform:
        server = await platform.start_server()
        worker = await platform.start_worker(engine.SLOTS)
        shallow = await _rate(platform, seconds, SHALLOW_JOBS)
        await worker.stop()
        await engine.fill(platform, jobs)
        memory_filled = memory_mb(server.pid)
        await platform.start_worker(engine.SLOTS)
        deep = await _rate(platform, seconds, SHALLOW_JOBS)
        return {
            "shallow_jobs_per_s": round(shallow, 1),
            "deep_jobs_per_s": round(deep, 1),
            "depth_ratio": round(deep / shallow, 3),
            "server_memory_mb": round(max(memory_filled, memory_mb(server.pid)), 1),
        }


async def _rate(platform: BenchPlatform, seconds: float, backlog_max: int) -> float:
    requests = engine.batch_requests(platform)
    pressure = engine.Pressure(16, backlog_max, settle=False)
    rate, _ = await engine.lifecycle(platform, requests, seconds, pressure)
    return rate
