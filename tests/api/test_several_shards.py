"""A tenant in several shards over HTTP: its jobs are spread, and every answer is of all of them."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from tests.api.house import House, open_house, problem
from tests.api.worker import HandWorker

from fairway.api.routes import ENDPOINTS
from fairway.api.tenant_parts.meant import BY_ALL, BY_FIRST, BY_JOB, BY_THEMSELVES
from fairway.core.ids import shard_of, unix_ms_of

SHARDS = 4
LATER = {"delay_seconds": 3600}


def test_every_endpoint_of_tenants_says_which_part_answers() -> None:
    lists = (BY_JOB, BY_FIRST, BY_ALL, BY_THEMSELVES)
    told = [call for calls in lists for call in calls]
    assert sorted(told) == sorted(one.call for one in ENDPOINTS if "tenant" in one.keys)


async def test_its_jobs_are_spread_and_all_of_them_are_seen(database_url: str) -> None:
    with open_house(database_url, shard_count=2 * SHARDS) as house:
        name, key = house.new_tenant(shards=SHARDS, tier="pro", cap=3, rate_per_second=1001)
        worker_key = house.new_key({"scope": "worker", "tenants": [name]})
        async with (
            house.caller(key) as tenant,
            house.caller(house.operator_key) as operator,
            house.caller(worker_key) as client,
        ):
            worker = HandWorker(client)
            await worker.hello(slots=9)
            await _is_one_tenant(operator, name)
            jobs = await _are_accepted_once(tenant, worker.type)
            await _are_listed(tenant, jobs)
            await _are_kept_apart_from_what_one_shard_said(tenant)
            await _are_acted_on(tenant, jobs)
            await _flows_wait_in_one_shard(tenant, jobs)
            await _run(tenant, worker)
            await _is_counted_as_one(tenant, operator, name)
            await _is_refused_by_name(house, tenant, operator, name)
            await _are_the_same_when_one_of_them_is_refused(tenant, operator)
            await _start_no_limited_jobs_but_in_the_first(tenant, worker, name)
            await _is_suspended_and_paused_as_one(tenant, operator, name)
            await worker.leave()


async def _is_one_tenant(operator: httpx2.AsyncClient, name: str) -> None:
    view = (await operator.get(f"/v1/tenants/{name}")).json()
    assert len({*view["shards"]}) == SHARDS
    assert (view["shard"], view["cap"]) == (view["shards"][0], 3)
    listed = (await operator.get(f"/v1/tenants?q={name}")).json()["tenants"]
    assert [one["name"] for one in listed] == [name]
    limits = (await operator.get(f"/v1/tenants/{name}/limits")).json()
    assert (limits["rate_per_second"], limits["weight"]) == (1001, 100)
    changed = await operator.patch(f"/v1/tenants/{name}", json={"weight": 50})
    assert changed.json()["weight"] == 50
    assert (await operator.get(f"/v1/tenants/{name}/limits")).json()["weight"] == 50


async def _are_accepted_once(tenant: httpx2.AsyncClient, type_: str) -> list[str]:
    """Alone, in batches, with keys of their own or one for all: sent again, they are the same."""
    later = {"type": type_, **LATER}
    jobs = [(await tenant.post("/v1/jobs", json=later)).json()["id"] for _ in range(8)]
    assert len({shard_of(job) for job in jobs}) == SHARDS
    keys = [f"order-{n}" for n in range(40)]
    batch = {"jobs": [later] * 40, "idempotency_keys": keys}
    first, again = [(await tenant.post("/v1/jobs/batch", json=batch)).json() for _ in range(2)]
    assert first["accepted"] == 40
    keyed = [one["id"] for one in first["items"]]
    assert keyed == [one["id"] for one in again["items"]]
    assert len({shard_of(job) for job in keyed}) == SHARDS
    alone = await tenant.post("/v1/jobs", json=later, headers={"idempotency-key": "order-7"})
    assert (alone.json()["id"], alone.headers["idempotent-replayed"]) == (keyed[7], "true")
    other = await tenant.post("/v1/jobs", json=LATER | {"type": "x"},
                              headers={"idempotency-key": "order-7"})  # fmt: skip
    problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
    whole = {"idempotency-key": "whole"}
    sent = [await tenant.post("/v1/jobs/batch", json={"jobs": [later] * 5}, headers=whole)
            for _ in range(2)]  # fmt: skip
    assert sent[0].json() == sent[1].json()
    together = [one["id"] for one in sent[0].json()["items"]]
    assert len({shard_of(job) for job in together}) == 1
    unique = later | {"unique": {"key": "only"}}
    only = (await tenant.post("/v1/jobs", json=unique)).json()["id"]
    problem(await tenant.post("/v1/jobs", json=unique), 409, "NOT_UNIQUE")
    return [*jobs, *keyed, *together, only]


async def _are_listed(tenant: httpx2.AsyncClient, jobs: list[str]) -> None:
    seen: list[str] = []
    address = "/v1/jobs?limit=7&state=scheduled"
    while address:
        page = await tenant.get(address)
        seen += [one["id"] for one in page.json()["jobs"]]
        address = page.links["next"]["url"] if "next" in page.links else ""
    assert seen == sorted(jobs, reverse=True), "each once, newest first"
    ended = await tenant.post("/v1/jobs/wait", json={"ids": jobs, "all": True})
    assert {one["id"] for one in ended.json()["jobs"]} == {*jobs}
    strange = [jobs[0][:15] + "fff" + jobs[0][18:], jobs[0]]
    reply = await tenant.post("/v1/jobs/wait", json={"ids": strange})
    assert reply.json()["missing"] == strange[:1]


async def _are_kept_apart_from_what_one_shard_said(tenant: httpx2.AsyncClient) -> None:
    """The first part has the number of the whole: a page that takes replies of a moment ago was
    shown its jobs for all."""
    recent = {"cache-control": "max-age=10"}
    path = "/v1/jobs?limit=200"
    counts = [
        len((await tenant.get(path, headers=recent | named)).json()["jobs"])
        for named in ({"fairway-part": "0"}, {}, {"fairway-part": "0"})
    ]
    assert counts[0] == counts[2] < counts[1]


async def _are_acted_on(tenant: httpx2.AsyncClient, jobs: list[str]) -> None:
    for job in jobs[:4]:
        told = (await tenant.get(f"/v1/jobs/{job}/explain")).json()
        assert told["state"] == "scheduled"
        assert (await tenant.delete(f"/v1/jobs/{job}")).json()["state"] == "cancelled"
        assert (await tenant.get(f"/v1/jobs/{job}")).json()["state"] == "cancelled"
    some = [one["id"] for one in (await tenant.get("/v1/jobs?state=cancelled")).json()["jobs"]]
    assert sorted(some) == sorted(jobs[:4])


async def _flows_wait_in_one_shard(tenant: httpx2.AsyncClient, jobs: list[str]) -> None:
    """What is in another shard is there: it is not said to be missing."""
    home = shard_of(jobs[-1])  # unique, so in the first part
    elsewhere = next(job for job in jobs if shard_of(job) != home)
    for job, status in ((jobs[-1], 202), (elsewhere, 409)):
        flow = {"kind": "group", "jobs": [{"type": "t"}], "after": [job]}
        reply = await tenant.post("/v1/flows", json=flow)
        assert reply.status_code == status, reply.text
    problem(reply, 409, "SEVERAL_SHARDS")


async def _run(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    """The worker's key is bound to the tenant, and so to all its parts."""
    new = [{"type": worker.type}] * 2
    for _ in range(SHARDS):
        assert (await tenant.post("/v1/jobs/batch", json={"jobs": new})).json()["accepted"] == 2
    ran = []
    for _ in range(SHARDS):
        ran.append((await worker.run(result=4711))["job"])
        why: dict[str, Any] = {"failure": "permanent", "error": {"type": "E", "message": "no"}}
        ran.append((await worker.run(kind="failed", **why))["job"])
    assert len({shard_of(job) for job in ran}) == SHARDS
    done = await tenant.post("/v1/jobs/wait", json={"ids": ran, "wait_seconds": 5})
    assert done.json()["jobs"]
    (group,) = (await tenant.get("/v1/dead-letters/groups")).json()["groups"]
    letters = (await tenant.get("/v1/dead-letters")).json()["jobs"]
    assert group["count"] == len(letters) == SHARDS
    for letter in letters:
        assert (await tenant.delete(f"/v1/dead-letters/{letter['id']}")).status_code == 204
    asked = tenant.post("/v1/jobs", json={"type": worker.type}, headers={"prefer": "wait=10"})
    reply, _ = await asyncio.gather(asked, worker.run(result=5))
    assert (reply.status_code, reply.json()["result"]) == (200, 5)


async def _is_counted_as_one(
    tenant: httpx2.AsyncClient, operator: httpx2.AsyncClient, name: str
) -> None:
    ran = 2 * SHARDS + 1
    assert (await tenant.get("/v1/usage")).json()["total"]["attempts"] == ran
    for who, query in ((tenant, ""), (operator, f"?tenant={name}")):
        used = (await who.get(f"/v1/usage{query}")).json()
        assert (used["tenant"], used["total"]["attempts"]) == (name, ran)
        assert len((await who.get(f"/v1/usage/attempts{query}")).json()["attempts"]) == ran
        month = used["since"][:7]
        statement = (await who.get(f"/v1/statements/{month}{query}")).json()
        assert sum(line["attempts"] for line in statement["lines"]) == ran
        assert statement["tenant"] == name
    overview = (await tenant.get("/v1/overview")).json()
    assert overview["tenant"] == name
    history = await tenant.get("/v1/history?of=tenant")
    assert history.json()["name"] == name
    named = await operator.get(f"/v1/history?of=tenant&name={name}")
    assert named.json()["name"] == name
    shares = (await operator.get(f"/v1/shares?tenant={name}")).json()["items"]
    assert {one["tenant"] for one in shares} <= {name}
    limits = (await tenant.get("/v1/limits")).json()
    assert limits["refused"] == {"IDEMPOTENCY_KEY_REUSED": 1, "NOT_UNIQUE": 1}
    assert (await tenant.get("/v1/restraints")).json() == {"circuits": [], "quarantines": []}


async def _is_refused_by_name(
    house: House, tenant: httpx2.AsyncClient, operator: httpx2.AsyncClient, name: str
) -> None:
    """What is not of all parts is said."""
    problem(await tenant.get("/v1/webhooks", headers={"fairway-part": "4"}), 409, "SEVERAL_SHARDS")
    for place in range(SHARDS):
        reply = await tenant.get("/v1/events", headers={"fairway-part": str(place)})
        assert reply.status_code == 200, reply.text
    own = {"scope": "worker", "tenant": name}
    problem(await operator.post("/v1/keys", json=own), 409, "SEVERAL_SHARDS")
    cap = await operator.put(f"/v1/tenants/{name}/spend-cap", json={"cap_micros": 5})
    problem(cap, 409, "SEVERAL_SHARDS")
    part, path = f"{name}#1", f"/v1/tenants/{name}%231"
    problem(await operator.post("/v1/keys", json={"tenant": part}), 404, "NOT_FOUND", "/tenant")
    problem(await operator.patch(path, json={"weight": 7}), 404, "NOT_FOUND")
    problem(await operator.delete(f"{path}?suspend=true"), 404, "NOT_FOUND")
    acting = await operator.get("/v1/jobs", headers={"fairway-tenant": part})
    problem(acting, 404, "NOT_FOUND", "Fairway-Tenant")
    move = {"tenant": name, "to": 1}
    problem(await operator.post("/v1/shards/move", json=move), 409, "CONFLICT")
    many = {"name": "too-many", "shards": 2 * SHARDS + 1}
    problem(await operator.post("/v1/tenants", json=many), 422, "INVALID_REQUEST", "/shards")
    taken = await operator.post("/v1/tenants", json={"name": name, "shards": 2})
    problem(taken, 409, "CONFLICT", "/name")
    later = await operator.patch(f"/v1/tenants/{name}", json={"shards": 2})
    assert later.status_code == 422


async def _start_no_limited_jobs_but_in_the_first(
    tenant: httpx2.AsyncClient, worker: HandWorker, name: str
) -> None:
    """Whatever the worker says of whose job it was."""
    limited = {"type": worker.type, "limits": [{"key": "k", "at_most": 1}], **LATER}
    for _ in range(SHARDS):
        job = (await tenant.post("/v1/jobs", json={"type": worker.type})).json()["id"]
        lease = await worker.lease()
        wanted = {"at_ms": unix_ms_of(job) + 5, "jobs": [limited]}
        await worker.tell(worker.report(lease, follow_ups=wanted) | {"tenant": name})
        ended = (await tenant.get(f"/v1/jobs/{job}")).json()["state"]
        assert ended == ("dead" if "#" in lease["tenant"] else "succeeded")


async def _are_the_same_when_one_of_them_is_refused(
    tenant: httpx2.AsyncClient, operator: httpx2.AsyncClient
) -> None:
    """A batch with one key, and a job that is judged in the first shard: while it is good."""
    limited = {"type": "limited", "limits": [{"key": "k", "at_most": 1}], **LATER}
    batch = {"jobs": [limited, {"type": "plain", **LATER}]}
    for key in ("again-1", "again-2", "again-3"):
        sent, made = {"idempotency-key": key}, []
        for schema in (None, {"required": ["to"]}, None):
            await operator.put("/v1/job-types/limited", json={"schema": schema})
            made.append((await tenant.post("/v1/jobs/batch", json=batch, headers=sent)).json())
        assert [one["items"][0]["status"] for one in made] == [202, 422, 202]
        assert len({one["items"][1]["id"] for one in made}) == 1, "it was made once"
        assert made[0] == made[2]


async def _is_suspended_and_paused_as_one(
    tenant: httpx2.AsyncClient, operator: httpx2.AsyncClient, name: str
) -> None:
    assert (await tenant.post("/v1/pauses", json={"type": "t"})).status_code == 201
    assert (await tenant.get("/v1/pauses")).json()["pauses"] == [{"tenant": name, "type": "t"}]
    assert {"tenant": name, "type": "t"} in (await operator.get("/v1/pauses")).json()["pauses"]
    assert (await tenant.get("/v1/limits")).json()["held"] != []
    assert (await operator.delete(f"/v1/pauses?tenant={name}&type=t")).status_code == 200
    assert (await tenant.get("/v1/pauses")).json()["pauses"] == []
    assert (await tenant.get("/v1/limits")).json()["held"] == []
    await operator.post(f"/v1/tenants/{name}/suspend", json={})
    problem(await tenant.get("/v1/jobs"), 403, "TENANT_SUSPENDED")
    parts = await operator.get(f"/v1/tenants/{name}%231")
    assert parts.json()["state"] == "suspended"
    await operator.post(f"/v1/tenants/{name}/resume")
    assert (await tenant.get("/v1/jobs")).status_code == 200
    gone = await operator.delete(f"/v1/tenants/{name}?suspend=true")
    assert gone.json()["state"] == "deleted"
    assert (await operator.get(f"/v1/tenants/{name}%233")).json()["state"] == "deleted"
