"""Dead letters over HTTP: one filter grammar to look, count, replay and discard; tenants apart."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.worker import HandWorker

ERROR = {"type": "ValueError", "message": "no user 7", "stack": ""}


async def died(
    tenant: httpx2.AsyncClient, worker: HandWorker, count: int = 1, **error: str
) -> list[str]:
    """Jobs of the worker's type that ended for good."""
    await worker.hello(slots=count)
    jobs = [{"type": worker.type, "payload": {"n": n}} for n in range(count)]
    await tenant.post("/v1/jobs/batch", json={"jobs": jobs})
    done = [
        await worker.run(kind="failed", failure="permanent", error=ERROR | error)
        for _ in range(count)
    ]
    return sorted(lease["job"] for lease in done)


async def ids(tenant: httpx2.AsyncClient, query: str = "") -> list[str]:
    reply = await tenant.get(f"/v1/dead-letters{query}")
    assert reply.status_code == 200, reply.text
    return sorted(job["id"] for job in reply.json()["jobs"])


async def over(tenant: httpx2.AsyncClient, location: str) -> dict[str, Any]:
    for _ in range(200):
        action: dict[str, Any] = (await tenant.get(location)).json()
        if action["state"] != "running":
            return action
        await asyncio.sleep(0.05)
    raise AssertionError(action)


async def test_a_dead_job_is_on_the_list_with_all_that_is_known_of_it(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    (job,) = await died(tenant, worker)
    assert await ids(tenant) == [job]
    assert await ids(stranger) == []
    problem(await stranger.get(f"/v1/dead-letters/{job}"), 404, "NOT_FOUND")
    shown = (await tenant.get(f"/v1/dead-letters/{job}")).json()
    assert (shown["state"], shown["payload"]) == ("dead", {"n": 0})
    assert shown["error"]["reason"] == "permanent"
    (run,) = shown["history"]
    assert (run["outcome"], run["worker"], run["error"]["type"]) == (
        "failed", "hand-1", "ValueError",
    )  # fmt: skip
    listed = (await tenant.get("/v1/dead-letters")).json()["jobs"][0]
    assert listed["fingerprint"] == shown["fingerprint"]
    assert "payload" not in listed
    assert "history" not in listed
    assert (await tenant.get(f"/v1/jobs/{job}")).json() == shown


async def test_filters_narrow_and_pages_go_on(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    jobs = await died(tenant, worker, 3)
    others = await died(tenant, worker, 2, message="quota")
    groups = (await tenant.get("/v1/dead-letters/groups")).json()
    assert [group["count"] for group in groups["groups"]] == [3, 2]
    assert groups["types"] == [{"type": worker.type, "count": 5, "count_is_exact": True}]
    cause = groups["groups"][0]["fingerprint"]
    assert await ids(tenant, f"?fingerprint={cause}") == jobs
    assert await ids(tenant, f"?type={worker.type}&pool=short") == sorted(jobs + others)
    assert await ids(tenant, "?type=never.heard.of") == []
    assert await ids(tenant, "?pool=long") == []
    assert await ids(tenant, "?until=2020-01-01T00:00:00Z") == []
    first = (await tenant.get("/v1/dead-letters?limit=3")).json()
    rest = await tenant.get(f"/v1/dead-letters?limit=3&cursor={first['next_cursor']}")
    assert len(rest.json()["jobs"]) == 2
    assert rest.json()["next_cursor"] is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("fingerprint=xyz", "fingerprint"),
        ("state=dead", "state"),
        ("limit=0", "limit"),
        ("since=yesterday", "since"),
        ("type=a&type=b", "type"),
    ],
)
async def test_bad_filters_are_named(tenant: httpx2.AsyncClient, query: str, field: str) -> None:
    problem(await tenant.get(f"/v1/dead-letters?{query}"), 422, "INVALID_REQUEST", field)


async def test_one_is_replayed_with_an_edited_payload(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    (job,) = await died(tenant, worker)
    problem(await stranger.post(f"/v1/dead-letters/{job}/replay", json={}), 404, "NOT_FOUND")
    bad = {"payload": [1]}
    problem(await tenant.post(f"/v1/dead-letters/{job}/replay", json=bad), 422, "INVALID_REQUEST")
    reply = await tenant.post(f"/v1/dead-letters/{job}/replay", json={"payload": {"n": 8}})
    assert (reply.status_code, reply.json()["attempts"]) == (202, 0)
    lease = await worker.run(result=1)
    assert (lease["job"], lease["payload"], lease["attempt"]) == (job, {"n": 8}, 1)
    assert await ids(tenant) == []
    problem(await tenant.get(f"/v1/dead-letters/{job}"), 404, "NOT_FOUND")


async def test_one_is_discarded(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    (job,) = await died(tenant, worker)
    assert (await tenant.delete(f"/v1/dead-letters/{job}")).status_code == 204
    assert await ids(tenant) == []
    assert (await tenant.get(f"/v1/jobs/{job}")).json()["state"] == "dead"
    problem(await tenant.delete(f"/v1/dead-letters/{job}"), 404, "NOT_FOUND")


async def test_many_are_counted_then_replayed(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    jobs = await died(tenant, worker, 4)
    query = f"?type={worker.type}"
    dry = await tenant.post(f"/v1/dead-letters/replay{query}", json={"dry_run": True})
    assert dry.json() == {"matched": 4, "is_exact": True}
    assert await ids(tenant) == jobs
    reply = await tenant.post(f"/v1/dead-letters/replay{query}", json={"per_second": 1000})
    assert reply.status_code == 202
    location = reply.headers["location"]
    action = await over(tenant, location)
    assert (action["kind"], action["state"], action["matched"], action["done"]) == (
        "replay", "done", 4, 4,
    )  # fmt: skip
    problem(await stranger.get(location), 404, "NOT_FOUND")
    problem(await tenant.delete(location), 409, "CONFLICT")
    listed = (await tenant.get("/v1/dead-letters/actions")).json()["actions"]
    assert [one["id"] for one in listed] == [action["id"]]
    ran = [(await worker.run())["job"] for _ in jobs]
    assert sorted(ran) == jobs


async def test_many_are_discarded(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await died(tenant, worker, 3)
    reply = await tenant.post("/v1/dead-letters/discard", json={})
    assert (await over(tenant, reply.headers["location"]))["done"] == 3
    assert await ids(tenant) == []


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("replay", {"per_second": 0}, "/per_second"),
        ("replay", {"speed": 1}, "/speed"),
        ("replay", {"payload": {"a": {"\x00": 1}}}, "/payload/a"),
        ("discard", {"payload": {}}, "/payload"),
    ],
)
async def test_bad_wishes_are_named(
    tenant: httpx2.AsyncClient, path: str, body: dict[str, Any], pointer: str
) -> None:
    reply = await tenant.post(f"/v1/dead-letters/{path}", json=body)
    problem(reply, 422, "INVALID_REQUEST", pointer)


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
    kinds = [event["kind"] for event in (await tenant.get("/v1/events")).json()["events"]]
    assert sorted(kinds) == ["dependency_circuit_open", "quarantine_imposed"]
    only = (await tenant.get("/v1/events?kind=quarantine_imposed&limit=1")).json()
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
