"""What holds a tenant's jobs back, over HTTP: seen, told and lifted."""

from __future__ import annotations

import asyncio

import httpx2
from tests.api.house import House, first_events, problem
from tests.api.worker import HandWorker


async def test_restraints_are_seen_told_and_lifted(
    house: House, tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    assert (await tenant.get("/v1/restraints")).json() == {"circuits": [], "quarantines": []}
    await worker.hello(slots=50)
    await tenant.post("/v1/jobs/batch", json={"jobs": [{"type": worker.type}] * 40})
    away = {"failure": "dependency", "error": {"dependency": "smtp"}, "delay_ms": 60_000}
    leases = [await worker.lease() for _ in range(40)]
    reports = [worker.report(lease, "failed", **away) for lease in leases[:20]]
    broken = [worker.report(lease, "failed", failure="app_error") for lease in leases[20:]]
    await worker.say(reports=reports + broken, wait_ms=100)
    for _ in range(100):
        found = (await tenant.get("/v1/restraints")).json()
        if found["circuits"] and found["quarantines"]:
            break
        await asyncio.sleep(0.05)
    (circuit,), (quarantine,) = found["circuits"], found["quarantines"]
    assert (circuit["type"], circuit["dependency"]) == (worker.type, "smtp")
    assert 0 < circuit["next_probe_seconds"] <= 60
    assert quarantine["type"] == worker.type
    kinds = [event["kind"] for event in await first_events(tenant, 2)]
    assert sorted(kinds) == ["circuit.opened", "quarantine.imposed"]
    only = (await tenant.get("/v1/events?kind=quarantine.imposed&limit=1")).json()
    assert [event["subject"] for event in only["events"]] == [worker.type]
    assert (await stranger.get("/v1/events")).json()["events"] == []
    assert (await stranger.get("/v1/restraints")).json()["circuits"] == []

    (waiting,) = (await tenant.post("/v1/jobs/batch", json={"jobs": [{"type": worker.type}]})
                  ).json()["items"]  # fmt: skip
    why = (await tenant.get(f"/v1/jobs/{waiting['id']}/explain")).json()
    assert why["reason"] == "circuit_open"

    problem(await stranger.delete(f"/v1/quarantines/{worker.type}"), 404, "NOT_FOUND")
    assert (await tenant.delete(f"/v1/quarantines/{worker.type}")).status_code == 204
    assert (await tenant.get("/v1/restraints")).json()["quarantines"] == []
