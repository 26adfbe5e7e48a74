"""Bodies as they come in: of the right kind, within their length, and in time."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator

import httpx2
import pytest
from tests.api.house import House, problem

from fairway.api.http import asgi

pytestmark = pytest.mark.usefixtures("nothing_is_written")


async def test_a_huge_body_is_refused_before_it_is_read(
    house: House, tenant: httpx2.AsyncClient
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    key = tenant.headers["authorization"]
    head = f"POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: {key}\r\n"
    writer.write(f"{head}content-length: 1000000000\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), 30)
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

    async with asyncio.timeout(30):
        posting = asyncio.create_task(tenant.post("/v1/jobs", content=dripping()))
        await asyncio.wait({posting}, timeout=1)
        is_over.set()
        with contextlib.suppress(httpx2.TransportError):
            problem(await posting, 408, "REQUEST_TIMEOUT")


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
    ("path", "bytes_max", "words"),
    [
        ("/v1/jobs", (8 << 20) + (8 << 10), "POST /v1/uploads"),
        ("/v1/jobs/batch", 16 << 20, "smaller batches"),
        ("/v1/pauses", 64 << 10, "that this path takes"),
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
