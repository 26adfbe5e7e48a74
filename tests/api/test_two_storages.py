"""Two servers of one database, each with a storage of its own: told, and no job is lost to it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.api.house import House, open_house, problem
from tests.api.jobs.test_jobs import submit
from tests.api.jobs.test_uploads import BIG
from tests.api.worker import HandWorker


@pytest.fixture(scope="module")
def astray(house: House) -> Iterator[House]:
    """A second server of the same database, with the folder that it would have by default."""
    with open_house(house.dsn) as astray:
        yield astray


def folder_of(house: House) -> Path:
    return Path(house.platform.large_data.objects.address)


def as_tenant(astray: House, tenant: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return astray.caller(tenant.headers["authorization"].removeprefix("Bearer "))


async def test_it_takes_no_large_data_and_says_why(
    astray: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    async with as_tenant(astray, tenant) as caller:
        large = await caller.post("/v1/jobs", json={"type": worker.type, "payload": BIG})
        body = problem(large, 503, "STORAGE_UNAVAILABLE")
        assert "FAIRWAY_STORAGE_URL" in body["detail"]
        assert str(folder_of(astray)) not in body["detail"]
        problem(await caller.post("/v1/uploads"), 503, "STORAGE_UNAVAILABLE")
        await submit(caller, worker.type, payload={"n": 1})
        metrics = (await caller.get("/metrics")).text
    assert not folder_of(astray).exists()
    counted = [line for line in metrics.splitlines() if line.startswith("fairway_storage_fail")]
    assert float(counted[0].split()[1]) >= 2


async def test_to_it_what_others_hold_is_away_and_not_gone(
    astray: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type, payload=BIG)
    await worker.hello()
    lease = await worker.lease()
    key = worker.client.headers["authorization"].removeprefix("Bearer ")
    path = f"/v1/workers/hand-1/payloads/{lease['job']}"
    async with as_tenant(astray, tenant) as caller, astray.caller(key) as worker_there:
        problem(await caller.get(f"{location}/payload"), 503, "STORAGE_UNAVAILABLE")
        fetched = await worker_there.get(path, params={"tenant": lease["tenant"]})
        problem(fetched, 503, "STORAGE_UNAVAILABLE")
    assert (await tenant.get(f"{location}/payload")).json() == BIG


async def test_a_storage_of_another_database_is_refused(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, tmp_path: Path
) -> None:
    (tmp_path / "cluster").write_text("somebody.else")
    with open_house(house.dsn, storage_url=f"file://{tmp_path}") as other:
        async with as_tenant(other, tenant) as caller:
            large = await caller.post("/v1/jobs", json={"type": worker.type, "payload": BIG})
    body = problem(large, 503, "STORAGE_UNAVAILABLE")
    assert "another database" in body["detail"]
    assert os.listdir(tmp_path) == ["cluster"]


async def test_a_copy_of_the_storage_is_as_good_and_needs_no_restart(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, tmp_path: Path
) -> None:
    location = await submit(tenant, worker.type, payload=BIG)
    moved = tmp_path / "moved"
    with open_house(house.dsn, storage_url=f"file://{moved}") as other:
        async with as_tenant(other, tenant) as caller:
            problem(await caller.get(f"{location}/payload"), 503, "STORAGE_UNAVAILABLE")
            shutil.copytree(folder_of(house), moved, ignore=shutil.ignore_patterns(".*"))
            await _until_taken(caller, worker.type)
            assert (await caller.get(f"{location}/payload")).json() == BIG


async def _until_taken(caller: httpx2.AsyncClient, job_type: str) -> None:
    for _ in range(20):  # each is told to come back in a second
        reply = await caller.post("/v1/jobs", json={"type": job_type, "payload": BIG})
        if reply.status_code == 202:
            return
        await asyncio.sleep(float(reply.headers["retry-after"]))
    raise AssertionError(reply.text)


async def test_nothing_is_written_where_the_disk_is_not_mounted(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await submit(tenant, worker.type, payload=BIG)
    root = folder_of(house)
    os.rename(root, f"{root}-elsewhere")
    os.mkdir(root)  # as a mount point looks when nothing is mounted
    try:
        large = await tenant.post("/v1/jobs", json={"type": worker.type, "payload": BIG})
        problem(large, 503, "STORAGE_UNAVAILABLE")
        assert os.listdir(root) == []
    finally:
        shutil.rmtree(root)
        os.rename(f"{root}-elsewhere", root)
    await submit(tenant, worker.type, payload=BIG)
