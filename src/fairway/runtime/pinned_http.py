"""Small POSTs to addresses that strangers chose: to exactly the number that was checked.

A name is resolved by the caller, once; here a connection goes to that number, and TLS and `Host`
speak of the name. No redirects, no proxies, no cookies; of the reply so many bytes are read, and
the caller's own time limit ends everything else. A connection may be used again for the same
target. What the receiver says beyond status and headers is thrown away.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from typing import Any, NamedTuple

import httptools

REPLY_BYTES_MAX = 64 << 10  # head and body
FINAL_STATUS_MIN = 200  # below, more is to come


class PinnedReply(NamedTuple):
    status: int
    headers: dict[str, str]  # by their names in small letters


class PinnedConnection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._transport: Any = None
        self._reply: asyncio.Future[PinnedReply] | None = None
        self._headers: dict[str, str] = {}
        self._status = 0  # once the head is whole
        self._received_bytes = 0
        self.is_open = False

    @classmethod
    async def open(cls, number: str, port: int, name: str | None) -> PinnedConnection:
        """`name`: whose certificate is asked for; None: without TLS."""
        loop = asyncio.get_running_loop()
        tls = None if name is None else tls_context()
        _, connection = await loop.create_connection(
            cls, number, port, ssl=tls, server_hostname=name
        )
        return connection

    def send(self, request: bytes) -> asyncio.Future[PinnedReply]:
        """A whole request; the future fails when the connection does."""
        self._headers, self._status, self._received_bytes = {}, 0, 0
        self._reply = asyncio.get_running_loop().create_future()
        if self.is_open:
            self._transport.write(request)
        else:
            self._fail("it was closed before anything was sent")
        return self._reply

    def close(self) -> None:
        """At once: what is not sent yet need not be."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio's side ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.is_open = True

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._status >= FINAL_STATUS_MIN:  # a body without a length ends like this
            self._answer()
        self._fail("the receiver closed it" if error is None else type(error).__name__)

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail("the answer is not HTTP")
            self.close()
            return
        if self._received_bytes > REPLY_BYTES_MAX:
            self._cut()

    def _cut(self) -> None:
        if self._status >= FINAL_STATUS_MIN:
            self._answer()
        self._fail(f"the head of the answer has over {REPLY_BYTES_MAX} bytes")
        self.close()

    def _answer(self) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(PinnedReply(self._status, self._headers))

    def _fail(self, why: str) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(ConnectionError(f"The connection broke: {why}."))

    # -- the parser's side -------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_message_complete(self) -> None:
        if self._status < FINAL_STATUS_MIN:
            self._headers, self._status = {}, 0
            return
        if not self._parser.should_keep_alive():
            self.is_open = False
        self._answer()


@cache
def tls_context() -> ssl.SSLContext:
    """Made once: it reads every certificate of the machine."""
    return ssl.create_default_context()
