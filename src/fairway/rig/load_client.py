"""The HTTP client of every load: cheap connections, one request under way on each.

It adds to `runtime/plain_http.py` what a measuring client needs: the ETag, HEAD, and replies that
never end (server-sent events). It opens a connection whenever none is free, so that requests of an
open loop never wait for each other. It neither retries nor gives up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import httptools
import msgspec

from fairway.runtime.plain_http import HttpConnection, Reply, head_lines

Headers = Mapping[str, str]
NO_HEADERS: Headers = {}
JSON: Headers = {"content-type": "application/json"}


class Answer(NamedTuple):
    status: int
    body: bytes
    etag: str = ""


def request(method: str, path: str, key: str, body: bytes, headers: Headers) -> bytes:
    """A whole request; made once, it can be sent any number of times."""
    own = {"host": "rig"} | ({"authorization": f"Bearer {key}"} if key else {})
    length = {"content-length": str(len(body))} if body else {}
    lines = head_lines({**own, **headers, **length})
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def post(path: str, key: str, body: bytes) -> bytes:
    return request("POST", path, key, body, JSON)


class LoadConnection(HttpConnection):
    """A connection that keeps the ETag, understands HEAD, and can hand on a body as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.etag = ""
        self.is_head = False
        self.on_piece: Callable[[bytes], None] | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        if name == b"etag":
            self.etag = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self.is_head and self._reply is not None and not self._reply.done():
            status = self._parser.get_status_code()
            self._parser = httptools.HttpResponseParser(self)  # no body follows, whatever it says
            self._reply.set_result(Reply(status, b""))

    def on_message_complete(self) -> None:
        if not self.is_head:
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        if self.on_piece is None:
            super().on_body(body)
        else:
            self.on_piece(body)


class LoadClient:
    """One server, one key."""

    def __init__(self, url: str, key: str = "") -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._key = key
        self._idle: list[LoadConnection] = []

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Headers = NO_HEADERS
    ) -> Answer:
        """Raises OSError when the connection breaks."""
        text = request(method, path, self._key, body, headers)
        return await self.send(text, is_head=method == "HEAD")

    async def send_json(self, method: str, path: str, document: object) -> Answer:
        return await self.ask(method, path, msgspec.json.encode(document), JSON)

    async def send(self, text: bytes, *, is_head: bool = False) -> Answer:
        """A whole request as it is; raises OSError when the connection breaks."""
        connection = self._idle_connection() or await self.connect()
        connection.etag, connection.is_head = "", is_head
        try:
            reply = await connection.send(text)
        except BaseException:
            connection.close()
            raise
        if connection.is_open:
            self._idle.append(connection)
        return Answer(reply.status, reply.body, connection.etag)

    async def listen(self, path: str, until: bytes) -> bytes:
        """Server-sent events up to the one that begins so; OSError if they end before it."""
        connection = await self.connect()
        seen = bytearray()
        found = asyncio.get_running_loop().create_future()

        def piece(data: bytes) -> None:
            seen.extend(data)
            at = seen.find(until)
            whole = at >= 0 and (seen.find(b"\r\n\r\n", at) >= 0 or seen.find(b"\n\n", at) >= 0)
            if whole and not found.done():
                found.set_result(None)

        connection.on_piece = piece
        wanted = {"accept": "text/event-stream"}
        ended = connection.send(request("GET", path, self._key, b"", wanted))
        try:
            await asyncio.wait({found, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not found.done():
                raise ConnectionError(f"the events of {path} ended early: {ended}")
            return bytes(seen)
        finally:
            ended.cancel()
            connection.close()

    def _idle_connection(self) -> LoadConnection | None:
        while self._idle:
            if (connection := self._idle.pop()).is_open:
                return connection
        return None

    async def connect(self) -> LoadConnection:
        opened = await LoadConnection.open(self._host, self._port)
        assert isinstance(opened, LoadConnection)
        return opened

    async def open_beforehand(self, connections: int) -> None:
        """So that the first requests of a load do not wait for theirs."""
        self._idle += [await self.connect() for _ in range(connections)]

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
