"""Many jobs at once: cancelled by filter, counted before; and what jobs used, to the run."""

from __future__ import annotations

from typing import Any

import httpx2
from tests.api.house import problem
from tests.api.jobs.test_jobs import submit
from tests.api.worker import HandWorker


async def batch(tenant: httpx2.AsyncClient, count: int, **job: Any) -> None:
    reply = await tenant.post("/v1/jobs/batch", json={"jobs": [job] * count})
    assert reply.json()["accepted"] == count


async def cancel(tenant: httpx2.AsyncClient, body: Any = None, **query: str) -> dict[str, Any]:
    reply = await tenant.post("/v1/jobs/cancel", params=query, json=body or {})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


async def states(tenant: httpx2.AsyncClient, kind: str) -> set[str]:
    jobs = (await tenant.get("/v1/jobs", params={"type": kind, "limit": "200"})).json()["jobs"]
    return {job["state"] for job in jobs}


async def test_a_dry_run_counts_and_touches_nothing(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await batch(tenant, 30, type=worker.type)
    await batch(tenant, 5, type="other.kind")
    counted = await cancel(tenant, {"dry_run": True}, type=worker.type)
    assert (counted["matched"], counted["cancelled"]) == (30, 0)
    assert await states(tenant, worker.type) == {"queued"}


async def test_what_matches_is_cancelled_and_nothing_else(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await batch(tenant, 20, type=worker.type)
    await batch(tenant, 20, type=worker.type, pool="medium")
    await batch(stranger, 5, type=worker.type)
    done = await cancel(tenant, type=worker.type, pool="medium")
    assert (done["matched"], done["cancelled"], done["next_cursor"]) == (20, 20, None)
    jobs = (await tenant.get("/v1/jobs", params={"type": worker.type})).json()["jobs"]
    assert {(job["pool"], job["state"]) for job in jobs} == {
        ("short", "queued"),
        ("medium", "cancelled"),
    }
    assert await states(stranger, worker.type) == {"queued"}
    await worker.hello(pool="medium")
    assert "leases" not in await worker.say(wait_ms=100)


async def test_a_page_at_a_time(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await batch(tenant, 1500, type=worker.type)
    first = await cancel(tenant, type=worker.type)
    assert (first["cancelled"], first["next_cursor"] is None) == (1000, False)
    second = await cancel(tenant, type=worker.type, cursor=first["next_cursor"])
    assert (second["cancelled"], second["next_cursor"]) == (500, None)
    assert (await cancel(tenant, type=worker.type))["matched"] == 0


async def test_what_runs_is_asked_to_stop(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello()
    await submit(tenant, worker.type)
    await submit(tenant, worker.type)
    lease = await worker.lease()
    done = await cancel(tenant, type=worker.type)
    assert (done["matched"], done["cancelled"], done["asked_to_stop"]) == (2, 1, 1)
    assert (await worker.say())["cancel"] == [lease["job"]]


async def test_only_what_has_not_ended(tenant: httpx2.AsyncClient) -> None:
    reply = await tenant.post("/v1/jobs/cancel", params={"state": "dead"}, json={})
    problem(reply, 422, "INVALID_REQUEST", "state")
    reply = await tenant.post("/v1/jobs/cancel", params={"colour": "red"}, json={})
    problem(reply, 422, "INVALID_REQUEST", "colour")
    assert (await cancel(tenant, type="never.seen"))["matched"] == 0


async def test_all_jobs_are_cancelled_only_when_it_is_said(tenant: httpx2.AsyncClient) -> None:
    """Also not by the cursor of a page: that is a place, and narrows nothing."""
    await batch(tenant, 2, type="a.kind")
    cursor = (await tenant.get("/v1/jobs?limit=1")).json()["next_cursor"]
    for query in ({}, {"cursor": cursor}):
        reply = await tenant.post("/v1/jobs/cancel", params=query, json={})
        problem(reply, 422, "INVALID_REQUEST", "/all")
    assert await states(tenant, "a.kind") == {"queued"}
    assert (await cancel(tenant, {"dry_run": True}))["matched"] == 2
    assert (await cancel(tenant, {"all": True}))["cancelled"] == 2


async def test_runs_are_accounted_for_one_by_one(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    """A failure is billed, a hand-back and a crash are not, the success is."""
    await worker.hello(pool="medium")
    location = await submit(tenant, worker.type, pool="medium")
    ends: list[dict[str, Any]] = [
        {"kind": "returned", "ran_us": 100_000},
        {"kind": "failed", "failure": "worker_crash", "ran_us": 200_000},
        {"kind": "snoozed", "delay_ms": 1, "ran_us": 400_000},
        {"kind": "failed", "failure": "app_error", "delay_ms": 1, "ran_us": 800_000},
        {"kind": "succeeded", "ran_us": 1_600_000},
    ]
    for end in ends:
        lease = await worker.lease()
        await worker.tell(worker.report(lease) | end)
    job = (await tenant.get(location)).json()
    assert job["state"] == "succeeded"
    assert (job["billable_seconds"], job["unbilled_seconds"]) == (2.8, 0.3)
    assert [run["billable"] for run in job["history"]] == [False, False, True, True]
    (used,) = (await tenant.get("/v1/usage")).json()["pools"]
    assert used == {
        "pool": "medium",
        "jobs": 1,
        "billable_slot_seconds": 2.8,
        "unbilled_slot_seconds": 0.3,
    }
    later = (await tenant.get("/v1/usage", params={"since": "2099-01-01T00:00:00Z"})).json()
    assert later["pools"] == []
