"""Workers die in every way a process can; no job is lost, none is recorded twice."""

from __future__ import annotations

import asyncio
import signal

import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import Program, is_alive, send, until

pytestmark = pytest.mark.usefixtures("spare_runners")

SLOW_APP = "tests.acceptance.slow_to_load:app"


async def test_a_worker_that_was_idle_for_a_while_still_takes_work(house: House) -> None:
    await house.open()
    await asyncio.sleep(2)  # several beats
    job = await house.post("nap", "short")
    view = await house.finished(job, within_seconds=1)
    assert (view["state"], view["attempts"], view["deliveries"]) == ("succeeded", 1, 1)


@pytest.mark.parametrize(
    "victim",
    ["tree", *(pytest.param(part, marks=pytest.mark.slow) for part in ("runner", "keeper"))],
)
async def test_kill_9_under_load(house: House, victim: str, figures: dict[str, str]) -> None:
    workers = await house.open(workers=2)
    kills = 3
    async with house.load() as load:
        for turn in range(kills):
            await load.has_accepted(40)
            place = turn % len(workers)
            workers[place] = await _strike(house, workers[place], victim)
    verdict = await house.check(load.accepted)
    assert verdict.lost_leases > 0, "no kill met a running job: the test proved nothing"
    figures[f"kill -9 of a worker's {victim}"] = (
        f"{verdict.jobs} jobs, {kills} kills, {verdict.lost_leases} leases lost,"
        f" {verdict.ran_twice} jobs ran twice"
    )


@pytest.mark.slow
async def test_a_runner_killed_while_it_starts_is_replaced_again(house: House) -> None:
    """Not one death but three in a row, the later ones before the new runner has loaded."""
    (worker,) = await house.open(app=SLOW_APP)
    jobs = [await house.post("nap", "short", seconds=0.5)]
    await house.ledger.begins(jobs[0])
    for _ in range(3):
        old = set(worker.runners())  # the shared one, and perhaps that of a job tried apart
        for pid in old:
            send(pid, signal.SIGKILL)
        await until(lambda old=old: set(worker.runners()) - old, 5, "another runner")
    jobs += [await house.post("nap", "short")]
    await house.check(jobs, drain_seconds=10)


async def test_a_process_killed_before_its_job_began_is_reported(house: House) -> None:
    (worker,) = await house.open(app=SLOW_APP)
    (shared,) = worker.runners()
    job = await house.post("haul", "long")
    await until(lambda: len(worker.runners()) > 1, 5, "the job's own process")
    for pid in worker.runners():
        if pid != shared:
            send(pid, signal.SIGKILL)
    verdict = await house.check([job], drain_seconds=10)
    assert (verdict.lost_leases, verdict.runs) == (1, 1)


async def _strike(house: House, worker: Program, victim: str) -> Program:
    """Kill the victim; answers the worker that stands in its place."""
    if victim == "runner":
        for pid in worker.runners():
            send(pid, signal.SIGKILL)
        return worker
    runners = worker.runners()
    if victim == "tree":
        await worker.kill()
    else:
        worker.send(signal.SIGKILL)
        await worker.ended(5)
    await until(lambda: not any(map(is_alive, runners)), 5, "the end of orphaned runners")
    return house.start_worker()
