"""A gate in front of PostgreSQL: close it, and the store is away; open it, and it is back.

It passes bytes and knows nothing of them. Closing cuts every connection and refuses new ones, as
a crash or a network cut would. Silent, it takes bytes and brings none. It can let a connection wait
before it passes the first byte, as a long way with many steps does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit


class Gate:
    """`dsn` leads through the gate to the database of `target_dsn`."""

    def __init__(self, target_dsn: str) -> None:
        self._target = urlsplit(target_dsn)
        self._server: asyncio.Server | None = None
        self._port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self.connect_seconds = 0.0

    @property
    def dsn(self) -> str:
        user = self._target.netloc.rpartition("@")[0]
        host = f"{user}@127.0.0.1" if user else "127.0.0.1"
        return f"postgresql://{host}:{self._port}{self._target.path}?sslmode=disable"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()

    def silence(self) -> None:
        self._flows.clear()

    def speak(self) -> None:
        self._flows.set()

    async def _pass(self, near: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self.connect_seconds)
        far, far_out = await self._connect()
        both = {near_out, far_out}
        self._writers |= both
        try:
            await asyncio.gather(self._pump(near, far_out), self._pump(far, near_out))
        finally:
            self._writers -= both

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        options = parse_qs(self._target.query)
        port = int(options.get("port", [str(self._target.port or 5432)])[0])
        if "host" in options:
            return await asyncio.open_unix_connection(f"{options['host'][0]}/.s.PGSQL.{port}")
        return await asyncio.open_connection(self._target.hostname, port)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()


@asynccontextmanager
async def gate_to(dsn: str) -> AsyncIterator[Gate]:
    gate = Gate(dsn)
    await gate.open()
    try:
        yield gate
    finally:
        gate.speak()
        await gate.close()


@asynccontextmanager
async def silent_host() -> AsyncIterator[str]:
    """`host:port` of somebody who takes connections and never says a word."""
    guests: set[asyncio.StreamWriter] = set()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        guests.add(writer)
        await reader.read(-1)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for guest in guests:
            guest.transport.abort()
