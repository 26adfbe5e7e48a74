"""Chains and groups through the SDK, with real programs: once, whoever dies in the middle."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.acceptance import flow_jobs
from tests.acceptance.house import House

from fairway import App, FlowHandle, InvalidRequest, Job, JobCancelled, chain, group

APP = "tests.acceptance.flow_jobs:app"
MANY = 3_000  # more than two pages


def caller(house: House, *jobs: Job[..., Any]) -> list[Job[..., Any]]:
    """The same jobs, of a program that hands them in."""
    app = App("caller", url=house.urls[0], api_key=house.api_key)
    return [app.job(name=job.name)(job.function) for job in jobs]


async def cut_off_from_the_store(house: House) -> None:
    """Every connection ends where it is, in the middle of transactions."""
    connection = await asyncpg.connect(house.dsn)
    try:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    finally:
        await connection.close()


async def settled(handle: FlowHandle, state: str, seconds: float = 30) -> Any:
    async with asyncio.timeout(seconds):
        while (view := await handle.astatus()).state != state:  # noqa: ASYNC110  # by HTTP
            await asyncio.sleep(0.05)
    return view


async def test_chains_groups_and_what_comes_after(house: House, tmp_path: Path) -> None:
    await house.open(app=APP)
    add, total, break_if = caller(house, flow_jobs.add, flow_jobs.total, flow_jobs.break_if)
    handle = await chain(add.s(1), add.s(b=10), total.s(note="in all")).aenqueue()
    assert await handle.aresult("20s") == "12 in all"
    view = await settled(handle, "succeeded")
    assert (view.kind, view.total, view.succeeded, view.callback) == ("chain", 3, 3, None)

    trouble = tmp_path / "trouble"
    trouble.touch()
    flow = group([add.s(1), break_if.s(str(trouble))], then=total.s(2, note="done"))
    handle = await flow.aenqueue()
    view = await settled(handle, "failed")
    assert (view.succeeded, view.failed, view.failed_job) == (1, 1, handle.jobs[1].id)
    assert "told to" in view.error["message"]
    assert handle.last is not None
    assert (await handle.last.astatus()).execute_at is None  # it waits, for no time
    late = await total.options(after=[handle.last]).aenqueue(7)
    ended = await total.options(after=[handle.jobs[1]], on_all="ended").aenqueue(8)
    assert await ended.aresult("20s") == "8"
    trouble.unlink()
    assert await handle.areplay() == 1
    assert await handle.aresult("20s") == "2 done"
    assert await late.aresult("20s") == "7"

    trouble.touch()
    handle = await chain(break_if.s(str(trouble)), total.s()).aenqueue()
    await settled(handle, "failed")
    assert (await handle.acancel()).cancelled == 1
    with pytest.raises(JobCancelled):
        await handle.aresult("20s")
    with pytest.raises(InvalidRequest, match="without then="):
        await (await group([add.s(1)]).aenqueue()).aresult()


async def test_a_callback_comes_once_whoever_dies(house: House, tmp_path: Path) -> None:
    """Of three thousand in pages; a worker, the connections to the store, the owner are killed."""
    workers = await house.open(servers=2, workers=2, app=APP)
    add, mark = caller(house, flow_jobs.add, flow_jobs.mark)
    called = tmp_path / "called"
    flow = group([add.s(n) for n in range(MANY)], then=mark.s(str(called)))
    handle = await flow.aenqueue()

    while (await handle.astatus()).succeeded < MANY // 4:  # noqa: ASYNC110  # by HTTP
        await asyncio.sleep(0.02)
    await workers[0].kill()
    await cut_off_from_the_store(house)
    await house.servers[0].kill()
    house.restart(house.servers[0])
    view = await settled(handle, "succeeded", 60)
    assert (view.total, view.succeeded, view.failed, view.cancelled) == (MANY, MANY, 0, 0)
    assert handle.last is not None
    assert await handle.last.aresult("30s") is None
    assert called.read_text() == "called\n"
