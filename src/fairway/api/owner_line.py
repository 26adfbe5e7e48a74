"""A line to another server: one connection on which many small calls go out, each as a frame.

A call costs both ends a fraction of a request of its own. It begins as a request with the cluster's
secret, at the address that all other calls go to; a server, or a proxy before it, that does not
answer it with 101 is spoken to by requests (`NoLine`). What is known of a call that was not
answered is what is known of a request: nothing. Nothing is sent twice here.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from fairway.api.http.frames import ANSWER_BYTES_MAX, Frame, FrameReader, frame_text
from fairway.api.http.line_protocol import CALLS_MAX, UPGRADE
from fairway.runtime.plain_http import Reply, head_lines
from fairway.runtime.telemetry import logger

LINE_PATH = "/internal/line"
HEAD_BYTES_MAX = 16 << 10  # of the answer that the line begins with
IDLE_SECONDS_MAX = 10.0  # a peer that vanished meanwhile would cost a call its whole time
NO_LINE_SECONDS = 60.0  # until one is tried again where there was none
LINES_MAX = 256  # far more than a cluster has servers
SWITCHED = b"HTTP/1.1 101 "

log = logger("line")


class NoLine(Exception):
    """Whoever answers there speaks HTTP only; nothing was asked of it."""


async def open_line(url: str, lines: str, seconds_max: float) -> OwnerConnection:
    """`lines` prove who asks. OSError or TimeoutError: it is not reached, and nothing was asked."""
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    said = head_lines({"host": parts.netloc, "connection": "upgrade", "upgrade": UPGRADE.decode()})
    path = parts.path.rstrip("/") + LINE_PATH
    head = f"POST {path} HTTP/1.1\r\n{said}{lines}content-length: 0\r\n\r\n".encode("latin-1")
    async with asyncio.timeout(seconds_max):
        _, line = await asyncio.get_running_loop().create_connection(
            OwnerConnection,
            parts.hostname or "127.0.0.1",
            parts.port or (443 if is_tls else 80),
            ssl=_tls() if is_tls else None,
        )
        try:
            await line.begin(head)
        except BaseException:
            line.close()
            raise
    return line


@cache
def _tls() -> ssl.SSLContext:
    """Once: it reads all certificates of the machine."""
    return ssl.create_default_context()


class OwnerConnection(asyncio.Protocol):
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._switched: asyncio.Future[None] | None = None
        self._head = b""
        self._reader = FrameReader(ANSWER_BYTES_MAX)
        self._number = 0
        self._calls: dict[int, asyncio.Future[Reply]] = {}
        self._used_at = self._loop.time()
        self._is_open = False

    @property
    def is_fresh(self) -> bool:
        """Whether a call may go out on it."""
        used_lately = self._calls or self._loop.time() - self._used_at < IDLE_SECONDS_MAX
        return self._is_open and bool(used_lately)

    @property
    def has_room(self) -> bool:
        """The owner ends a line that has more calls: one goes out as a request then. So it does on
        one that was ended since it was opened, as by a server that stops."""
        return self._is_open and len(self._calls) < CALLS_MAX

    async def begin(self, head: bytes) -> None:
        self._switched = self._loop.create_future()
        self._transport.write(head)
        await self._switched

    def send(self, body: bytes) -> tuple[int, asyncio.Future[Reply]]:
        """Whoever waits no more for the answer says so by `give_up`."""
        told: asyncio.Future[Reply] = self._loop.create_future()
        self._number = number = self._number % 0xFFFF_FFFF + 1
        self._calls[number] = told
        self._used_at = self._loop.time()
        self._transport.write(frame_text(Frame(number, 0, body)))
        return number, told

    def give_up(self, number: int) -> None:
        """No answer in time: the next call opens another line; what is under way here goes on."""
        if self._calls.pop(number, None) is not None:
            self.leave()

    def leave(self) -> None:
        """No call more; what is under way is still heard."""
        self._is_open = False
        self._close_if_done()

    def close(self) -> None:
        self._is_open = False
        if self._transport is not None:
            self._transport.close()

    def _close_if_done(self) -> None:
        if not self._is_open and not self._calls:
            self.close()

    # -- asyncio's side ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._is_open = False
        if self._switched is not None and not self._switched.done():
            self._switched.set_exception(NoLine(repr(error)))
        calls, self._calls = self._calls, {}
        for told in calls.values():
            if not told.done():
                told.set_exception(ConnectionError(f"The line broke: {error!r}."))

    def data_received(self, data: bytes) -> None:
        if not self._is_open and self._switched is not None and not self._switched.done():
            data = self._read_head(data)
        try:
            for frame in self._reader.feed(data) if data else ():
                self._hear(frame)
        except ValueError:
            self._transport.abort()

    def _read_head(self, data: bytes) -> bytes:
        """What follows the head, if the line begins with it."""
        assert self._switched is not None
        self._head += data
        head, ending, rest = self._head.partition(b"\r\n\r\n")
        if not ending and len(self._head) <= HEAD_BYTES_MAX:
            return b""
        if not ending or not head.startswith(SWITCHED):
            self._switched.set_exception(NoLine(head[:80].decode("latin-1")))
            return b""
        self._is_open, self._head = True, b""
        self._switched.set_result(None)
        return rest

    def _hear(self, frame: Frame) -> None:
        told = self._calls.pop(frame.number, None)
        if told is not None and not told.done():
            told.set_result(Reply(frame.status, frame.body))
        self._close_if_done()


class Lines:
    """Those to all servers that calls go to: one each, opened when it is needed."""

    def __init__(self) -> None:
        self._open: dict[str, OwnerConnection] = {}
        self._opening: set[str] = set()
        self._none_until: dict[str, float] = {}  # where requests are the way

    async def to(self, url: str, lines: str, seconds_max: float) -> OwnerConnection | None:
        """None: a request is the way; raises as `open_line`."""
        now = asyncio.get_running_loop().time()
        if url in self._opening or now < self._none_until.get(url, 0.0):
            return None
        self._opening.add(url)
        try:
            line = await open_line(url, lines, seconds_max)
        except NoLine as error:
            log.info("no line to a server: requests are the way", url=url, why=str(error))
            self._forget(url)
            self._none_until[url] = now + NO_LINE_SECONDS
            return None
        finally:
            self._opening.discard(url)
        self._forget(url)
        if len(self._open) >= LINES_MAX:
            self._forget(next(iter(self._open)))
        self._open[url] = line
        return line

    def ready(self, url: str) -> OwnerConnection | None:
        """One that a call may go out on at once."""
        line = self._open.get(url)
        return line if line is not None and line.is_fresh else None

    def close(self) -> None:
        for line in self._open.values():
            line.close()
        self._open.clear()

    def _forget(self, url: str) -> None:
        if len(self._none_until) >= LINES_MAX:
            self._none_until.clear()
        if (line := self._open.pop(url, None)) is not None:
            line.leave()
