"""A worker that was stopped past its lease and resumed: another's run stands, its own does not."""

from __future__ import annotations

import asyncio
import signal

import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import Program, is_resting, send, until

pytestmark = pytest.mark.usefixtures("spare_runners")

ONE_SLOT = ("short=1", "medium=1")
MODES = (("nap", "short"), ("work", "medium"))


async def test_resumed_while_the_successor_still_runs(house: House) -> None:
    workers = await house.open(workers=2, pools=ONE_SLOT)
    job = await house.post("vary", "medium", seconds=[2.0, 4.0])
    zombie = await _freeze_holder(house, workers, job)
    await house.ledger.begins(job, times=2, within_seconds=30)
    await _resume_with_an_outcome(house, zombie, job)
    await zombie.says("outcomes refused", within_seconds=20)
    assert await house.metric("fairway_outcomes_refused_total") >= 1
    await _check_winner(house, job, await house.finished(job, within_seconds=40))
    await _works_on(house, zombie, workers)


@pytest.mark.slow
async def test_resumed_after_the_successor_finished(house: House) -> None:
    workers = await house.open(workers=2, pools=ONE_SLOT)
    job = await house.post("vary", "short", seconds=[1.5, 0.1])
    zombie = await _freeze_holder(house, workers, job)
    await _check_winner(house, job, await house.finished(job, within_seconds=40))
    before = await house.view(job)
    await _resume_with_an_outcome(house, zombie, job)
    await zombie.says("outcomes refused", within_seconds=20)
    assert await house.view(job) == before
    await _works_on(house, zombie, workers)


@pytest.mark.slow
async def test_a_lone_worker_gets_its_lost_jobs_again(house: House) -> None:
    """The zombie and the successor are the same worker: an old run must not pass as the new."""
    (worker,) = await house.open(workers=1, pools=ONE_SLOT)
    jobs = [await house.post(kind, pool, seconds=2.5) for kind, pool in MODES]
    for job in jobs:
        await house.ledger.begins(job)
    worker.send_tree(signal.SIGSTOP)
    await _lost(house, leases=2)
    worker.send_tree(signal.SIGCONT)
    for job in jobs:
        view = await house.finished(job, within_seconds=40)
        assert (view["state"], view["attempts"], view["deliveries"]) == ("succeeded", 1, 2), view
        (first, *_) = house.ledger.begun(job)
        assert view["result"]["run"] != first["run"], "the run that lost its lease was recorded"
    await house.check(jobs)


async def _freeze_holder(house: House, workers: list[Program], job: str) -> Program:
    (begun,) = await house.ledger.begins(job)
    (holder,) = [worker for worker in workers if begun["pid"] in worker.runners()]
    holder.send_tree(signal.SIGSTOP)
    return holder


async def _resume_with_an_outcome(house: House, zombie: Program, job: str) -> None:
    """Its runner goes on first, and ends the run; then it wakes, with something to report.

    All at once, it might say hello and hear that the lease is lost before the run has ended.
    """
    runners = zombie.runners()
    (first, *_) = house.ledger.begun(job)
    for pid in runners:
        send(pid, signal.SIGCONT)
    run = first["run"]
    await until(
        lambda: run in [end["run"] for end in house.ledger.ended(job)],
        20,
        "the zombie's run to end",
    )
    await until(lambda: all(map(is_resting, runners)), 20, "the runner's last word")
    zombie.send_tree(signal.SIGCONT)


async def _lost(house: House, leases: int) -> None:
    for _ in range(300):
        if await house.metric("fairway_leases_lost_total") >= leases:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the lease of a silent worker was not taken away")


async def _check_winner(house: House, job: str, view: dict[str, object]) -> None:
    assert (view["state"], view["attempts"], view["deliveries"]) == ("succeeded", 1, 2), view
    await house.check([job])


async def _works_on(house: House, zombie: Program, workers: list[Program]) -> None:
    """It is a worker like any other again."""
    for worker in workers:
        if worker is not zombie:
            await worker.kill()
    job = await house.post("nap", "short")
    assert (await house.finished(job, within_seconds=20))["state"] == "succeeded"
