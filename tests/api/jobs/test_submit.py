"""The front door: one job, many jobs, keys that make it safe to send again, waiting for the end."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.worker import HandWorker

from fairway.core.ids import parse_job_id

JOB = {"type": "mail.send", "payload": {"to": "ada@example.com"}}


async def count(tenant: httpx2.AsyncClient) -> int:
    return len((await tenant.get("/v1/jobs?limit=200")).json()["jobs"])


# -- one ---------------------------------------------------------------------------------------


async def test_202_means_on_disk(tenant: httpx2.AsyncClient) -> None:
    reply = await tenant.post("/v1/jobs", json=JOB)
    assert reply.status_code == 202
    body = reply.json()
    assert parse_job_id(body["id"]) == body["id"]
    assert body["state"] == "queued"
    assert reply.headers["location"] == f"/v1/jobs/{body['id']}"
    assert "idempotent-replayed" not in reply.headers
    found = (await tenant.get(reply.headers["location"])).json()
    assert found["payload"] == JOB["payload"]
    assert (found["type"], found["pool"], found["priority"]) == ("mail.send", "short", 5)


async def test_every_field_arrives(tenant: httpx2.AsyncClient) -> None:
    whole = {**JOB, "pool": "long", "priority": 9, "timeout_seconds": 0.25}
    location = (await tenant.post("/v1/jobs", json=whole)).headers["location"]
    found = (await tenant.get(location)).json()
    assert {name: found[name] for name in whole} == whole


async def test_payload_may_be_left_out_and_keeps_its_text(tenant: httpx2.AsyncClient) -> None:
    bare = await tenant.post("/v1/jobs", json={"type": "mail.send"})
    assert (await tenant.get(bare.headers["location"])).json()["payload"] == {}
    payload = b'{"big": 18446744073709551615, "f": 1.50, "e": "\xc3\xa9"}'
    text = b'{"type": "mail.send", "payload": %b}' % payload
    kept = await tenant.post("/v1/jobs", content=text)
    assert payload in (await tenant.get(kept.headers["location"])).content


# -- limits ------------------------------------------------------------------------------------


async def test_a_full_queue_answers_429(house: House) -> None:
    _, key = house.new_tenant(depth_limit=3)
    async with house.caller(key) as tenant:
        for _ in range(3):
            assert (await tenant.post("/v1/jobs", json=JOB)).status_code == 202
        refused = await tenant.post("/v1/jobs", json=JOB)
        problem(refused, 429, "QUEUE_DEPTH_EXCEEDED")
        whole = await tenant.post("/v1/jobs/batch", json={"jobs": [JOB]})
        problem(whole, 429, "QUEUE_DEPTH_EXCEEDED")
        assert await count(tenant) == 3


# -- Idempotency-Key ---------------------------------------------------------------------------


async def test_the_same_key_answers_with_the_first_job(tenant: httpx2.AsyncClient) -> None:
    headers = {"idempotency-key": '"order-1"'}
    first = await tenant.post("/v1/jobs", json=JOB, headers=headers)
    again = await tenant.post("/v1/jobs", json=JOB, headers={"idempotency-key": "order-1"})
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert await count(tenant) == 1


async def test_the_same_key_with_another_body_is_refused(tenant: httpx2.AsyncClient) -> None:
    headers = {"idempotency-key": "order-2"}
    await tenant.post("/v1/jobs", json=JOB, headers=headers)
    other = await tenant.post("/v1/jobs", json={**JOB, "priority": 1}, headers=headers)
    problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
    assert await count(tenant) == 1


async def test_tenants_do_not_share_keys(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    headers = {"idempotency-key": "order-3"}
    ours = await tenant.post("/v1/jobs", json=JOB, headers=headers)
    theirs = await stranger.post("/v1/jobs", json=JOB, headers=headers)
    assert ours.json()["id"] != theirs.json()["id"]
    assert "idempotent-replayed" not in theirs.headers


async def test_100_parallel_posts_with_one_key_make_one_job(tenant: httpx2.AsyncClient) -> None:
    headers = {"idempotency-key": "order-4"}
    replies = await asyncio.gather(
        *(tenant.post("/v1/jobs", json=JOB, headers=headers) for _ in range(100))
    )
    assert {reply.status_code for reply in replies} == {202}
    assert len({reply.json()["id"] for reply in replies}) == 1
    assert sum("idempotent-replayed" not in reply.headers for reply in replies) == 1
    assert await count(tenant) == 1


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "caf\xe9", "tab\there"])
async def test_a_bad_key_is_refused(tenant: httpx2.AsyncClient, key: str) -> None:
    headers = [(b"idempotency-key", key.encode("latin-1"))]
    for path, body in (("/v1/jobs", JOB), ("/v1/jobs/batch", {"jobs": [JOB]})):
        reply = await tenant.post(path, json=body, headers=headers)
        problem(reply, 400, "INVALID_HEADER", "Idempotency-Key")
    assert await count(tenant) == 0


# -- Prefer: wait ------------------------------------------------------------------------------


async def test_the_result_comes_with_the_same_request(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    asking = asyncio.create_task(
        tenant.post("/v1/jobs", json={"type": worker.type}, headers={"prefer": "wait=20"})
    )
    await worker.run(result={"sum": 3})
    reply = await asking
    assert reply.status_code == 200
    assert reply.headers["preference-applied"] == "wait=20"
    assert reply.headers["location"] == f"/v1/jobs/{reply.json()['id']}"
    assert (reply.json()["state"], reply.json()["result"]) == ("succeeded", {"sum": 3})
    known = {"if-none-match": reply.headers["etag"]}
    assert (await tenant.get(reply.headers["location"], headers=known)).status_code == 304


async def test_a_wait_that_ends_first_answers_202(tenant: httpx2.AsyncClient) -> None:
    headers = {"prefer": "respond-async, wait=1", "idempotency-key": "w"}
    reply = await tenant.post("/v1/jobs", json={"type": "never.run"}, headers=headers)
    assert reply.status_code == 202
    assert reply.headers["preference-applied"] == "wait=1"
    assert reply.json()["state"] == "queued"
    assert reply.json()["finished_at"] is None
    again = await tenant.post("/v1/jobs", json={"type": "never.run"}, headers=headers)
    assert again.headers["idempotent-replayed"] == "true"
