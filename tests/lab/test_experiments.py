"""Experiments at a trial's length, on real processes: what they find must make sense."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fairway.lab.crowd import WAYS, Crowd
from fairway.lab.experiments import fleet, pool, scale
from fairway.lab.experiments.clients import CrowdSetup as ClientsSetup
from fairway.lab.experiments.clients import size_at
from fairway.lab.experiments.steps import StepSetup, run_step
from fairway.lab.platform import POOL, lab_platform
from fairway.lab.report.content import Report
from fairway.lab.report.page import write
from fairway.lab.scenario import load
from fairway.rig.load import open_loop

#: A worker dies, in as little time as shows it.
SMALL = """
name = "small"
title = "A worker dies"
question = "Is anything lost?"
seconds = 4
drain_seconds = 60
settings = { FAIRWAY_LEASE_SECONDS = "short=2,medium=2" }
workers = { count = 2, slots = { short = 5, medium = 5 } }

[[tenants]]
name = "customers"
count = 3
skew = 4
per_second = 10
jobs = [
  { type = "lab.short", pool = "short", seconds = 0.2, share = 2 },
  { type = "lab.medium", pool = "medium", seconds = 0.5, share = 1 },
]

[[happenings]]
at = 2
what = "kill_worker"

[[expect]]
figure = "all/all/all/dead"
most = 0
"""


@pytest.mark.slow
async def test_a_step_beyond_the_limit_completes_at_the_limit_and_loses_nothing() -> None:
    setup = StepSetup(speed=5)
    async with lab_platform() as platform:
        await platform.start_worker("worker", {POOL: 10})
        easy = await run_step(platform, setup, 0.5 * setup.theory, services=6)
        full = await run_step(platform, setup, 2 * setup.theory, services=6)
    assert easy.load.lost == full.load.lost == []
    assert len(full.load.lives) == len(full.load.volley.shots)
    assert full.point(setup.service).completed < 1.05 * setup.theory
    assert full.point(setup.service).completed > 0.5 * setup.theory
    # Below the limit a job takes its service time and little more; beyond, it waits in the line.
    quick = sorted(life.latency for life in easy.load.lives)[len(easy.load.lives) // 2]
    slow = sorted(life.latency for life in full.load.lives)[-1]
    assert setup.service <= quick < 3 * setup.service
    assert slow > 2 * setup.service


async def test_a_generator_that_is_held_up_says_that_the_run_is_invalid() -> None:
    async def hold_up(number: int, intended: float) -> tuple[int, str]:
        if number == 0:
            await asyncio.to_thread(lambda: None)
            end = asyncio.get_running_loop().time() + 0.5
            while asyncio.get_running_loop().time() < end:
                pass  # nothing else moves meanwhile: the generator cannot shoot
        return 202, f"job-{number}"

    volley = await open_loop([n * 0.005 for n in range(60)], hold_up)
    assert any("fell behind" in why for why in volley.complaints)
    assert max(shot.reply_seconds for shot in volley.shots) > 0.3  # from the intended start


@pytest.mark.slow
async def test_workers_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "WORKERS_MAX", 2)
    monkeypatch.setattr(scale, "HOLD_SERVICES", 10)
    report = await scale.run(StepSetup(speed=4))
    assert report.data["lost"] == 0
    assert 1.4 < report.data["speedup_at_4"] < 2.6
    _is_whole(report, tmp_path)


@pytest.mark.slow
async def test_a_small_pool_starves_and_fairway_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "POOLS", (5,))
    monkeypatch.setattr(pool, "HOLD_SERVICES", 6)
    report = await pool.run(StepSetup(speed=2))
    naive, fairway = report.data["outcomes"]
    assert report.data["starved_pools"] == [5]
    assert naive["waiters_max"] > 20
    assert naive["front_door_p95_ms"] > 5 * fairway["front_door_p95_ms"]
    assert fairway["completed_per_s"] > 2 * naive["completed_per_s"]
    _is_whole(report, tmp_path)


@pytest.mark.slow
async def test_people_learn_that_their_jobs_are_done_by_every_way_of_waiting() -> None:
    async with lab_platform() as platform:
        await platform.start_worker("worker", {POOL: 20})
        for way in WAYS:
            crowd = Crowd(platform.tenant, way, job_seconds=0.5, period_seconds=0.1)
            crowd.grow(2)
            await _heard_of(crowd, jobs=6)
            await crowd.go_home()
            assert crowd.errors == []
            statuses = {look.status for look in crowd.looks}
            assert statuses == {"poll": {200, 202}, "head": {200, 202, 304}, "sse": {202}}[way]


async def _heard_of(crowd: Crowd, jobs: int) -> None:
    async with asyncio.timeout(60):
        while True:
            if len(crowd.notices) >= jobs:
                return
            await asyncio.sleep(0.05)


def test_the_crowd_grows_by_one_a_second_then_faster_up_to_its_size() -> None:
    setup = ClientsSetup()
    assert [size_at(setup, at) for at in (0, 10, 499)] == [1, 11, 500]
    assert size_at(setup, 501) == 521
    assert size_at(setup, 10_000) == 8000
    assert size_at(ClientsSetup(speed=10), 10) == 101


@pytest.mark.slow
async def test_a_scenario_is_played_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    report = await fleet.run(fleet.FleetSetup(load(str(file))))
    assert report.data["lost"] == 0
    assert report.data["figures"]["all/all/all/succeeded"] == report.data["accepted"]
    _is_whole(report, tmp_path)


def _is_whole(report: Report, folder: Path) -> None:
    page = write(report, folder)
    assert page.stat().st_size > 10_000
    assert report.answer
    assert report.findings
