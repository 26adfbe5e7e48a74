"""HTTP/1.1 to one server for what is asked very often, where a general client costs too much.

It keeps connections alive and has one request under way on each. It knows no redirects and no
proxies: who must go through one uses `transport.py`, as everything that is asked seldom does. It
lives on one event loop.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from fairway.sdk.http.addresses import OWNER_HEADER
from fairway.sdk.http.http_reply import HttpReply, NotHttp, ReplyParser
from fairway.sdk.http.transport import (
    CONNECT_SECONDS,
    KEEP_ALIVE_SECONDS,
    NotNow,
    Question,
    raise_for,
)
from fairway.sdk.http.unreachable import Unreachable

LEFT_SECONDS_MIN = 0.1


class Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request under way."""

    def __init__(self) -> None:
        self._parser = ReplyParser()
        self._transport: Any = None
        self._reply: asyncio.Future[HttpReply] | None = None
        self.is_open = False
        self.idle_since = 0.0

    def send(self, request: bytes) -> asyncio.Future[HttpReply]:
        """The future fails when the connection does."""
        self._parser = ReplyParser()
        self._reply = asyncio.get_running_loop().create_future()
        if self.is_open:
            self._transport.write(request)
        else:
            self._fail("it was closed before the request was sent")
        return self._reply

    def rest(self) -> None:
        """Its reply was read: it waits for the next request."""
        self.idle_since = time.monotonic()

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    # -- asyncio's side ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        try:
            self._tell(self._parser.feed(data))
        except NotHttp as error:
            self._fail(f"the answer is not HTTP: {error}")
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._tell(self._parser.finish())
        self._fail(repr(error) if error else "the server closed it")

    def _tell(self, reply: HttpReply | None) -> None:
        if reply is not None and self._reply is not None and not self._reply.done():
            self.is_open = self.is_open and reply.keeps_open
            self._reply.set_result(reply)

    def _fail(self, why: str) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(ConnectionError(f"the connection broke: {why}"))


class LeanHttp:
    """The way to one server; connections are opened when needed and kept for the next question."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        named: str | None = None,
        on_owner: Callable[[str | None], None] = lambda url: None,
    ) -> None:
        """`named` is what people are told gave no answer, where it is one of several."""
        self._on_owner = on_owner  # who owns the caller's jobs, if a reply says so
        parts = urlsplit(url)
        self._named = named or url
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = httpx2.create_ssl_context()
        self._prefix = parts.path.rstrip("/")
        self._headers = headers
        self._head = _lines({"Host": parts.netloc.rpartition("@")[2], **headers})
        self._idle: list[Connection] = []

    async def attempt(self, question: Question, left_seconds: float) -> bytes:
        """One try: the body of a good answer; NotNow when another may bring one."""
        left_seconds = max(left_seconds, LEFT_SECONDS_MIN)
        connection = self._kept()
        try:
            async with asyncio.timeout(left_seconds):
                connection = connection or await self._opened(left_seconds)
                reply = await self._ask(connection, question)
        except (OSError, TimeoutError) as error:
            is_sent = connection is not None
            raise NotNow(
                _unreachable(self._named, error), is_elsewhere=True, is_sent=is_sent
            ) from error
        if reply.is_error:
            raise_for(reply, question, self._headers)
        self._on_owner(reply.headers.get(OWNER_HEADER))
        return reply.content

    async def _ask(self, connection: Connection, question: Question) -> HttpReply:
        try:
            reply = await connection.send(self._request(question))
        except BaseException:
            connection.close()  # half a conversation cannot be used again
            raise
        if connection.is_open:
            connection.rest()
            self._idle.append(connection)
        else:
            connection.close()
        return reply

    def _request(self, question: Question) -> bytes:
        content = question.content or b""
        own = {**question.headers, "Content-Length": str(len(content))}
        first = f"{question.method} {self._prefix}{question.path} HTTP/1.1\r\n"
        return f"{first}{self._head}{_lines(own)}\r\n".encode() + content

    def _kept(self) -> Connection | None:
        fresh_since = time.monotonic() - KEEP_ALIVE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since > fresh_since:
                return connection
            connection.close()
        return None

    async def _opened(self, left_seconds: float) -> Connection:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(min(CONNECT_SECONDS, left_seconds)):
            _, connection = await loop.create_connection(
                Connection, self._host, self._port, ssl=self._tls
            )
        return connection

    def close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {_one_line(value)}\r\n" for name, value in headers.items())


def _one_line(value: str) -> str:
    """The name of an app stands in one of them: no line end in it may begin another header."""
    return value if value.isprintable() else "".join(filter(str.isprintable, value))


def _unreachable(url: str, error: BaseException) -> Unreachable:
    cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Unreachable(f"{url} gave no answer ({cause}); is the server running?")
