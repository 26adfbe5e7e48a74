"""uvicorn's HTTP protocol, with less to do for each request.

A reply leaves in one write: uvicorn hands its head and its body to the transport one after the
other, each a system call; here they are gathered until the reply is whole, or, when it is a
stream, until the event loop has gone round once. Replies of the hot paths come as one text and go
out as they are: uvicorn would look at each of their headers again. And one timer for idle
connections goes on through many requests, where uvicorn makes and cancels one for each. With a
reply per job all of that is a good part of its cost.
"""

from __future__ import annotations

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairway.api.http.left_upgrade import parser_behind
from fairway.api.http.transports import Corked

NO_HTTP = "Invalid HTTP request received."


class LeanProtocol(HttpToolsProtocol):
    # Slots, since uvicorn's own names fill what Python shares between instances: a few more of them
    # in the dictionary would make every look into it slower.
    __slots__ = ("_answering", "_finish", "_flush", "_idle_since", "_write_whole", "has_whole_body")

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.has_whole_body = True  # of the request under way: what comes next belongs to a head
        self._idle_since = 0.0
        self._answering: Any = None  # the request under way; uvicorn knows the last that came

    def connection_made(self, transport: Any) -> None:
        corked: Any = Corked(transport, self)
        self._flush, self._finish = corked.flush, corked.finish
        self._write_whole = corked.write_whole
        super().connection_made(corked)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        super().connection_lost(exc)
        answering = self._answering
        if answering is not None and not answering.response_complete:
            answering.disconnected = True  # uvicorn tells only the last one that came
            answering.message_event.set()
        # All of them have us, too: left to the collector, thousands would wait for it.
        self.cycle = self.scope = self._answering = None  # type: ignore[assignment]  # as at first
        self.pipeline.clear()

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response(NO_HTTP)
        except httptools.HttpParserUpgrade as wish:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            else:
                self._go_on_without(data[wish.args[0] :])

    def _go_on_without(self, rest: bytes) -> None:
        """What follows a head whose wish for another protocol is left aside; uvicorn drops it."""
        self.leave_upgrade()
        try:
            self.parser = parser_behind(self, self.scope["headers"])
        except httptools.HttpParserError:
            self.send_400_response(NO_HTTP)
            return
        LeanProtocol.data_received(self, rest)

    def leave_upgrade(self) -> None:
        """The request under way goes on without the protocol that it wished for."""

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def is_being_answered(self) -> bool:
        """A request is under way; else the next move is the client's."""
        return self.cycle is not None and not self.cycle.response_complete

    # -- the application's side --------------------------------------------------------------

    def reply(self, scope: Any, text: bytes) -> bool:
        """Send a whole answer, head and all, to the request of this scope.

        False when it must go the usual way: behind others, slowly, as the last, or to nobody.
        """
        cycle = self.cycle
        if (
            cycle is None
            or cycle.scope is not scope
            or cycle.response_started
            or cycle.disconnected
            or self.flow.write_paused
            or not cycle.keep_alive
        ):
            return False
        cycle.response_started = cycle.response_complete = True
        self._write_whole(text)
        cycle.message_event.set()
        self.on_response_complete()
        return True

    # -- idle connections --------------------------------------------------------------------

    def on_response_complete(self) -> None:
        self._flush()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self.rest()

    def rest(self) -> None:
        """Idle from now on."""
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_in(self.timeout_keep_alive)

    def rest_no_more(self) -> None:
        """From now on no HTTP is spoken on it."""
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def _look_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def _unset_keepalive_if_required(self) -> None:
        """Asked by uvicorn with every packet: the timer goes on, and looks for itself."""

    def is_busy(self) -> bool:
        """Whether what goes on has an end of its own, or is followed by a rest."""
        return self.is_being_answered()

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self.is_busy():
            return
        left_seconds = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left_seconds > 0:
            self._look_in(left_seconds)
        else:
            super().timeout_keep_alive_handler()
