"""Bad input gets a 4xx that names the field, in bounded time; nothing is half-written."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from tests.api.house import problem

OK = {"type": "a", "payload": {}}


pytestmark = pytest.mark.usefixtures("nothing_is_written")


async def both(tenant: httpx2.AsyncClient, job: bytes) -> tuple[httpx2.Response, Any]:
    """The same job on its own, and as an item of a batch beside nothing else."""
    alone = await tenant.post("/v1/jobs", content=job)
    batch = await tenant.post("/v1/jobs/batch", content=b'{"jobs":[' + job + b"]}")
    return alone, batch


# -- what a payload cannot hold ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "pointer", "words"),
    [
        (b'{"x":"a\\u0000b"}', "/payload/x", "NUL"),
        (b'{"a\\u0000":1}', "/payload", "NUL"),
        (b'{"x":["\\ud800 "]}', "/payload/x/0", "surrogate"),
        (b'{"x":1e400}', "/payload/x", "too large"),
        (b'{"x":-1e400}', "/payload/x", "too large"),
        (b'{"x":{"y":' + b"9" * 60_000 + b"}}", "/payload/x/y", "64 bits"),
        (b'{"x":18446744073709551616}', "/payload/x", "64 bits"),
        (b'{"x":-9223372036854775809}', "/payload/x", "64 bits"),
        (b'{"x":1,"y":2,"x":3}', "/payload/x", "twice"),
        (b'{"a/b~c":{"x":1,"x":1}}', "/payload/a~1b~0c/x", "twice"),
        (b'{"x":' + b"[" * 80 + b"]" * 80 + b"}", None, "deeper than 64"),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else None,
)
async def test_a_flaw_in_a_payload_is_named_by_its_place(
    tenant: httpx2.AsyncClient, payload: bytes, pointer: str | None, words: str
) -> None:
    alone, batch = await both(tenant, b'{"type":"a","payload":' + payload + b"}")
    if b"\\ud800" in payload or b"e400" in payload:  # the codec itself may refuse these first
        assert alone.status_code in (400, 422)
        assert alone.json()["code"] in ("INVALID_JSON", "INVALID_REQUEST")
        return
    body = problem(alone, 422, "INVALID_REQUEST", pointer)
    assert words in body["detail"]
    (item,) = batch.json()["items"]
    assert item["problem"]["detail"] == body["detail"]
    assert item["problem"]["errors"] == body["errors"]


async def test_a_million_digits_are_refused_in_a_moment(tenant: httpx2.AsyncClient) -> None:
    digits = b"9" * 1_000_000
    async with asyncio.timeout(30):
        alone, batch = await both(tenant, b'{"type":"a","payload":{"x":' + digits + b"}}")
        problem(alone, 422, "INVALID_REQUEST", "/payload/x")
        assert batch.json()["items"][0]["problem"]["errors"][0]["pointer"] == "/payload/x"
        _, batch = await both(tenant, b'{"type":"a","priority":' + digits + b"}")
        assert batch.json()["items"][0]["problem"]["errors"][0]["pointer"] == "/priority"


@pytest.mark.parametrize("payload", [[], "text", None, 1, True, [{"to": "x"}]])
async def test_a_payload_is_an_object(tenant: httpx2.AsyncClient, payload: object) -> None:
    reply = await tenant.post("/v1/jobs", json={"type": "a", "payload": payload})
    problem(reply, 422, "INVALID_REQUEST", "/payload")


# -- fields ------------------------------------------------------------------------------------


async def test_an_unknown_pool_is_named(tenant: httpx2.AsyncClient) -> None:
    reply = await tenant.post("/v1/jobs", json=OK | {"pool": "huge"})
    body = problem(reply, 422, "UNKNOWN_POOL", "/pool")
    assert "short, medium, long" in body["detail"]


@pytest.mark.parametrize("body", [[], "x", 1, {"jobs": {}}, {"jobs": None}, {}, {"job": []}])
async def test_a_batch_is_an_object_with_jobs(tenant: httpx2.AsyncClient, body: object) -> None:
    problem(await tenant.post("/v1/jobs/batch", json=body), 422, "INVALID_REQUEST")


# -- size --------------------------------------------------------------------------------------


async def test_a_payload_over_its_limit_is_413(tenant: httpx2.AsyncClient) -> None:
    over = {"type": "a", "payload": {"x": "y" * (8 << 20)}}
    problem(await tenant.post("/v1/jobs", json=over), 413, "PAYLOAD_TOO_LARGE", "/payload")
    batch = await tenant.post("/v1/jobs/batch", json={"jobs": [over]})
    assert batch.json()["items"][0]["status"] == 413


# -- form --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/jobs", "GET, HEAD, POST"),
        ("PUT", "/v1/jobs/01980a5e-7c1b-7000-8000-04a2b1c3d4e5", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/v1/jobs/batch", "POST"),
        ("DELETE", "/v1/jobs/batch", "POST"),
        ("GET", "/v1/workers/w/exchange", "POST"),
        ("POST", "/livez", "GET, HEAD"),
        ("DELETE", "/v1/tenants", "GET, HEAD, POST"),
        ("POST", "/docs", "GET, HEAD"),
        ("GET", "/v1/jobs/wait", "POST"),
        ("PATCH", "/v1/jobs/wait", "POST"),
        ("PATCH", "/v1/jobs/batch", "POST"),
        ("DELETE", "/v1/bulk-actions", "GET, HEAD, POST"),
        ("DELETE", "/v1/dead-letters/groups", "GET, HEAD"),
        ("OPTIONS", "/v1/bulk-actions", "GET, HEAD, POST"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(
    tenant: httpx2.AsyncClient, method: str, path: str, allow: str
) -> None:
    reply = await tenant.request(method, path)
    problem(reply, 405, "METHOD_NOT_ALLOWED")
    assert ", ".join(sorted(reply.headers["allow"].split(", "))) == allow


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v2/jobs", "/v1/jobs/", "/docs/", "/V1/JOBS", "/internal/hint", "/%00", "/..%2f"],
)
async def test_what_is_not_there_is_404(tenant: httpx2.AsyncClient, path: str) -> None:
    problem(await tenant.get(path), 404, "NOT_FOUND")
    if path == "/internal/hint":
        problem(await tenant.post(path, json={}), 404, "NOT_FOUND")


@pytest.mark.parametrize("host", ["[::1", "a b", "", "x" * 300, "evil.example/%00"])
async def test_a_strange_host_does_no_harm(tenant: httpx2.AsyncClient, host: str) -> None:
    for path in ("/v1/jobs", "/", "/nowhere"):
        reply = await tenant.get(path, headers={"host": host})
        assert reply.status_code in (200, 400, 404)
        assert "evil" not in reply.text
