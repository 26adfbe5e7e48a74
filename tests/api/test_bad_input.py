"""Bad input gets a 4xx that names the field, in bounded time; nothing is half-written."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem

from fairway.api.http import asgi

OK = {"type": "a", "payload": {}}


@pytest.fixture(autouse=True)
async def _nothing_is_written(tenant: httpx2.AsyncClient) -> AsyncIterator[None]:
    yield
    assert (await tenant.get("/v1/jobs")).json()["jobs"] == []


async def both(tenant: httpx2.AsyncClient, job: bytes) -> tuple[httpx2.Response, Any]:
    """The same job on its own, and as an item of a batch beside nothing else."""
    alone = await tenant.post("/v1/jobs", content=job)
    batch = await tenant.post("/v1/jobs/batch", content=b'{"jobs":[' + job + b"]}")
    return alone, batch


# -- what JSON cannot be -----------------------------------------------------------------------


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
    async with asyncio.timeout(5):
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


async def test_a_huge_body_is_refused_before_it_is_read(
    house: House, tenant: httpx2.AsyncClient
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    key = tenant.headers["authorization"]
    head = f"POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: {key}\r\n"
    writer.write(f"{head}content-length: 1000000000\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), 5)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413")


async def test_a_body_without_a_length_is_cut_off_while_reading(tenant: httpx2.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b'{"jobs":['
        for _ in range(40):
            yield b" " * (1 << 20)

    problem(await tenant.post("/v1/jobs/batch", content=endless()), 413, "PAYLOAD_TOO_LARGE")
    problem(await tenant.post("/v1/jobs", content=endless()), 413, "PAYLOAD_TOO_LARGE")


async def test_a_body_that_drips_is_cut_off(
    tenant: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "BODY_SECONDS_MAX", 0.2)
    is_over = asyncio.Event()

    async def dripping() -> AsyncIterator[bytes]:
        yield b'{"type":'
        await is_over.wait()

    async with asyncio.timeout(5):
        posting = asyncio.create_task(tenant.post("/v1/jobs", content=dripping()))
        await asyncio.wait({posting}, timeout=1)
        is_over.set()
        with contextlib.suppress(httpx2.TransportError):
            problem(await posting, 408, "REQUEST_TIMEOUT")


# -- form --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "media",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/msgpack",
        "application/yaml",
        "application/jsonp",
        "multipart/form-data; boundary=x",
        "",
    ],
)
async def test_other_media_are_415(tenant: httpx2.AsyncClient, media: str) -> None:
    for path in ("/v1/jobs", "/v1/jobs/batch"):
        reply = await tenant.post(path, content=b"x", headers={"content-type": media})
        problem(reply, 415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate", "gzip, gzip", "x"])
async def test_compressed_bodies_are_415(tenant: httpx2.AsyncClient, coding: str) -> None:
    reply = await tenant.post(
        "/v1/jobs", content=gzip.compress(b" " * 10_000_000), headers={"content-encoding": coding}
    )
    problem(reply, 415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/jobs", "GET, HEAD, POST"),
        ("PUT", "/v1/jobs/01980a5e-7c1b-7000-8000-04a2b1c3d4e5", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/v1/jobs/batch", "POST"),
        ("DELETE", "/v1/jobs/batch", "POST"),
        ("GET", "/v1/workers/w/exchange", "POST"),
        ("POST", "/livez", "GET, HEAD"),
        ("GET", "/v1/tenants", "POST"),
        ("POST", "/docs", "GET, HEAD"),
        ("GET", "/v1/jobs/cancel", "POST"),
        ("PATCH", "/v1/jobs/cancel", "POST"),
        ("PATCH", "/v1/jobs/batch", "POST"),
        ("DELETE", "/v1/dead-letters/actions", "GET, HEAD"),
        ("DELETE", "/v1/dead-letters/groups", "GET, HEAD"),
        ("GET", "/v1/dead-letters/discard", "POST"),
        ("GET", "/v1/dead-letters/replay", "POST"),
        ("OPTIONS", "/v1/dead-letters/replay", "POST"),
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


@pytest.mark.parametrize(
    "path",
    ["/v1/jobs", "/v1/jobs/batch", "/v1/jobs/cancel", "/v1/dead-letters/replay",
     "/v1/schedule-preview"],
)  # fmt: skip
async def test_an_empty_body_is_told_what_to_send(tenant: httpx2.AsyncClient, path: str) -> None:
    told = problem(await tenant.post(path), 400, "INVALID_JSON")
    assert told["detail"].startswith("The body is empty; send a JSON object")


async def test_a_single_replay_needs_no_body(tenant: httpx2.AsyncClient) -> None:
    job = "01900000-0000-7000-8000-000000000001"  # there is none, which is all that is wrong
    problem(await tenant.post(f"/v1/dead-letters/{job}/replay"), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("path", "bytes_max", "words"),
    [
        ("/v1/jobs", (8 << 20) + (8 << 10), "POST /v1/uploads"),
        ("/v1/jobs/batch", 16 << 20, "smaller batches"),
        ("/v1/jobs/cancel", 64 << 10, "that this path takes"),
    ],
)
@pytest.mark.parametrize("says_its_length", [True, False])
async def test_a_body_too_large_is_told_the_limit(
    tenant: httpx2.AsyncClient, path: str, bytes_max: int, words: str, says_its_length: bool
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(0, bytes_max + 1, 1 << 16):
            yield b" " * (1 << 16)

    body = b" " * (bytes_max + 1) if says_its_length else pieces()
    json_body = {"content-type": "application/json"}
    reply = await tenant.post(path, content=body, headers=json_body)
    told = problem(reply, 413, "PAYLOAD_TOO_LARGE")["detail"]
    assert str(bytes_max) in told
    assert words in told


async def test_a_wrong_name_is_answered_in_words(tenant: httpx2.AsyncClient) -> None:
    reply = await tenant.post("/v1/jobs", json={"type": "send email"})
    said = problem(reply, 422, "INVALID_REQUEST", "/type")
    assert said["detail"].startswith("This must have up to 128 letters (A-Z, a-z), digits and _")
