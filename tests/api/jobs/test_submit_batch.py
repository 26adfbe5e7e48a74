"""Many jobs in one request: each has its own answer, and a batch sent again makes no doubles."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from tests.api.house import problem
from tests.api.jobs.test_submit import JOB, count

NEEDS_A, NEEDS_B = ({"type": "object", "required": [name]} for name in "ab")


async def test_each_job_of_a_batch_has_its_own_status(tenant: httpx2.AsyncClient) -> None:
    jobs: list[Any] = [JOB, {"type": "9"}, JOB, {**JOB, "pool": "huge"}, "no job", JOB]
    reply = await tenant.post("/v1/jobs/batch", json={"jobs": jobs})
    assert reply.status_code == 200
    body = reply.json()
    assert [item["status"] for item in body["items"]] == [202, 422, 202, 422, 422, 202]
    assert body["accepted"] == 3
    assert body["items"][1]["problem"]["errors"][0]["pointer"] == "/type"
    assert body["items"][3]["problem"]["code"] == "UNKNOWN_POOL"
    ids = [item["id"] for item in body["items"] if item["status"] == 202]
    listed = [job["id"] for job in (await tenant.get("/v1/jobs")).json()["jobs"]]
    assert listed == sorted(ids, reverse=True)


async def test_a_batch_of_bad_jobs_writes_nothing(tenant: httpx2.AsyncClient) -> None:
    reply = await tenant.post("/v1/jobs/batch", json={"jobs": [{"type": ""}, {}]})
    assert reply.json()["accepted"] == 0
    assert await count(tenant) == 0


@pytest.mark.parametrize("size", [0, 10_001])
async def test_a_batch_holds_1_to_10_000(tenant: httpx2.AsyncClient, size: int) -> None:
    reply = await tenant.post("/v1/jobs/batch", json={"jobs": [JOB] * size})
    problem(reply, 422, "INVALID_REQUEST", "/jobs")
    assert await count(tenant) == 0


async def test_10_000_jobs_are_taken_at_once(tenant: httpx2.AsyncClient) -> None:
    reply = await tenant.post("/v1/jobs/batch", json={"jobs": [{"type": "tiny"}] * 10_000})
    assert reply.json()["accepted"] == 10_000
    assert len({item["id"] for item in reply.json()["items"]}) == 10_000


async def test_a_deep_job_does_not_hide_among_flat_ones(tenant: httpx2.AsyncClient) -> None:
    deep = b'{"type":"a","payload":{"x":' + b"[" * 70 + b"]" * 70 + b"}}"
    body = b'{"jobs":[' + b",".join([b'{"type":"a","payload":{}}'] * 500 + [deep]) + b"]}"
    items = (await tenant.post("/v1/jobs/batch", content=body)).json()["items"]
    assert [item["status"] for item in items[-2:]] == [202, 422]
    assert "deeper than 64" in items[-1]["problem"]["detail"]


async def test_a_long_number_does_not_hide_in_a_batch(tenant: httpx2.AsyncClient) -> None:
    body = b'{"jobs":[{"type":"a","payload":{"n":' + b"9" * 30 + b"}}]}"
    (item,) = (await tenant.post("/v1/jobs/batch", content=body)).json()["items"]
    assert item["problem"]["errors"][0]["pointer"] == "/payload/n"


async def test_a_resent_batch_makes_no_doubles(tenant: httpx2.AsyncClient) -> None:
    headers = {"idempotency-key": "batch-1"}
    jobs = [JOB, {"type": "9"}, {**JOB, "priority": 1}]
    first = await tenant.post("/v1/jobs/batch", json={"jobs": jobs}, headers=headers)
    again = await tenant.post("/v1/jobs/batch", json={"jobs": jobs}, headers=headers)
    assert first.json() == again.json()
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert await count(tenant) == 2
    changed = {"jobs": [JOB, JOB, JOB]}
    other = await tenant.post("/v1/jobs/batch", json=changed, headers=headers)
    problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
    assert await count(tenant) == 2


@pytest.mark.parametrize("own", [{}, {"unique": {"key": "one"}}])
async def test_a_batch_is_the_same_whatever_is_refused_of_it_by_then(
    tenant: httpx2.AsyncClient, operator: httpx2.AsyncClient, own: dict[str, Any]
) -> None:
    """A schema changed between the two: nothing is made twice, and nobody's key was reused."""
    await operator.put("/v1/job-types/strict", json={"schema": NEEDS_A})
    of_type = [{"type": "strict", "payload": {name: 1}} for name in "ab"]
    batch = {"jobs": [{**of_type[1], **own}, JOB, of_type[0], JOB]}
    headers = {"idempotency-key": "again"}
    first = (await tenant.post("/v1/jobs/batch", json=batch, headers=headers)).json()["items"]
    assert [item["status"] for item in first] == [422, 202, 202, 202]
    for schema, statuses in ((NEEDS_A, first), ({}, None), (NEEDS_B, None)):
        await operator.put("/v1/job-types/strict", json={"schema": schema})
        again = (await tenant.post("/v1/jobs/batch", json=batch, headers=headers)).json()["items"]
        assert [item.get("id") for item in again[1::2]] == [one["id"] for one in first[1::2]]
        assert statuses is None or again == statuses
        if schema == {}:
            assert again[2]["id"] == first[2]["id"]
            assert own or again[0]["problem"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert await count(tenant) == 3 + len(own), "with keys by place what is good now is made"


@pytest.mark.parametrize("size", [1, 50, 200])
async def test_of_a_batch_that_comes_several_times_at_once_one_is_made(
    tenant: httpx2.AsyncClient, size: int
) -> None:
    batch, headers = {"jobs": [JOB] * size}, {"idempotency-key": "at once"}
    calls = [tenant.post("/v1/jobs/batch", json=batch, headers=headers) for _ in range(4)]
    replies = await asyncio.gather(*calls)
    assert len({reply.text for reply in replies}) == 1
    assert sum("idempotent-replayed" in reply.headers for reply in replies) == 3
    listed = await tenant.get("/v1/jobs")
    ids = [item["id"] for item in replies[0].json()["items"]]
    assert [job["id"] for job in listed.json()["jobs"]] == ids[::-1][:50]


async def test_jobs_of_a_batch_that_can_fail_alone_have_keys_by_place(
    tenant: httpx2.AsyncClient,
) -> None:
    only = {**JOB, "unique": {"key": "one"}}
    batch, headers = {"jobs": [only, only, JOB]}, {"idempotency-key": "mixed"}
    first = await tenant.post("/v1/jobs/batch", json=batch, headers=headers)
    again = await tenant.post("/v1/jobs/batch", json=batch, headers=headers)
    ids = [item.get("id") for item in first.json()["items"]]
    assert [item.get("id") for item in again.json()["items"]] == ids
    assert await count(tenant) == 2


async def test_a_batch_and_a_job_do_not_share_keys(tenant: httpx2.AsyncClient) -> None:
    body = json.dumps(JOB)
    await tenant.post("/v1/jobs/batch", content=f'{{"jobs":[{body}]}}',
                      headers={"idempotency-key": "k"})  # fmt: skip
    for key in ("k", "k#0"):
        one = await tenant.post("/v1/jobs", content=body, headers={"idempotency-key": key})
        assert "idempotent-replayed" not in one.headers


async def test_a_key_of_its_own_is_the_same_wherever_the_job_comes_from(
    tenant: httpx2.AsyncClient,
) -> None:
    body = json.dumps(JOB)
    alone = await tenant.post("/v1/jobs", content=body, headers={"idempotency-key": "a"})
    for keys in (["a", "b"], ["b", "a"], ["a", "a"]):
        batch = f'{{"jobs":[{body},{body}],"idempotency_keys":{json.dumps(keys)}}}'
        items = (await tenant.post("/v1/jobs/batch", content=batch)).json()["items"]
        assert items[keys.index("a")]["id"] == alone.json()["id"]
    assert await count(tenant) == 2


async def test_a_key_that_was_used_keeps_out_its_own_job_only(tenant: httpx2.AsyncClient) -> None:
    await tenant.post("/v1/jobs", json=JOB, headers={"idempotency-key": "a"})
    batch = {"jobs": [{**JOB, "priority": 1}, JOB], "idempotency_keys": ["a", "b"]}
    first = await tenant.post("/v1/jobs/batch", json=batch)
    assert [item["status"] for item in first.json()["items"]] == [422, 202]
    assert first.json()["items"][0]["problem"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert "idempotent-replayed" not in first.headers
    again = await tenant.post("/v1/jobs/batch", json=batch)
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    ("keys", "headers", "pointer"),
    [
        (["a"], {}, "/idempotency_keys"),
        (["a", "b"], {"idempotency-key": "k"}, "/idempotency_keys"),
        (["a", ""], {}, "/idempotency_keys/1"),
        (["a\n", "b"], {}, "/idempotency_keys/0"),
        (["a", "b" * 256], {}, "/idempotency_keys/1"),
        (["a", None], {}, "/idempotency_keys/1"),
    ],
)
async def test_keys_that_are_none_are_refused(
    tenant: httpx2.AsyncClient, keys: list[str], headers: dict[str, str], pointer: str
) -> None:
    batch = {"jobs": [JOB, JOB], "idempotency_keys": keys}
    reply = await tenant.post("/v1/jobs/batch", json=batch, headers=headers)
    problem(reply, 422, "INVALID_REQUEST", pointer)
    assert await count(tenant) == 0
