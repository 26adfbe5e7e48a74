"""Large payloads leave their row on the way in; small ones never do."""

from __future__ import annotations

import json

import httpx2
from tests.api.house import House
from tests.api.jobs.test_jobs import submit
from tests.api.jobs.test_uploads import BIG, stored
from tests.api.worker import HandWorker


async def test_a_large_payload_leaves_its_row_and_reaches_the_worker(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type, payload=BIG)
    assert len(await stored(house, location, "payload")) < 400
    view = (await tenant.get(location)).json()
    assert "payload" not in view or view["payload"] is None
    assert view["payload_bytes"] == len(json.dumps(BIG, separators=(",", ":")))
    assert (await tenant.get(f"{location}/payload")).json() == BIG
    await worker.hello()
    lease = await worker.lease()
    assert (lease["payload"], lease["payload_bytes"]) == ({}, view["payload_bytes"])
    path = f"/v1/workers/hand-1/payloads/{lease['job']}"
    fetched = await worker.client.get(path, params={"tenant": lease["tenant"]})
    assert fetched.json() == BIG


async def test_a_small_payload_stays(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type, payload={"n": 1})
    assert await stored(house, location, "payload") == b'{"n":1}'
    assert (await tenant.get(f"{location}/payload")).json() == {"n": 1}


async def test_a_batch_may_mix_them(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    jobs = [{"type": worker.type, "payload": payload} for payload in ({"n": 1}, BIG, {"n": 3})]
    items = (await tenant.post("/v1/jobs/batch", json={"jobs": jobs})).json()["items"]
    for item, job in zip(items, jobs, strict=True):
        found = await tenant.get(f"/v1/jobs/{item['id']}/payload")
        assert found.json() == job["payload"]
