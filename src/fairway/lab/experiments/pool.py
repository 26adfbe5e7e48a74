"""`fairway lab pool`: what it does to hold a connection while a job runs, and not to hold one.

The naive service of `naive.py` with pools of 5, 10, 20 and 40 against Fairway with four workers of
ten slots, all at 20 a second. The demand is 20 × 1.5 = 30 scores at a time.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import msgspec

from fairway.lab.experiments import pool_report
from fairway.lab.experiments.pool_report import Outcome, Sample
from fairway.lab.experiments.steps import SLOTS, StepSetup
from fairway.lab.load import score_load
from fairway.lab.platform import POOL, LabPlatform, lab_platform
from fairway.lab.report.content import Report
from fairway.lab.screen import bar
from fairway.rig.arrivals import plan
from fairway.rig.load import Volley, open_loop
from fairway.rig.load_client import JSON, LoadClient
from fairway.rig.platform import start_postgres
from fairway.rig.program import free_port

POOLS = (5, 10, 20, 40)
PER_SECOND = 20.0
WORKERS = 4
HOLD_SERVICES = 20
SAMPLE_SECONDS = 0.1


class JobTimes(NamedTuple):
    id: str
    started: float | None
    finished: float | None


class State(msgspec.Struct):
    lives: list[JobTimes]
    samples: list[Sample]


async def run(setup: StepSetup) -> Report:
    async with lab_platform() as platform:
        # A database for the naive service alone: it must not hurt the one it is compared with.
        dsn = await start_postgres(platform.programs, "naive")
        outcomes = [await _naive(platform, setup, dsn, size) for size in POOLS]
        outcomes.append(await _fairway(platform, setup))
    return pool_report.report(setup, outcomes)


def _plan(setup: StepSetup) -> list[float]:
    hold = HOLD_SERVICES * setup.service
    return plan(PER_SECOND * setup.speed, hold, shape=setup.arrivals, seed=setup.seed)


async def _naive(platform: LabPlatform, setup: StepSetup, dsn: str, size: int) -> Outcome:
    port = free_port()
    log = f"naive-{size}"
    words = ("fairway.lab.naive", dsn, str(size), str(setup.service), str(port))
    program = await platform.programs.start(log, *words)
    client = LoadClient(f"http://127.0.0.1:{port}")
    await _answers(client)
    arrivals = _plan(setup)
    with bar(f"naive, pool of {size}", len(arrivals)) as progress:
        volley = await open_loop(arrivals, lambda n, _: _apply(client, n), progress.step)
    answer = await client.ask("GET", "/state")
    state = msgspec.json.decode(answer.body, type=State)
    client.close()
    await program.stop()
    return _outcome(f"naive, pool {size}", size, volley, state)


async def _apply(client: LoadClient, number: int) -> tuple[int, str]:
    body = msgspec.json.encode({"candidate": f"candidate-{number}"})
    answer = await client.ask("POST", "/applications", body, JSON)
    return answer.status, msgspec.json.decode(answer.body)["id"] if answer.status == 202 else ""


async def _answers(client: LoadClient) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await client.ask("GET", "/state")
                return
            except OSError:
                await asyncio.sleep(0.05)


def _outcome(name: str, size: int, volley: Volley, state: State) -> Outcome:
    """Scores that were not ready when the load ended count with the age they had by then."""
    ended = time.time()
    finished = {life.id: life.finished for life in state.lives}
    latencies = [
        (finished.get(job) or ended) - shot.intended for job, shot in volley.accepted.items()
    ]
    done = [at for at in finished.values() if at is not None]
    return Outcome(name, size, volley, latencies, done, state.samples)


async def _fairway(platform: LabPlatform, setup: StepSetup) -> Outcome:
    for number in range(1, WORKERS + 1):
        await platform.start_worker(f"worker-{number}", {POOL: SLOTS})
    samples: list[Sample] = []
    sampler = asyncio.create_task(_sample(platform, samples))
    arrivals = _plan(setup)
    with bar("Fairway, 4 workers", len(arrivals)) as progress:
        load = await score_load(platform, arrivals, setup.service, progress.step)
    sampler.cancel()
    latencies = [life.latency for life in load.lives]
    done = [life.finished for life in load.lives]
    return Outcome("Fairway", None, load.volley, latencies, done, samples)


async def _sample(platform: LabPlatform, samples: list[Sample]) -> None:
    while True:
        waiters = await platform.metric("fairway_database_waiters")
        samples.append(Sample(time.time(), int(waiters), 0))
        await asyncio.sleep(SAMPLE_SECONDS)
