"""`fairway lab clients`: how many people can wait at once, and what each way of waiting costs.

The crowd grows by one a second to 500, then faster to 8 000, or until the machine is at its limit.
Every few seconds a reading: requests a second, p50 and p95, processor time of the platform.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import NamedTuple

from fairway.lab.crowd import WAYS, Crowd, Way
from fairway.lab.experiments import clients_report
from fairway.lab.experiments.clients_report import CrowdReading, Run
from fairway.lab.platform import POOL, LabPlatform, lab_platform
from fairway.lab.report.content import Report
from fairway.lab.screen import Bar, bar
from fairway.rig.quantile import quantile
from fairway.rig.usage import tree_seconds
from fairway.rig.validity import complaints

PERIOD_SECONDS = 1.0
SLOTS = 4000
SLOW_UNTIL, SLOW_PER_SECOND = 500, 1.0
FAST_PER_SECOND = 20.0
LIMIT_P95_SECONDS = 0.5  # beyond this the machine is at its limit: growing on proves nothing
READING_SECONDS = 5.0


class CrowdSetup(NamedTuple):
    speed: float = 1.0  # the crowd grows so many times faster; nothing else changes
    clients_max: int = 8000
    job_seconds: float = 10.0
    ways: tuple[Way, ...] = WAYS


def size_at(setup: CrowdSetup, seconds: float) -> int:
    """How large the crowd is meant to be."""
    seconds *= setup.speed
    slow_seconds = SLOW_UNTIL / SLOW_PER_SECOND
    slow = min(seconds, slow_seconds) * SLOW_PER_SECOND
    fast = max(0.0, seconds - slow_seconds) * FAST_PER_SECOND
    return min(setup.clients_max, 1 + int(slow + fast))


async def run(setup: CrowdSetup) -> Report:
    runs = []
    for way in setup.ways:
        async with lab_platform() as platform:  # each way on a platform that nobody has tired yet
            await platform.start_worker("worker", {POOL: SLOTS})
            runs.append(await _ramp(platform, setup, way))
    return clients_report.report(setup.speed, setup.job_seconds, runs)


async def _ramp(platform: LabPlatform, setup: CrowdSetup, way: Way) -> Run:
    crowd = Crowd(platform.tenant, way, setup.job_seconds, PERIOD_SECONDS)
    readings: list[CrowdReading] = []
    with bar(way, setup.clients_max) as progress:
        try:
            stopped_by = await _grow(platform, setup, crowd, readings, progress)
        finally:
            await crowd.go_home()
    return Run(way, readings, stopped_by, crowd.errors)


async def _grow(
    platform: LabPlatform,
    setup: CrowdSetup,
    crowd: Crowd,
    readings: list[CrowdReading],
    progress: Bar,
) -> str:
    began = time.monotonic()
    while True:
        meter = _Meter(platform)
        until = time.monotonic() + READING_SECONDS
        while time.monotonic() < until:
            crowd.grow(size_at(setup, time.monotonic() - began))
            await asyncio.sleep(0.1)
        reading = meter.read(crowd)
        readings.append(reading)
        progress.reach(crowd.size)
        progress.say(f"{crowd_line(reading)}")
        if reading.behind:
            return "the generator could not keep up: " + reading.behind[0]
        if reading.p95 > LIMIT_P95_SECONDS:
            return f"p95 passed {LIMIT_P95_SECONDS * 1000:.0f} ms"
        if crowd.size >= setup.clients_max:
            return "all clients were there"


def crowd_line(reading: CrowdReading) -> str:
    return f"{reading.way} {reading.per_second:,.0f} requests/s, p95 {reading.p95 * 1000:.0f} ms"


class _Meter:
    """From now until `read`: time and processor time."""

    def __init__(self, platform: LabPlatform) -> None:
        self._programs = platform.programs.pids
        self._at, self._used, self._own = time.monotonic(), self._platform(), _own()

    def _platform(self) -> float:
        return sum(tree_seconds(pid) for pid in self._programs)

    def read(self, crowd: Crowd) -> CrowdReading:
        seconds = time.monotonic() - self._at
        looks, crowd.looks = crowd.looks, []
        notices, crowd.notices = crowd.notices, []
        waits = [look.answered - look.intended for look in looks]
        lags = [look.sent - look.intended for look in looks]
        return CrowdReading(
            way=crowd.way,
            clients=crowd.size,
            per_second=len(looks) / seconds,
            p50=quantile(waits, 0.5),
            p95=quantile(waits, 0.95),
            refused=sum(look.status >= 400 for look in looks),
            platform_cores=(self._platform() - self._used) / seconds,
            generator_cores=(_own() - self._own) / seconds,
            notice_p50=quantile(notices, 0.5),
            behind=complaints(lags, len(lags)),
        )


def _own() -> float:
    used = os.times()
    return used.user + used.system
