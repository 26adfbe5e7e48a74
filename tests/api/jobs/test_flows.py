"""Flows over HTTP: made, seen, added to, cancelled and replayed; refused by name."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import UNKNOWN
from tests.api.worker import HandWorker

from fairway.services.jobs import flows


async def make(tenant: httpx2.AsyncClient, *jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    reply = await tenant.post("/v1/flows", json={"kind": "group", "jobs": list(jobs), **more})
    assert reply.status_code == 202, reply.text
    made: dict[str, Any] = reply.json()
    assert reply.headers["location"] == f"/v1/flows/{made['id']}"
    return made


async def seen(tenant: httpx2.AsyncClient, flow: str) -> dict[str, Any]:
    found: dict[str, Any] = (await tenant.get(f"/v1/flows/{flow}")).json()
    return found


async def test_a_flow_is_seen_as_one(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello()
    jobs = [{"type": worker.type, "payload": {"n": n}} for n in range(2)]
    made = await make(tenant, *jobs, callback={"type": "never.run"})
    await worker.run()
    found = await seen(tenant, made["id"])
    counts = {name: found[name] for name in ("state", "total", "succeeded", "complete", "callback")}
    assert counts == {
        "state": "running", "total": 2, "succeeded": 1, "complete": True,
        "callback": made["callback"],
    }  # fmt: skip
    waiting = (await tenant.get(f"/v1/jobs/{made['callback']}")).json()
    assert (waiting["state"], waiting["execute_at"]) == ("scheduled", None)
    why = (await tenant.get(f"/v1/jobs/{made['callback']}/explain")).json()
    assert why["reason"] == "after_others"
    moved = await tenant.patch(f"/v1/jobs/{made['callback']}", json={"delay_seconds": 1})
    problem(moved, 409, "CONFLICT")
    page = (await tenant.get(f"/v1/flows/{made['id']}/jobs", params={"limit": 1})).json()
    assert [one["id"] for one in page["jobs"]] == [made["jobs"][1]]
    rest = await tenant.get(
        f"/v1/flows/{made['id']}/jobs", params={"limit": 1, "cursor": page["next_cursor"]}
    )
    assert [one["id"] for one in rest.json()["jobs"]] == [made["jobs"][0]]
    await worker.run()
    assert (await seen(tenant, made["id"]))["state"] == "succeeded"
    assert (await tenant.get(f"/v1/jobs/{made['callback']}")).json()["state"] == "queued"


async def test_pages_replay_and_cancel(tenant: httpx2.AsyncClient) -> None:
    job = {"type": "never.run"}
    made = await make(tenant, job, more=True, callback=job)
    address = f"/v1/flows/{made['id']}"
    page = {"start": 1, "jobs": [job, job]}
    first = await tenant.post(f"{address}/jobs", json=page)
    again = await tenant.post(f"{address}/jobs", json=page)
    assert (first.status_code, first.json()) == (202, again.json())
    problem(await tenant.post(f"{address}/jobs", json={"start": 3, "jobs": [job]}), 409, "CONFLICT")
    newest = (await tenant.get(f"{address}/jobs", params={"limit": 2})).json()
    rest = await tenant.get(f"{address}/jobs", params={"cursor": newest["next_cursor"]})
    listed = [one["id"] for one in newest["jobs"] + rest.json()["jobs"]]
    assert listed == [*reversed(first.json()["jobs"]), *made["jobs"]]
    assert rest.json()["next_cursor"] is None
    assert (await tenant.post(f"{address}/replay")).json() == {"replayed": 0}
    ended = (await tenant.delete(address)).json()
    assert (ended["state"], ended["total"], ended["cancelled"]) == ("cancelled", 3, 3)
    assert (await tenant.get(f"/v1/jobs/{made['callback']}")).json()["state"] == "cancelled"


async def test_a_key_makes_one_flow(tenant: httpx2.AsyncClient) -> None:
    body = {"kind": "chain", "jobs": [{"type": "never.run"}] * 2}
    key = {"Idempotency-Key": "flow-1"}
    one, two = [await tenant.post("/v1/flows", json=body, headers=key) for _ in range(2)]
    assert one.json() == two.json()
    other = await tenant.post("/v1/flows", json={**body, "kind": "group"}, headers=key)
    problem(other, 422, "IDEMPOTENCY_KEY_REUSED")


JOB = {"type": "never.run"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "group", "jobs": []}, "/jobs"),
        ({"kind": "group", "jobs": [JOB] * 1001}, "/jobs"),
        ({"kind": "chain", "jobs": [JOB] * 101}, "/jobs"),
        ({"kind": "chain", "jobs": [JOB], "callback": JOB}, "/callback"),
        ({"kind": "chain", "jobs": [JOB], "more": True}, "/more"),
        ({"kind": "chain", "jobs": [JOB], "arguments": ["a"]}, "/arguments"),
        ({"kind": "group", "jobs": [JOB], "arguments": ["a"]}, "/arguments"),
        ({"kind": "chain", "jobs": [JOB] * 2, "arguments": [None, "a\0"]}, "/arguments/1"),
        ({"kind": "chain", "jobs": [JOB] * 2, "arguments": [None, "a" * 257]}, "/arguments/1"),
        ({"kind": "group", "jobs": [JOB, {**JOB, "delay_seconds": 1}]}, "/jobs/1/execute_at"),
        ({"kind": "group", "jobs": [{**JOB, "payload_upload": "u"}]}, "/jobs/0/payload_upload"),
        ({"kind": "group", "jobs": [{**JOB, "priority": 99}]}, "/jobs/0/priority"),
        ({"kind": "group", "jobs": [{**JOB, "unique": {"key": "k"}}]}, "/jobs/0/unique"),
        (
            {"kind": "group", "jobs": [JOB], "callback": {**JOB, "unique": {"key": "k"}}},
            "/callback/unique",
        ),
        ({"kind": "group", "jobs": [JOB], "callback": {"type": 3}}, "/callback/type"),
        ({"kind": "group", "jobs": [JOB] * 101, "after": [UNKNOWN]}, "/jobs"),
        ({"kind": "group", "jobs": [JOB], "after": [UNKNOWN] * 101}, "/after"),
    ],
)
async def test_what_is_no_flow_is_refused_by_field(
    tenant: httpx2.AsyncClient, body: dict[str, Any], field: str
) -> None:
    reply = await tenant.post("/v1/flows", json=body)
    assert reply.status_code == 422, reply.text
    assert [one["pointer"] for one in reply.json()["errors"]] == [field]


async def test_there_must_be_something_to_wait_for(tenant: httpx2.AsyncClient) -> None:
    body = {"kind": "group", "jobs": [JOB], "after": [UNKNOWN]}
    problem(await tenant.post("/v1/flows", json=body), 404, "NOT_FOUND")
    problem(await tenant.get(f"/v1/flows/{UNKNOWN}"), 404, "NOT_FOUND")
    problem(await tenant.get("/v1/flows/nonsense"), 404, "NOT_FOUND")


async def test_tags_and_limits_of_members_are_taken(tenant: httpx2.AsyncClient) -> None:
    job = JOB | {
        "tags": ["nightly"],
        "metadata": {"k": "v"},
        "limits": [{"key": "a", "at_most": 1}],
    }
    made = await make(tenant, job, callback=job)
    for one in (*made["jobs"], made["callback"]):
        seen_job = (await tenant.get(f"/v1/jobs/{one}")).json()
        assert (seen_job["tags"], seen_job["metadata"]) == (["nightly"], {"k": "v"})
    found = (await tenant.get("/v1/jobs", params={"tag": "nightly", "type": "never.run"})).json()
    assert {*made["jobs"], made["callback"]} <= {one["id"] for one in found["jobs"]}


async def listed(caller: httpx2.AsyncClient, **query: Any) -> list[str]:
    """All of them, over as many pages as it takes."""
    found: list[str] = []
    while True:
        reply = await caller.get("/v1/flows", params=query)
        assert reply.status_code == 200, reply.text
        found += [one["id"] for one in reply.json()["flows"]]
        query["cursor"] = reply.json()["next_cursor"]
        if query["cursor"] is None:
            return found


async def test_flows_are_listed_newest_first(
    house: House, stranger: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.caller(house.new_tenant()[1]) as caller:
        assert await listed(caller) == []
        first = await make(caller, JOB, JOB, callback=JOB)
        chain = await make(caller, *[JOB] * 4, kind="chain", after=[first["jobs"][0]])
        last = await make(caller, JOB)
        await caller.delete(f"/v1/flows/{last['id']}")
        ids = [last["id"], chain["id"], first["id"]]  # and none of the links
        assert await listed(caller) == ids
        assert await listed(caller, limit=1) == ids
        monkeypatch.setattr(flows, "LOOK_MAX", 1)  # a page that finds nothing is not the last
        assert await listed(caller, state="cancelled") == ids[:1]
        assert await listed(caller, state="running,failed") == ids[1:]
        assert await listed(caller, kind="chain") == ids[1:2]
        assert await listed(caller, state="succeeded", kind="group") == []
        since = (await seen(caller, chain["id"]))["created_at"]
        assert first["id"] not in await listed(caller, since=since)
        (one,) = (await caller.get("/v1/flows", params={"limit": 1})).json()["flows"]
        assert one == await seen(caller, last["id"]) | {"error": None}
        for wrong in ({"state": "dead"}, {"kind": "link"}, {"kind": ""}, {"tag": "a"}):
            problem(await caller.get("/v1/flows", params=wrong), 422, "INVALID_REQUEST")
    assert not {*ids} & {*await listed(stranger)}
