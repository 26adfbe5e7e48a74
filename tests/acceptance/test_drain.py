"""A worker that is told to end asks its jobs to hand themselves back; no outcome is lost."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import until
from tests.cli.program import fairway

HARD = "tests.acceptance.hard_jobs:app"


async def test_long_jobs_hand_themselves_back_well_before_the_grace_is_over(house: House) -> None:
    (worker,) = await house.open(app=HARD, grace=60)
    jobs = [await house.post("stop.process", "long"), await house.post("stop.thread", "medium")]
    for job in jobs:
        await house.ledger.begins(job)
    began = time.monotonic()
    worker.send(signal.SIGTERM)
    assert await worker.ended(30) == 0, worker.said
    assert time.monotonic() - began < 30
    for job in jobs:
        view = await house.view(job)
        assert (view["state"], view["attempts"], view["deliveries"]) == ("queued", 0, 1), view
        said = [line["event"] for line in house.ledger.lines() if line["job"] == job]
        assert said == ["begin", "draining"]


@pytest.mark.slow
async def test_an_operator_drains_a_worker_by_name(house: House, room: Path) -> None:
    kept, drained = await house.open(workers=2, app=HARD, grace=20)
    name = drained.log.stem
    access = {"FAIRWAY_URL": house.urls[0], "FAIRWAY_OPERATOR_KEY": house.operator_key}
    listed = await asyncio.to_thread(fairway, room, "worker", "ls", "--limits", **access)
    assert name in listed.out
    assert "processes:" in listed.out, "the level in force is shown"
    told = await asyncio.to_thread(fairway, room, "worker", "drain", name, **access)
    assert (told.status, f"{name} (" in told.out) == (0, True), told
    assert await drained.ended(20) == 0, drained.said
    assert kept.alive
    view = await house.finished(await house.post("nap", "short"))
    assert view["state"] == "succeeded"
    unknown = await asyncio.to_thread(fairway, room, "worker", "drain", "nobody", **access)
    assert unknown.status == 1
    assert unknown.err.startswith("fairway: There is no worker 'nobody'")


async def test_an_outcome_survives_the_death_of_its_worker(house: House) -> None:
    """The server is away when the job ends, and then its worker dies, too."""
    house.settings["FAIRWAY_LEASE_SECONDS"] = "short=2,medium=60,long=60"
    (worker,) = await house.open()
    (server,) = house.servers
    done = await house.finished(await house.post("haul", "long"))
    assert done["state"] == "succeeded"
    job = await house.post("work", "medium", seconds=2)
    await house.ledger.begins(job)
    await server.kill()
    await until(lambda: bool(house.ledger.ended(job)), 10, "the end of the run")
    journal = house.room / "journal"
    await until(
        lambda: any(job in path.read_text() for path in journal.iterdir()), 15, "the journal"
    )
    await worker.kill()
    await house.restart(server).ready()
    successor = house.start_worker()
    view = await house.finished(job, within_seconds=30)
    assert (view["state"], view["attempts"], view["deliveries"]) == ("succeeded", 1, 1), view
    assert len(house.ledger.begun(job)) == 1, "it ran again"
    assert "reporting outcomes of a worker that died" in successor.said
    await until(
        lambda: all(job not in path.read_text() for path in journal.iterdir()),
        5,
        "a journal without what was recorded",
    )
