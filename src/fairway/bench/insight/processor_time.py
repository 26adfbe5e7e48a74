"""Processor time of what is measured, by program: it holds where others use the same processors.

What a server, its PostgreSQL and a worker use, with all that they started; not who loads them, not
who looks at them. Jobs are those that the server counts as recorded, in the same span.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import NamedTuple

from fairway.bench.platform import BenchPlatform
from fairway.rig.usage import family_seconds

RECORDED = "fairway_outcomes_recorded_total"


class Spent(NamedTuple):
    """In one span of a load."""

    jobs: float
    seconds: float
    processor_seconds: Mapping[str, float]  # by program

    @property
    def us_a_job(self) -> float:
        return self.us_a_job_of(*self.processor_seconds)

    @property
    def jobs_per_second(self) -> float:
        return self.jobs / self.seconds

    def us_a_job_of(self, *programs: str) -> float:
        return sum(self.processor_seconds[one] for one in programs) / self.jobs * 1e6


async def spent(
    platform: BenchPlatform, pids: Mapping[str, int], warm_seconds: float, seconds: float
) -> Spent:
    """By these programs, from `warm_seconds` from now on."""
    await asyncio.sleep(warm_seconds)
    began, jobs = time.perf_counter(), await platform.metric(RECORDED)
    before = {name: family_seconds(pid) for name, pid in pids.items()}
    await asyncio.sleep(seconds)
    done = await platform.metric(RECORDED) - jobs
    used = {name: family_seconds(pid) - before[name] for name, pid in pids.items()}
    return Spent(done, time.perf_counter() - began, used)
