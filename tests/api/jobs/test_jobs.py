"""One job after submission: versions, long-polls, cancellation; never another tenant's."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from tests.api.house import problem
from tests.api.worker import HandWorker

UNKNOWN = "01980a5e-7c1b-7000-8000-04a2b1c3d4e5"


async def submit(tenant: httpx2.AsyncClient, type_: str = "never.run", **more: object) -> str:
    reply = await tenant.post("/v1/jobs", json={"type": type_, **more})
    assert reply.status_code == 202, reply.text
    return str(reply.headers["location"])


# -- read --------------------------------------------------------------------------------------


async def test_a_job_tells_its_whole_life(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type, payload={"a": [1]})
    await worker.run(result=[1, 2])
    job = (await tenant.get(location)).json()
    assert (job["state"], job["attempts"], job["deliveries"]) == ("succeeded", 1, 1)
    assert job["payload"] == {"a": [1]}
    assert job["result"] == [1, 2]
    assert job["ran_seconds"] == 0.0015
    assert job["created_at"] <= job["finished_at"]
    assert job["error"] is None


async def test_an_unchanged_job_costs_a_304(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    location = await submit(tenant, worker.type)
    first = await tenant.get(location)
    etag = first.headers["etag"]
    assert etag.startswith('W/"')
    same = await tenant.get(location, headers={"if-none-match": etag})
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == etag
    assert "content-length" not in same.headers
    for known in (f'"x", {etag}', "*", etag.removeprefix("W/")):
        assert (await tenant.get(location, headers={"if-none-match": known})).status_code == 304
    await worker.hello()
    await worker.run()
    changed = await tenant.get(location, headers={"if-none-match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag


async def test_head_is_get_without_the_body(tenant: httpx2.AsyncClient) -> None:
    location = await submit(tenant)
    whole, head = await tenant.get(location), await tenant.head(location)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("etag", "content-length", "content-type"):
        assert head.headers[name] == whole.headers[name]
    known = {"if-none-match": whole.headers["etag"]}
    assert (await tenant.head(location, headers=known)).status_code == 304
    assert (await tenant.head(f"/v1/jobs/{UNKNOWN}")).status_code == 404


async def test_a_long_poll_ends_with_the_next_change(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type)
    etag = (await tenant.get(location)).headers["etag"]
    asking = asyncio.create_task(
        tenant.get(location, headers={"if-none-match": etag, "prefer": "wait=20"})
    )
    await worker.hello()
    lease = await worker.lease()
    running = await asking  # the lease is written once the run is no longer short
    told = running.json()
    assert told["state"] == "running"
    assert (told["attempts"], told["deliveries"]) == (1, 1), "the one under way is counted"
    assert running.headers["preference-applied"] == "wait=20"
    ending = asyncio.create_task(tenant.get(location, headers={"prefer": "wait=20"}))
    await worker.say(running=[worker.holding(lease, progress={"percent": 50})])
    known = {"if-none-match": running.headers["etag"]}
    assert (await tenant.get(location, headers=known)).json()["progress"] == {"percent": 50}
    await worker.tell(worker.report(lease, result=7))
    assert (await ending).json()["result"] == 7


async def test_a_long_poll_without_news_ends_in_time(tenant: httpx2.AsyncClient) -> None:
    location = await submit(tenant)
    etag = (await tenant.get(location)).headers["etag"]
    headers = {"if-none-match": etag, "prefer": "wait=1"}
    assert (await tenant.get(location, headers=headers)).status_code == 304
    waited = await tenant.get(location, headers={"prefer": "wait=1"})
    assert waited.json()["state"] == "queued"


# -- whose -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("tail", ["", "/events"])
async def test_anothers_job_looks_like_none(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, method: str, tail: str
) -> None:
    if method == "DELETE" and tail:
        return
    location = await submit(tenant)
    theirs = await stranger.request(method, location + tail)
    none = await stranger.request(method, f"/v1/jobs/{UNKNOWN}{tail}")
    bodies = [problem(theirs, 404, "NOT_FOUND"), problem(none, 404, "NOT_FOUND")]
    for body, job in zip(bodies, (location.rsplit("/", 1)[1], UNKNOWN), strict=True):
        del body["request_id"]
        body["detail"] = body["detail"].replace(job, "…")
    assert bodies[0] == bodies[1]
    assert set(theirs.headers) == set(none.headers)
    assert (await tenant.get(location)).json()["state"] == "queued"


@pytest.mark.parametrize(
    "text",
    ["1", "x" * 5000, "%00", "%2e%2e%2f", UNKNOWN[:-1], f"{UNKNOWN}%0a", "%f0%9f%92%a9"],
)
async def test_what_is_no_id_is_not_found(tenant: httpx2.AsyncClient, text: str) -> None:
    body = problem(await tenant.get(f"/v1/jobs/{text}"), 404, "NOT_FOUND")
    assert len(body["detail"]) < 300


async def test_ids_are_taken_in_capitals_too(tenant: httpx2.AsyncClient) -> None:
    location = await submit(tenant)
    job = location.rsplit("/", 1)[1]
    assert (await tenant.get(f"/v1/jobs/{job.upper()}")).json()["id"] == job


# -- cancel ------------------------------------------------------------------------------------


async def test_a_waiting_job_is_cancelled_at_once(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type)
    reply = await tenant.delete(location)
    assert reply.status_code == 200
    assert reply.json()["state"] == "cancelled"
    assert reply.json()["finished_at"]
    assert not (await worker.hello(wait_ms=300)).get("leases")
    problem(await tenant.delete(location), 409, "CONFLICT")


async def test_a_running_job_is_asked_to_stop(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type)
    await worker.hello()
    lease = await worker.lease()
    reply = await tenant.delete(location)
    assert (reply.status_code, reply.json()["state"]) == (202, "running")
    assert (await tenant.delete(location)).status_code == 202  # asking twice changes nothing
    assert (await worker.say(wait_ms=2000))["cancel"] == [lease["job"]]
    await worker.tell(worker.report(lease, "cancelled"))
    assert (await tenant.get(location)).json()["state"] == "cancelled"


async def test_a_final_job_cannot_be_cancelled(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    await worker.run()
    body = problem(await tenant.delete(location), 409, "CONFLICT")
    assert "succeeded" in body["detail"]
