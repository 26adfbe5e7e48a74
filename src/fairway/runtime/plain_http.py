"""A small HTTP/1.1 client for one server and short JSON calls, where a general one costs too much.

It keeps connections alive, has one request under way on each, and gives up loudly: no redirects,
no proxies, no retries, no HEAD. The hot side of a worker uses it, servers among themselves, and the
bench's load (decision 0007). Everything else uses a general client.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import httptools

LARGE_BYTES = 64 << 10  # a body that is worth the trouble of not copying it
IDLE_SECONDS_MAX = 10.0  # a peer that vanished meanwhile would cost a call its whole time

Body: TypeAlias = bytes | list[bytes | memoryview]  # whole, or in parts


class Reply(NamedTuple):
    status: int
    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()


class HttpConnection(asyncio.Protocol):
    """One keep-alive connection with at most one request under way."""

    def __init__(self, reply_bytes_max: int | None = None) -> None:
        self._reply_bytes_max = reply_bytes_max  # None: the server is trusted with that
        self._body_bytes = 0
        self._parser = httptools.HttpResponseParser(self)
        self._transport: Any = None
        self._reply: asyncio.Future[Reply] | None = None
        self._body: list[bytes] = []
        self._headers: list[tuple[bytes, bytes]] = []
        self.is_open = False

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        reply_bytes_max: int | None = None,
    ) -> HttpConnection:
        loop = asyncio.get_running_loop()
        make = cls if reply_bytes_max is None else partial(cls, reply_bytes_max)
        _, connection = await loop.create_connection(make, host, port, ssl=tls)
        return connection

    def send(self, *request: bytes | memoryview) -> asyncio.Future[Reply]:
        """Send the parts of a whole request; the future fails when the connection does."""
        self._body, self._headers, self._body_bytes = [], [], 0
        self._reply = asyncio.get_running_loop().create_future()
        if self.is_open:
            self._transport.writelines(request)
        else:
            self._fail("it was closed before the request was sent")
        return self._reply

    @property
    def is_sent(self) -> bool:
        """Nothing of the request still waits to go out."""
        return not self._transport.get_write_buffer_size()

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    # -- asyncio's side ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.is_open = True

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._fail(repr(error) if error else "the server closed it")

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the answer is not HTTP: {error}")
            self.close()

    def _fail(self, why: str) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(ConnectionError(f"The connection broke: {why}."))

    # -- the parser's side -------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._reply_bytes_max is not None and self._body_bytes > self._reply_bytes_max:
            self._body = []
            self._fail(f"the answer is larger than {self._reply_bytes_max:,} bytes")
            self.close()
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if not self._parser.should_keep_alive():
            self.is_open = False
        self._parser = httptools.HttpResponseParser(self)
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(Reply(status, b"".join(self._body), self._headers))


def head_lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


class HttpClient:
    """Calls to one server. Connections are opened when needed and kept for the next call."""

    def __init__(
        self, url: str, headers: dict[str, str], reply_bytes_max: int | None = None
    ) -> None:
        parts = urlsplit(url)
        self._reply_bytes_max = reply_bytes_max
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._prefix = parts.path.rstrip("/")
        self._head = head_lines({"host": parts.netloc, **headers})
        self._idle: list[tuple[float, HttpConnection]] = []  # since when, and which
        self._is_closed = False

    async def post(self, path: str, body: Body, timeout_seconds: float) -> Reply:
        return await self.call("POST", path, body, timeout_seconds)

    async def call(
        self, method: str, path: str, body: Body, timeout_seconds: float, more_lines: str = ""
    ) -> Reply:
        """Raises OSError or TimeoutError; then nothing is known of what the server did.

        `more_lines` are of `head_lines`. Neither they nor the path are looked at.
        """
        parts = [body] if isinstance(body, bytes) else body
        size_bytes = sum(map(len, parts))
        lines = f"{self._head}{more_lines}content-length: {size_bytes}\r\n"
        head = f"{method} {self._prefix}{path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")
        async with asyncio.timeout(timeout_seconds):
            connection = await self._connection()
            try:
                is_large = size_bytes > LARGE_BYTES
                text = (head, *parts) if is_large else (b"".join((head, *parts)),)
                reply = await connection.send(*text)
            except BaseException:
                connection.close()  # half a conversation cannot be used again
                raise
        if connection.is_open and connection.is_sent and not self._is_closed:
            self._idle.append((asyncio.get_running_loop().time(), connection))
        else:  # answered before all of it was sent: the next call would wait behind the rest
            connection.close()
        return reply

    async def _connection(self) -> HttpConnection:
        fresh = asyncio.get_running_loop().time() - IDLE_SECONDS_MAX
        while self._idle:
            since, connection = self._idle.pop()
            if connection.is_open and since > fresh:
                return connection
            connection.close()
        return await HttpConnection.open(self._host, self._port, self._tls, self._reply_bytes_max)

    def close(self) -> None:
        self._is_closed = True
        for _, connection in self._idle:
            connection.close()
        self._idle.clear()
