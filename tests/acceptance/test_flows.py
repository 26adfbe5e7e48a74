"""Chains and groups through the SDK, with real programs: once, whoever dies in the middle."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.acceptance import flow_jobs
from tests.acceptance.house import House
from tests.acceptance.test_two_owners import Split

from fairway import App, FlowHandle, InvalidRequest, Job, JobCancelled, chain, group

APP = "tests.acceptance.flow_jobs:app"
MANY = 3_000  # more than two pages
CHILDREN = int(os.environ.get("FAIRWAY_SOAK_CHILDREN", "10000"))  # fewer on a busy machine


def caller(house: House, *jobs: Job[..., Any], key: str = "") -> list[Job[..., Any]]:
    """The same jobs, of a program that hands them in."""
    app = App("caller", url=",".join(house.urls), api_key=key or house.api_key)
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


async def crash_the_store(house: House) -> None:
    """One of PostgreSQL's processes is killed: it ends all others, and recovers from its log."""
    connection = await asyncpg.connect(house.dsn)
    try:
        pid = await connection.fetchval("SELECT pg_backend_pid()")
        os.kill(pid, signal.SIGKILL)
    finally:
        connection.terminate()


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


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_ten_thousand_children_each_over_two_owners(
    house: House, tmp_path: Path, figures: dict[str, str]
) -> None:
    """Workers, PostgreSQL and either owner die: each shard changes its owner in the middle."""
    split = Split(house)
    await split.open()
    workers = [house.start_worker(house.urls, app=APP) for _ in range(3)]
    called = [tmp_path / "first", tmp_path / "second"]
    handles = []
    for key, path in zip(split.keys, called, strict=True):
        add, mark = caller(house, flow_jobs.add, flow_jobs.mark, key=key)
        flow = group([add.s(n) for n in range(CHILDREN)], then=mark.s(str(path)))
        handles.append(await flow.aenqueue())

    async def until_each(count: int) -> None:
        async with asyncio.timeout(600):
            for handle in handles:
                while (await handle.astatus()).succeeded < count:  # noqa: ASYNC110  # by HTTP
                    await asyncio.sleep(0.05)

    for part, server in enumerate(list(house.servers)):
        await until_each(CHILDREN * (part + 1) // 5)
        await workers[part].kill()
        await (crash_the_store if part else cut_off_from_the_store)(house)
        await server.kill()  # what it owned is the other's now
        await until_each(CHILDREN * (part + 1) // 5 + CHILDREN // 20)
        await house.restart(server).ready()
    for handle, path in zip(handles, called, strict=True):
        view = await settled(handle, "succeeded", 600)
        told = (view.total, view.succeeded, view.failed, view.cancelled)
        assert told == (CHILDREN, CHILDREN, 0, 0)
        assert handle.last is not None
        assert await handle.last.aresult("60s") is None
        assert path.read_text() == "called\n"
    figures["flows over two owners"] = f"2 x {CHILDREN} children, each callback once"
