"""202, recorded and 201 mean on disk for what is too large for a row, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.house import House
from tests.api.jobs.test_jobs import submit
from tests.api.jobs.test_uploads import BIG, put
from tests.api.worker import HandWorker
from tests.api.workers.test_checkpoints import leased, save
from tests.disk import Disk


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def objects(house: House, kind: str, owner: str) -> list[Path]:
    root = Path(house.platform.large_data.objects.address)
    return [path for path in root.glob(f"{kind}/*/*/{owner}/*") if path.is_file()]


def assert_safe(house: House, disk: Disk, kind: str, owner: str) -> None:
    (path,) = objects(house, kind, owner)
    assert disk.is_safe(path, Path(house.platform.large_data.objects.address))


async def test_accepted_means_the_payload_is_on_disk(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, disk: Disk
) -> None:
    location = await submit(tenant, worker.type, payload=BIG)
    assert_safe(house, disk, "payloads", location.rpartition("/")[2])


async def test_a_taken_upload_and_its_job_are_on_disk(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, disk: Disk
) -> None:
    made = (await tenant.post("/v1/uploads")).json()
    assert (await put(house, made["url"], b'{"n":1}')).status_code == 204
    body, facts = sorted(objects(house, "uploads", made["id"]))
    for path in (body, facts):
        assert disk.is_safe(path, Path(house.platform.large_data.objects.address))
    body_of: dict[str, Any] = {"type": worker.type, "payload_upload": made["id"]}
    job = (await tenant.post("/v1/jobs", json=body_of)).json()["id"]
    assert_safe(house, disk, "payloads", job)


async def test_recorded_means_the_result_is_on_disk(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, disk: Disk
) -> None:
    await worker.hello()
    await submit(tenant, worker.type)
    lease = await worker.run(result=BIG)
    assert_safe(house, disk, "results", lease["job"])


async def test_a_saved_checkpoint_is_on_disk(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, disk: Disk
) -> None:
    lease = await leased(tenant, worker)
    assert (await save(worker, lease, 1, BIG)).status_code == 201
    assert_safe(house, disk, "checkpoints", lease["job"])
