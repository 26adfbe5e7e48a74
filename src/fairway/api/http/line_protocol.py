"""A connection of another server that became a line: frames in, one answer for each, any order.

It begins as a request that was let in as any of a server's is (`become_line`); from then on no HTTP
is read on it. The connection stays in the door's book. What comes is bounded: in bytes a frame, in
calls under way, in time without any. A line that breaks these is closed, and says nothing: whoever
sent knows what to do with a call that has no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from fairway.api.http.asgi import CONNECTION, Scope
from fairway.api.http.frames import Frame, FrameReader, frame_text
from fairway.core.errors import FairwayError
from fairway.runtime.telemetry import logger
from fairway.services.transient_errors import may_pass
from fairway.wire.problems import CODES

log = logger("line")

CALLS_MAX = 16  # under way on one line: whoever asks has no more, and sends others as requests
IDLE_SECONDS = 30.0  # far more than whoever asks keeps one for
UPGRADE = b"fairway-line"
SWITCHING = (
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: %b\r\n\r\n" % UPGRADE
)

Take: TypeAlias = Callable[[bytes], Awaitable[bytes]]


def become_line(scope: Scope, take: Take) -> bool:
    """Answer that frames follow; False when this connection cannot: the caller goes another way."""
    connection = scope.get(CONNECTION)
    if connection is None or connection.pipeline or not connection.reply(scope, SWITCHING):
        return False
    LineProtocol(connection, take).begin()
    return True


class LineProtocol(asyncio.Protocol):
    """One line, and the connection that it was."""

    def __init__(self, connection: Any, take: Take) -> None:
        self._connection = connection
        self._transport: Any = connection.transport
        self._loop: asyncio.AbstractEventLoop = connection.loop
        self._take = take
        self._reader = FrameReader()
        self._under_way = 0
        self._is_closing = False
        self._heard_at = self._loop.time()
        self._idle: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        connection = self._connection
        connection.rest_no_more()
        connection.connections.discard(connection)
        connection.connections.add(self)  # which uvicorn tells that the server stops
        self._transport.set_protocol(self)
        self._look()

    def shutdown(self) -> None:
        """The server stops: what is under way is answered first."""
        self._is_closing = True
        self._close_if_done()

    # -- asyncio's side ------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        try:
            for frame in self._reader.feed(data):
                self._hear(frame)
        except ValueError as error:
            log.warning("a line between servers is closed", error=str(error))
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        if self._idle is not None:
            self._idle.cancel()
        self._connection.connections.discard(self)
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    # -- calls ---------------------------------------------------------------------------------

    def _hear(self, frame: Frame) -> None:
        if self._under_way >= CALLS_MAX:
            raise ValueError("more calls at a time than a server has")
        self._under_way += 1
        task = self._loop.create_task(self._answer(frame))
        task.add_done_callback(self._connection.tasks.discard)
        self._connection.tasks.add(task)

    async def _answer(self, frame: Frame) -> None:
        status, answer = 200, b""
        try:
            answer = await self._take(frame.body)
        except FairwayError as error:
            status = CODES.get(error.code, (500, ""))[0]
        except Exception as error:
            status = 503 if may_pass(error) else 500
            log.warning("a call of another server failed", error=repr(error))
        finally:
            self._under_way -= 1
        if not self._transport.is_closing():
            self._transport.write_whole(frame_text(Frame(frame.number, status, answer)))
        self._close_if_done()

    def _close_if_done(self) -> None:
        if not self._under_way and (self._is_closing or self._connection.is_moving()):
            self._transport.finish()

    def _look(self) -> None:
        """Whoever asked may have vanished without a word."""
        left_seconds = self._heard_at + IDLE_SECONDS - self._loop.time()
        if left_seconds > 0:
            self._idle = self._loop.call_later(left_seconds, self._look)
        elif self._under_way:
            self._idle = self._loop.call_later(IDLE_SECONDS, self._look)
        else:
            self.shutdown()
