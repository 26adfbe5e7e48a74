"""The small client: which connections it uses again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairway.runtime.plain_http import HttpClient

REPLY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}"
LARGE = b"x" * (32 << 20)  # more than any socket takes before somebody reads


class Server:
    """Answers each head at once, and reads bodies of up to 64 KB only."""

    def __init__(self) -> None:
        self.connections = 0
        self.url = ""

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(REPLY)
                size_bytes = int(head.lower().partition(b"content-length: ")[2].split()[0])
                if size_bytes > 1 << 16:
                    await asyncio.Event().wait()
                await reader.readexactly(size_bytes)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.close()


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Server, HttpClient]]:
    server = Server()
    listener = await asyncio.start_server(server.meet, "127.0.0.1", 0)
    client = HttpClient(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", {})
    try:
        yield server, client
    finally:
        client.close()
        listener.close()


async def test_a_connection_is_used_again() -> None:
    async with running() as (server, client):
        for _ in range(3):
            reply = await client.post("/", b"{}", 20)
            assert reply == (503, b"{}", [(b"content-length", b"2")])
        assert server.connections == 1


async def test_one_that_was_answered_before_all_was_sent_is_not() -> None:
    """The next call would wait behind the rest of this one, which nobody reads."""
    async with running() as (server, client):
        for count in (1, 2):
            assert (await client.post("/", LARGE, 20)).status == 503
            assert server.connections == count
        assert (await client.post("/", b"{}", 20)).status == 503
        assert server.connections == 3


async def test_an_answer_without_end_is_broken_off() -> None:
    async with running() as (server, client):
        client._reply_bytes_max = 1
        with pytest.raises(ConnectionError, match="larger than 1 bytes"):
            await client.post("/", b"{}", 20)
        client._reply_bytes_max = 2
        assert (await client.post("/", b"{}", 20)).body == b"{}"
        assert server.connections == 2
