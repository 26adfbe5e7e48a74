"""Object storage lost something: whoever asks is told so, before the first byte where it can be."""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.jobs.test_uploads import BIG
from tests.api.worker import HandWorker


def object_of(house: House, kind: str, location: str) -> Path:
    root = Path(house.platform.large_data.objects.address)
    (path,) = root.glob(f"{kind}/*/*/{location.rpartition('/')[2]}/*")
    return path


async def test_a_payload_that_is_gone(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type, payload=BIG)
    object_of(house, "payloads", location).unlink()
    problem(await tenant.get(f"{location}/payload"), 410, "OBJECT_GONE")
    await worker.hello()
    lease = await worker.lease()
    path = f"/v1/workers/hand-1/payloads/{lease['job']}"
    fetched = await worker.client.get(path, params={"tenant": lease["tenant"]})
    body = problem(fetched, 410, "OBJECT_GONE")
    assert body["detail"] == "The payload is no longer in object storage."


async def test_a_result_that_is_gone(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    await worker.run(result=BIG)
    object_of(house, "results", location).unlink()
    problem(await tenant.get(f"{location}/result"), 410, "OBJECT_GONE")


async def test_storage_that_is_away_has_lost_nothing(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type, payload=BIG)
    root = house.platform.large_data.objects.address
    os.rename(root, f"{root}-elsewhere")
    os.mkdir(root)  # as a mount point looks when nothing is mounted
    try:
        body = problem(await tenant.get(f"{location}/payload"), 503, "STORAGE_UNAVAILABLE")
        assert root not in json.dumps(body), "where it is, is the operator's matter"
        assert root in str(house.platform.large_data.objects.failure)
    finally:
        os.rmdir(root)
        os.rename(f"{root}-elsewhere", root)
    assert (await tenant.get(f"{location}/payload")).json() == BIG


async def test_a_payload_of_another_size(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type, payload=BIG)
    object_of(house, "payloads", location).write_bytes(b"")  # as a power cut leaves it
    problem(await tenant.get(f"{location}/payload"), 410, "OBJECT_DAMAGED")


async def test_a_payload_with_one_wrong_byte_never_arrives_whole(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type, payload={"text": "x" * 3_000_000})
    path = object_of(house, "payloads", location)
    good = path.read_bytes()
    path.write_bytes(good[:1_500_000] + b"y" + good[1_500_001:])
    with pytest.raises(httpx2.RemoteProtocolError):
        await tenant.get(f"{location}/payload")
    problem(await tenant.get(f"{location}/payload"), 410, "OBJECT_DAMAGED")
    path.write_bytes(good)  # somebody had a copy
    assert (await tenant.get(f"{location}/payload")).content == good
    assert json.loads(good) == {"text": "x" * 3_000_000}
