"""Workers are told to stop while they work: they finish or hand back, and end with status 0."""

from __future__ import annotations

import signal
import time

import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import is_alive

MODES = [("nap", "short"), ("work", "medium"), ("haul", "long")]


@pytest.mark.slow
async def test_three_deploys_under_load(house: House, figures: dict[str, str]) -> None:
    (worker,) = await house.open()
    seconds = []
    async with house.load() as load:
        for _ in range(3):
            await load.has_accepted(40)
            began = time.monotonic()
            worker.send(signal.SIGTERM)
            successor = house.start_worker()
            assert await worker.ended(15) == 0, worker.said
            seconds.append(time.monotonic() - began)
            await successor.says("worker ready")
            worker = successor
    verdict = await house.check(load.accepted)
    assert verdict.lost_leases == 0, "a deploy cost a delivery"
    assert verdict.ran_twice == 0, "a job that had time to finish ran twice"
    figures["three deploys under load"] = (
        f"{verdict.jobs} jobs, drained in {max(seconds):.1f} s at most, none ran twice"
    )


async def test_jobs_longer_than_the_grace_are_handed_back(house: House) -> None:
    (worker,) = await house.open(grace=1)
    jobs = [await house.post(kind, pool, seconds=60) for kind, pool in MODES]
    for job in jobs:
        await house.ledger.begins(job)
    runners = worker.runners()
    began = time.monotonic()
    worker.send(signal.SIGTERM)
    assert await worker.ended(5) == 0, worker.said
    assert time.monotonic() - began >= 1
    assert not [pid for pid in runners if is_alive(pid)], "a runner outlived its worker"
    for job in jobs:
        view = await house.view(job)
        assert (view["state"], view["attempts"], view["deliveries"]) == ("queued", 0, 1)
