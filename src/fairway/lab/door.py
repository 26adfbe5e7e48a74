"""The front door as the lab uses it: cheap HTTP connections, one request under way on each.

It adds to the house's small client what a measuring client needs: headers of the reply, HEAD, and
replies that never end (server-sent events). It opens a connection whenever none is free, so that
requests of an open loop never wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import httptools
import msgspec

from fairway.runtime.plain_http import HttpConnection, Reply

Headers = Mapping[str, str]
NO_HEADERS: Headers = {}
JSON: Headers = {"content-type": "application/json"}


class Answer(NamedTuple):
    status: int
    body: bytes
    etag: str = ""


class Wire(HttpConnection):
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


class Door:
    """One server, one key."""

    def __init__(self, url: str, key: str = "") -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self._head = f"host: {parts.netloc}\r\n" + (
            f"authorization: Bearer {key}\r\n" if key else ""
        )
        self._idle: list[Wire] = []

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Headers = NO_HEADERS
    ) -> Answer:
        """Raises OSError when the connection breaks."""
        wire = await self.wire()
        wire.etag, wire.is_head = "", method == "HEAD"
        try:
            reply = await wire.send(self.request(method, path, body, headers))
        except BaseException:
            wire.close()
            raise
        if wire.is_open:
            self._idle.append(wire)
        return Answer(reply.status, reply.body, wire.etag)

    async def send_json(self, method: str, path: str, document: object) -> Answer:
        return await self.ask(method, path, msgspec.json.encode(document), JSON)

    def request(
        self, method: str, path: str, body: bytes = b"", headers: Headers = NO_HEADERS
    ) -> bytes:
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        length = f"content-length: {len(body)}\r\n" if body else ""
        return f"{method} {path} HTTP/1.1\r\n{self._head}{more}{length}\r\n".encode() + body

    async def listen(self, path: str, until: bytes) -> bytes:
        """Server-sent events up to the one that begins so; OSError if they end before it."""
        wire = await Wire.open(self.host, self.port)
        assert isinstance(wire, Wire)
        seen = bytearray()
        found = asyncio.get_running_loop().create_future()

        def piece(data: bytes) -> None:
            seen.extend(data)
            at = seen.find(until)
            whole = at >= 0 and (seen.find(b"\r\n\r\n", at) >= 0 or seen.find(b"\n\n", at) >= 0)
            if whole and not found.done():
                found.set_result(None)

        wire.on_piece = piece
        ended = wire.send(self.request("GET", path, headers={"accept": "text/event-stream"}))
        try:
            await asyncio.wait({found, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not found.done():
                raise ConnectionError(f"the events of {path} ended early: {ended}")
            return bytes(seen)
        finally:
            ended.cancel()
            wire.close()

    async def wire(self) -> Wire:
        while self._idle:
            wire = self._idle.pop()
            if wire.is_open:
                return wire
        opened = await Wire.open(self.host, self.port)
        assert isinstance(opened, Wire)
        return opened

    def close(self) -> None:
        for wire in self._idle:
            wire.close()
        self._idle.clear()
