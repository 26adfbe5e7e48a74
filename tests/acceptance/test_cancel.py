"""Running jobs are asked to stop: those that look do, those that do not are stopped."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from typing import Any

import pytest
from tests.acceptance.checker import check_legality
from tests.acceptance.house import House
from tests.acceptance.processes import Program

HARD = "tests.acceptance.hard_jobs:app"
FINAL = {"succeeded", "cancelled", "dead"}
LOOKING = (("stop.coroutine", "medium"), ("stop.thread", "medium"), ("stop.process", "long"))


async def cancelled(house: House, job: str) -> dict[str, Any]:
    await house.ledger.begins(job)
    assert (await house.call("DELETE", f"/v1/jobs/{job}")).status_code == 202
    return await house.finished(job, within_seconds=30)


async def test_a_handler_that_looks_stops(house: House) -> None:
    """And is let to tidy up first."""
    await house.open(app=HARD)
    for kind, pool in LOOKING:
        job = await house.post(kind, pool)
        began = time.monotonic()
        view = await cancelled(house, job)
        assert (view["state"], view["attempts"]) == ("cancelled", 0), (kind, view)
        assert time.monotonic() - began < 20, "it did not hear, it was stopped"
        events = [line["event"] for line in house.ledger.lines() if line["job"] == job]
        assert "tidied" in events, kind
        if kind == "stop.process":
            assert view["progress"]["text"] == "half way", "its progress is kept"


async def test_a_handler_that_does_not_is_stopped_after_its_grace(house: House) -> None:
    (worker,) = await house.open(app=HARD)
    shared = worker.runners()
    deaf = [await house.post("deaf.thread", "medium"), await house.post("deaf.process", "long")]
    began = time.monotonic()
    for view in await asyncio.gather(*(cancelled(house, job) for job in deaf)):
        assert (view["state"], view["attempts"]) == ("cancelled", 0), view
    assert 1 <= time.monotonic() - began < 30
    assert len(house.ledger.begun(deaf[0])) == 1
    assert _works(worker, shared)
    assert (await house.finished(await house.post("nap", "short")))["state"] == "succeeded"


def _works(worker: Program, shared: list[int]) -> bool:
    return worker.alive and set(shared) <= set(worker.runners())


async def test_a_job_whose_worker_dies_while_it_is_asked_to_stop_is_not_run_again(
    house: House,
) -> None:
    (worker,) = await house.open(app=HARD)
    job = await house.post("deaf.process", "long")
    await house.ledger.begins(job)
    assert (await house.call("DELETE", f"/v1/jobs/{job}")).status_code == 202
    await worker.kill()
    house.start_worker(app=HARD)
    assert (await house.finished(job, within_seconds=30))["state"] == "cancelled"
    assert len(house.ledger.begun(job)) == 1


@pytest.mark.slow  # tests/services/test_cancel_races.py is its brother in every run of the suite
async def test_cancelling_at_any_moment_leaves_one_final_state(
    house: House, figures: dict[str, str]
) -> None:
    """Hundreds of jobs, each cancelled at a random moment of its short life."""
    await house.open(app=HARD)
    dice = random.Random(7)

    async def one() -> str:
        pool, kind = dice.choice([("short", "nap"), ("short", "nap"), ("medium", "nap")])
        job = await house.post(kind, pool, seconds=dice.choice((0.0, 0.02, 0.3)))
        await asyncio.sleep(dice.random() * 0.1)
        reply = await house.call("DELETE", f"/v1/jobs/{job}")
        assert reply.status_code in (200, 202, 409), reply.text
        state = str((await house.finished(job))["state"])
        if reply.status_code == 200:
            assert state == reply.json()["state"], "it ended, and then it ended otherwise"
        return state

    async def several(count: int) -> list[str]:
        return [await one() for _ in range(count)]

    told = [state for states in await asyncio.gather(*map(several, [25] * 12)) for state in states]
    rows = await house.book.rows()
    assert len(rows) == len(told) == 300
    check_legality(await house.book.changes())
    ends = Counter(told)
    assert ends["cancelled"] > 10, ends
    assert ends["succeeded"] > 10, ends
    assert set(ends) <= FINAL
    figures["300 jobs cancelled at random moments"] = (
        f"{ends['cancelled']} cancelled, {ends['succeeded']} succeeded, one end each"
    )
