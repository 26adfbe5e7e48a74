"""A receiver of webhooks on a loopback port: keeps what came, and answers as it is told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass
class Received:
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.body)
        return found


def reply(status: int, *lines: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in lines)
    return f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n{head}\r\n".encode()


OK = reply(200)
HANG = b"hang"  # no answer, ever
Answer = Callable[[Received], bytes]
Raw = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Receiver:
    answer: Answer = lambda received: OK
    raw: Raw | None = None  # writes whatever it likes instead
    port: int = 0
    received: list[Received] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=b"

    def kinds(self) -> list[str]:
        return [one.message["type"] for one in self.received]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.received.append(await _read(reader))
                text = self.answer(self.received[-1])
                if text == HANG:
                    await reader.read()
                    return
                if self.raw is not None:
                    await self.raw(writer)
                else:
                    writer.write(text)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in pairs}
    return Received(head[0], headers, await reader.readexactly(int(headers["content-length"])))


@asynccontextmanager
async def receiving(
    answer: Answer = lambda received: OK, *, tls: ssl.SSLContext | None = None, **more: Any
) -> AsyncIterator[Receiver]:
    receiver = Receiver(answer, **more)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
