"""Bodies into messages: what is wrong with one is told in words, by the field."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.house import problem
from tests.api.test_bad_input import OK

pytestmark = pytest.mark.usefixtures("nothing_is_written")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"type":"a"} {"type":"b"}',
        b'{"type":"a",}',
        b"{'type':'a'}",
        b'\xef\xbb\xbf{"type":"a"}',
        '{"type":"a"}'.encode("utf-16"),
        b'{"type":"a","payload":{"x":NaN}}',
        b'{"type":"a","payload":{"x":Infinity}}',
        b'{"type":"a","payload":{"x":-Infinity}}',
        b'{"type":"a","payload":{"x":01}}',
        b'{"type":"a","payload":{"x":"\x00"}}',
        b'{"type":"a","payload":{"x":"\xff"}}',
        b'{"type":"\xff"}',
        b'{"type":"a","payload":{"x":"\xed\xa0\x80"}}',
        b'{"type":"a","payload":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b'{"type":"a","payload":' + b'{"x":' * 10_000 + b"1" + b"}" * 10_000 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
async def test_broken_json_is_400(tenant: httpx2.AsyncClient, body: bytes) -> None:
    problem(await tenant.post("/v1/jobs", content=body), 400, "INVALID_JSON")
    batch = await tenant.post("/v1/jobs/batch", content=b'{"jobs":[' + body + b"]}")
    if batch.status_code == 200:  # the batch could be told apart into items, and this one is bad
        assert [item["problem"]["code"] for item in batch.json()["items"]] == ["INVALID_JSON"]
    else:
        assert batch.status_code in (400, 422)
        problem(batch, batch.status_code, batch.json()["code"])


@pytest.mark.parametrize(
    ("depth", "status", "code"),
    [(100_000, 400, "INVALID_JSON"), (1_000_000, 413, "TOO_MANY_VALUES")],
)
async def test_endless_nesting_does_not_hurt(
    tenant: httpx2.AsyncClient, depth: int, status: int, code: str
) -> None:
    body = b'{"jobs":' + b"[" * depth + b"]" * depth + b"}"
    problem(await tenant.post("/v1/jobs/batch", content=body), status, code)
    for path in ("/v1/jobs", "/v1/jobs/batch"):
        reply = await tenant.post(path, content=b"[" * depth)
        assert reply.status_code in (400, 413, 422, 429)  # what was refused counts


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"type": None}, "/type"),
        ({"type": 7}, "/type"),
        ({"type": ""}, "/type"),
        ({"type": "a" * 129}, "/type"),
        ({"type": "a" * 60_000}, "/type"),
        ({"type": "9lives"}, "/type"),
        ({"type": "a\n"}, "/type"),
        ({"type": "a b"}, "/type"),
        ({"type": "../x"}, "/type"),
        ({"type": "café"}, "/type"),
        ({"pool": 1}, "/pool"),
        ({"pool": ""}, "/pool"),
        ({"pool": "SHORT"}, "/pool"),
        ({"priority": -1}, "/priority"),
        ({"priority": 10}, "/priority"),
        ({"priority": 10**9}, "/priority"),
        ({"priority": 1.5}, "/priority"),
        ({"priority": "5"}, "/priority"),
        ({"priority": None}, "/priority"),
        ({"timeout_seconds": 0}, "/timeout_seconds"),
        ({"timeout_seconds": -1}, "/timeout_seconds"),
        ({"timeout_seconds": 604_801}, "/timeout_seconds"),
        ({"timeout_seconds": 3e8}, "/timeout_seconds"),
        ({"timeout_seconds": "1s"}, "/timeout_seconds"),
        ({"state": "running"}, "/state"),
        ({"tenant": "other"}, "/tenant"),
        ({"tenant_id": 1}, "/tenant_id"),
        ({"attempts": 0}, "/attempts"),
        ({"id": "x"}, "/id"),
        ({"created_at": 0}, "/created_at"),
        ({"x-y z": 0}, "/x-y z"),
    ],
    ids=str,
)
async def test_a_bad_field_is_named(
    tenant: httpx2.AsyncClient, change: dict[str, Any], pointer: str
) -> None:
    reply = await tenant.post("/v1/jobs", json=OK | change)
    body = problem(reply, 422, "INVALID_REQUEST", pointer)
    assert len(reply.content) < 2000
    batch = await tenant.post("/v1/jobs/batch", json={"jobs": [OK | change]})
    assert batch.json()["items"][0]["problem"]["errors"] == body["errors"]


async def test_a_missing_type_is_named(tenant: httpx2.AsyncClient) -> None:
    problem(await tenant.post("/v1/jobs", json={}), 422, "INVALID_REQUEST", "/type")


async def test_a_field_given_twice_is_refused(tenant: httpx2.AsyncClient) -> None:
    reply = await tenant.post("/v1/jobs", content=b'{"type":"a","type":"b"}')
    problem(reply, 422, "INVALID_REQUEST", "/type")


@pytest.mark.parametrize(
    "path",
    ["/v1/jobs", "/v1/jobs/batch", "/v1/jobs/wait", "/v1/bulk-actions",
     "/v1/schedule-preview"],
)  # fmt: skip
async def test_an_empty_body_is_told_what_to_send(tenant: httpx2.AsyncClient, path: str) -> None:
    told = problem(await tenant.post(path), 400, "INVALID_JSON")
    assert told["detail"].startswith("The body is empty; send a JSON object")


async def test_a_single_replay_needs_no_body(tenant: httpx2.AsyncClient) -> None:
    job = "01900000-0000-7000-8000-000000000001"  # there is none, which is all that is wrong
    problem(await tenant.post(f"/v1/dead-letters/{job}/replay"), 404, "NOT_FOUND")


async def test_a_wrong_name_is_answered_in_words(tenant: httpx2.AsyncClient) -> None:
    reply = await tenant.post("/v1/jobs", json={"type": "send email"})
    said = problem(reply, 422, "INVALID_REQUEST", "/type")
    assert said["detail"].startswith("This must have up to 128 letters (A-Z, a-z), digits and _")
