"""A line to PostgreSQL that can be cut, or go silent: a relay in front of its socket.

Cut, it says so: connections break and new ones are refused. Silent, it takes every byte and brings
none, as a link does behind which a machine has vanished.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

T = TypeVar("T")


class Cable:
    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        query = parse_qs(parts.query)
        self._socket = f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}"
        self._ends: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cable")
        self._thread.start()
        server = self._do(asyncio.start_server(self._join, "127.0.0.1", 0))
        port = server.sockets[0].getsockname()[1]
        self.dsn = f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}?sslmode=disable"

    def cut(self) -> None:
        self._do(self._cut())

    def silence(self) -> None:
        """Whatever is sent from now on has no answer: a busy machine may be late to begin."""
        self._do(self._hold())

    def mend(self) -> None:
        self._is_cut = False
        self._loop.call_soon_threadsafe(self._flows.set)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """For as long as this; who fails meanwhile leaves no silent line to those that follow."""
        self.silence()
        try:
            yield
        finally:
            self.mend()

    def close(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _hold(self) -> None:
        self._flows.clear()

    async def _cut(self) -> None:
        self._is_cut = True
        self._flows.set()
        for end in self._ends:
            end.transport.abort()
        await asyncio.sleep(0)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_unix_connection(self._socket)
        self._ends |= {writer, far_writer}
        await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        self._ends -= {writer, far_writer}

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@contextmanager
def cable_to(dsn: str) -> Iterator[Cable]:
    cable = Cable(dsn)
    try:
        yield cable
    finally:
        cable.close()
