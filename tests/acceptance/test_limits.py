"""Jobs that want too much: contained, of the right class, and the worker lives on."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.acceptance.checker import check_legality
from tests.acceptance.house import House
from tests.acceptance.processes import Program, is_alive, until

pytestmark = pytest.mark.usefixtures("spare_runners")

HARD = "tests.acceptance.hard_jobs:app"


async def failed(house: House, job: str, within_seconds: float = 40.0) -> dict[str, Any]:
    """How its first failed run ended, whatever becomes of the job then."""
    began = time.monotonic()
    while (view := await house.view(job))["error"] is None:
        assert time.monotonic() - began < within_seconds, view
        assert view["finished_at"] is None, view
        await asyncio.sleep(0.05)
    error: dict[str, Any] = view["error"]
    return error


async def lives_on(house: House, worker: Program, runners: list[int]) -> None:
    """The same worker, the same shared runner, and they still work."""
    assert worker.alive
    assert set(runners) <= set(worker.runners()), worker.said
    assert (await house.finished(await house.post("nap", "short")))["state"] == "succeeded"


#: Those of a line at once: no more than one kind of shortage at a time.
OVER_A_LIMIT = (
    ["memory.one", "memory.many"],
    ["fork", "disk", "files"],
    ["cpu", "cpu.children"],
)


async def test_a_job_over_its_limit_is_contained(house: House, figures: dict[str, str]) -> None:
    (worker,) = await house.open(app=HARD)
    runners = worker.runners()
    for kinds in OVER_A_LIMIT:
        began = time.monotonic()
        jobs = {kind: await house.post(kind, "medium") for kind in kinds}
        for kind, job in jobs.items():
            error = await failed(house, job)
            assert error["failure"] == "resource", (kind, error)
            figures[f"over a limit: {kind}"] = (
                f"{error['failure']}, {error['type']}, within {time.monotonic() - began:.1f} s"
            )
        await lives_on(house, worker, runners)
    assert "limits are held by" in worker.said


@pytest.mark.slow
async def test_a_runaway_is_dead_and_a_busy_job_is_not(house: House) -> None:
    (worker,) = await house.open(app=HARD)
    runners = worker.runners()
    wild, busy = await house.post("runaway", "long"), await house.post("busy", "long")
    view = await house.finished(wild, within_seconds=40)
    assert (view["state"], view["error"]["type"]) == ("dead", "Runaway"), view
    assert (await house.finished(busy, within_seconds=60))["state"] == "succeeded"
    await lives_on(house, worker, runners)


@pytest.mark.slow
async def test_time_limits_hold_in_every_mode(house: House, figures: dict[str, str]) -> None:
    """In the loop, in a coroutine that will not be cancelled, in a thread, in a process."""
    (worker,) = await house.open(app=HARD)
    kinds = {"late.loop": "short", "late.thread": "medium", "late.process": "long"}
    kinds["late.coroutine"] = "short"
    began = time.monotonic()
    jobs = {kind: await house.post(kind, pool) for kind, pool in kinds.items()}
    for kind, job in jobs.items():
        error = await failed(house, job)
        assert error["failure"] == "timeout", (kind, error)
        figures[f"a limit of 0.5 s: {kind}"] = f"after {time.monotonic() - began:.1f} s at most"
    assert worker.alive
    assert (await house.finished(await house.post("nap", "short")))["state"] == "succeeded"


@pytest.mark.slow
async def test_a_runner_that_lost_its_threads_is_replaced(house: House) -> None:
    """Its other jobs go on where they are; new ones go to its successor."""
    (worker,) = await house.open(app=HARD, pools=("short=2", "medium=2"))
    (old,) = worker.runners()
    nap = await house.post("nap", "short", seconds=8)
    await house.ledger.begins(nap)
    late = [await house.post("late.thread", "medium") for _ in range(2)]
    for job in late:
        assert (await failed(house, job))["failure"] == "timeout"
    await worker.says("replacing it")
    view = await house.finished(await house.post("nap", "short"))
    assert view["result"]["pid"] != old
    view = await house.finished(nap)
    assert (view["state"], view["deliveries"], view["result"]["pid"]) == ("succeeded", 1, old)
    await until(lambda: not is_alive(old), 10, "the end of the old runner")


@pytest.mark.slow
async def test_a_runner_that_nobody_can_reach_is_killed(house: House) -> None:
    """The job that holds it is late; its neighbours were lost, which costs them no attempt."""
    (worker,) = await house.open(app=HARD)
    nap = await house.post("nap", "short", seconds=30)
    await house.ledger.begins(nap)
    assert (await failed(house, await house.post("late.deaf", "short")))["failure"] == "timeout"
    assert worker.alive
    assert "runner does not answer" in worker.said
    view = await house.finished(nap, within_seconds=60)
    assert (view["state"], view["attempts"]) == ("succeeded", 1)
    assert 2 <= view["deliveries"] <= 3, "the late job is tried twice"


async def test_the_whole_family_of_a_job_ends_with_it(house: House) -> None:
    """Of one that is late, and what one that succeeds leaves behind."""
    await house.open(app=HARD)
    job = await house.post("late.family", "long")
    assert (await failed(house, job))["failure"] == "timeout"
    (pid,) = {int(line["event"].split()[1]) for line in house.ledger.lines()[:1]}
    await until(lambda: not is_alive(pid), 5, "the end of the daemon")
    view = await house.finished(await house.post("leaves.daemon", "long"))
    assert view["state"] == "succeeded"
    await until(lambda: not is_alive(view["result"]), 5, "the end of the daemon")


@pytest.mark.slow
async def test_jobs_that_kill_their_process_harm_nobody(
    house: House, figures: dict[str, str]
) -> None:
    """Each has a process to itself: poison in the end, no attempt used, back-off in between."""
    (worker,) = await house.open(app=HARD)
    bad = [await house.post(kind, "long") for kind in ("die.kill", "die.segfault")]
    async with house.load(types=[("nap", "short")], rate=60) as load:
        views = [await house.finished(job, within_seconds=90) for job in bad]
    for view in views:
        assert (view["state"], view["attempts"], view["deliveries"]) == ("dead", 0, 10), view
        assert view["error"]["type"] == "WorkerCrash"
        begun = [line["at"] for line in house.ledger.begun(view["id"])]
        assert len(begun) == 10
        assert begun[-1] - begun[-2] > begun[1] - begun[0], "no back-off"
    assert worker.alive
    await house.book.drained(30)
    rows = await house.book.rows()
    good = [rows[job] for job in load.accepted]
    assert {(row.attempts, row.deliveries) for row in good} == {(1, 1)}
    check_legality(await house.book.changes())
    figures["two jobs that kill their process ten times each"] = f"{len(good)} others unharmed"


@pytest.mark.slow
async def test_a_handler_that_never_yields_keeps_its_lease(house: House) -> None:
    """For three times the lease of its pool, which is two seconds."""
    await house.open(workers=2, app=HARD)
    job = await house.post("spin", "short", seconds=6)
    verdict = await house.check([job])
    assert (verdict.lost_leases, verdict.runs) == (0, 1)
