"""A request that wishes for another protocol and does not get it: read on as plain HTTP.

Java's client wishes for HTTP/2 with every first request of a connection, whatever it carries. The
parser takes such a wish for granted: it ends the request with its head, so that its body would be
lost, or be taken for another request. Therefore another parser goes on behind the head.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from httptools import HttpRequestParser

FRAMING = frozenset({b"content-length", b"transfer-encoding"})


def parser_behind(connection: Any, headers: Iterable[tuple[bytes, bytes]]) -> HttpRequestParser:
    """What it is fed next is the body that these headers announce, and further requests."""
    parser = HttpRequestParser(_BehindHead(connection))
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
    lines = (b"%b: %b\r\n" % header for header in headers if header[0] in FRAMING)
    parser.feed_data(b"POST / HTTP/1.1\r\n" + b"".join(lines) + b"\r\n")
    return parser


class _BehindHead:
    """A connection as its new parser sees it: it has heard of the first head already."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._is_behind = False
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete

    def on_message_begin(self) -> None:
        if self._is_behind:
            self._connection.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if self._is_behind:
            self._connection.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_behind:
            self._connection.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._is_behind:
            self._connection.on_headers_complete()
        self._is_behind = True
