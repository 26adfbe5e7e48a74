"""HTTP on the wire, guarded: what a connection may send before anybody listens, and for how long.

A head has 64 KB, 128 headers and some seconds; more is answered 431 or 408. More bytes never reach
the parser, which would copy all of them again with every packet. A connection that owes the rest of
a request is closed when its time is up; one that is idle, after a while; when there are too many,
those that never spoke with a valid key give way first (`core/backpressure/connections.py`). Who is
refused while it still sends is listened to for a moment, or it would never hear why. A call that is
being answered, held open or streamed is never idle; but a reply that nobody reads ends with its
connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

from fairway.api.http.asgi import CLOSE, CONNECTION, problem_reply, reply_text
from fairway.api.http.lean_protocol import LeanProtocol
from fairway.api.http.socket_protocol import SocketProtocol
from fairway.core.backpressure.connections import (
    AHEAD_MAX,
    ConnectionBook,
    ConnectionLimits,
    address_of,
)
from fairway.core.errors import FairwayError, InvalidRequest
from fairway.core.ids import TenantId
from fairway.runtime.loops import WorkInParts
from fairway.runtime.telemetry import Metrics, logger

HEAD_BYTES_MAX = 64 << 10
HEADERS_MAX = 128  # each is three objects, however short: a head of empty ones took 1.4 MB
TARGET_BYTES_MAX = 8 << 10  # of the request line: kept in three forms, and taken apart
FRAMING_MAX = 16  # bytes that carry one byte of a body in chunks
PIPELINED_MAX = 16  # requests that one connection sends before it has heard an answer
STRANGER_PIPELINED_MAX = 2  # before it has shown a valid key
SWEEP_SECONDS = 0.5
UNREAD_SECONDS = 30.0  # for a reply to get on by so many bytes, once it has to wait
UNREAD_STEP_BYTES = 16 << 10
CROWD_LINE_SECONDS = 60.0  # between log lines about addresses with too many connections

log = logger("door")


class GateLimits(NamedTuple):
    connections: ConnectionLimits
    head_seconds: float  # for a whole head, and for the rest of a body that nobody reads
    unread_bytes: int  # of all replies that wait to be read
    socket_paths: frozenset[bytes] = frozenset()  # where a connection may become a WebSocket


class ConnectionGate:
    """All connections of one server: how many there are, and which of them owe us something."""

    def __init__(self, limits: GateLimits, metrics: Metrics) -> None:
        self._head_seconds = limits.head_seconds
        self.socket_paths = limits.socket_paths
        self.is_moving = False  # what comes next on a connection is for another process
        self.book: ConnectionBook[GuardedProtocol] = ConnectionBook(limits.connections)
        self._owing: dict[GuardedProtocol, float] = {}  # until when; all have the same time
        self._silent_until = 0.0
        self._ahead: dict[GuardedProtocol, None] = {}  # the first has been here longest
        self._unread: dict[GuardedProtocol, tuple[float, int]] = {}  # until when; bytes to be sent
        self._unread_bytes, self._unread_bytes_max = 0, limits.unread_bytes
        self._refused = metrics.connections_refused
        metrics.connections.set_function(lambda: len(self.book))
        metrics.unread_bytes.set_function(lambda: self._unread_bytes)

    def move(self) -> None:
        """From now on each reply is the last on its connection, and says so."""
        self.is_moving = True

    def admit(self, connection: GuardedProtocol, address: str) -> None:
        leaving = self.book.arrived(connection, address)
        if leaving is not None:
            self._refused.labels("too many").inc()
            self._say_crowded(address, connection.loop.time())
            leaving.cut()

    def _say_crowded(self, address: str, now: float) -> None:
        count = self.book.crowd_at(address)
        if count is None or now < self._silent_until:
            return
        self._silent_until = now + CROWD_LINE_SECONDS
        log.warning(
            "connections closed: one address has as many as it may",
            address=address,
            open=count,
            setting="FAIRWAY_CONNECTIONS_PER_ADDRESS",
        )

    def owes(self, connection: GuardedProtocol, now: float) -> None:
        connection.is_owing = True
        self._owing.setdefault(connection, now + self._head_seconds)

    def paid(self, connection: GuardedProtocol) -> None:
        connection.is_owing = False
        self._owing.pop(connection, None)

    def is_ahead(self, connection: GuardedProtocol) -> None:
        """It sent requests before it heard an answer. Few do, and what they sent is not counted."""
        connection.is_ahead = True
        self._ahead[connection] = None
        if len(self._ahead) > AHEAD_MAX:
            oldest = next(iter(self._ahead))
            self.caught_up(oldest)
            self._refused.labels("ahead").inc()
            oldest.loop.call_soon(oldest.cut)  # it may be in the midst of the parser

    def is_too_far_ahead(self, connection: GuardedProtocol) -> None:
        """It asks on and on, and has not heard an answer yet."""
        self._refused.labels("ahead").inc()
        connection.cut()

    def caught_up(self, connection: GuardedProtocol) -> None:
        connection.is_ahead = False
        self._ahead.pop(connection, None)

    def is_full(self, connection: GuardedProtocol) -> None:
        """Its reply waits to be read."""
        self.is_read(connection)
        until = asyncio.get_running_loop().time() + UNREAD_SECONDS
        waiting_bytes = connection.transport.get_write_buffer_size()
        self._unread[connection] = (until, waiting_bytes)
        self._unread_bytes += waiting_bytes
        while self._unread_bytes > self._unread_bytes_max and len(self._unread) > 1:
            self._cut(self._heaviest())

    def is_read(self, connection: GuardedProtocol) -> None:
        _, waiting_bytes = self._unread.pop(connection, (0.0, 0))
        self._unread_bytes -= waiting_bytes

    def _heaviest(self) -> GuardedProtocol:
        """Of who leaves most unread, the connection with most of it."""
        held: Counter[TenantId | None] = Counter()
        for connection, (_, waiting_bytes) in self._unread.items():
            held[self.book.holder_of(connection)] += waiting_bytes
        (most, _), *_ = held.most_common(1)
        of_most = (one for one in self._unread if self.book.holder_of(one) == most)
        return max(of_most, key=lambda one: self._unread[one][1])

    def _cut(self, connection: GuardedProtocol) -> None:
        self.is_read(connection)
        self._refused.labels("unread").inc()
        connection.loop.call_soon(connection.cut)  # it may be in the midst of a write

    def gone(self, connection: GuardedProtocol) -> None:
        self._owing.pop(connection, None)
        self._ahead.pop(connection, None)
        self.is_read(connection)
        self.book.left(connection)

    async def run_once(self, now_us: int) -> float:
        """Close those whose time is up; a loop calls this."""
        now, late = asyncio.get_running_loop().time(), []
        for connection, until in self._owing.items():
            if until > now:
                break
            late.append(connection)
        work = WorkInParts()
        for connection in late:
            if self._owing.pop(connection, None) is not None:  # it has not paid meanwhile
                self._refused.labels("too slow").inc()
                connection.too_slow()
                await work.let_others()
        self._cut_unread(now)
        return SWEEP_SECONDS

    def _cut_unread(self, now: float) -> None:
        """Nobody reads what these are told: it would stay in memory for as long as they like."""
        late = []
        for connection, (until, _) in self._unread.items():
            if until > now:
                break
            late.append(connection)
        for connection in late:
            if connection not in self._unread:
                continue  # cut for another's sake
            _, waiting_bytes = self._unread[connection]
            if connection.transport.get_write_buffer_size() > waiting_bytes - UNREAD_STEP_BYTES:
                self._cut(connection)
            else:
                self.is_full(connection)

    def refuse(self, connection: GuardedProtocol, error: FairwayError) -> None:
        """Answer what was no request, and close."""
        self._refused.labels(error.code).inc()
        if connection.is_being_answered():
            connection.cut()  # a second answer would be taken for a part of the first
        else:
            connection.answer(error)


class _Nowhere(list[tuple[bytes, bytes]]):
    """For trailers: nobody reads them, and they must not join the headers, nor gather."""

    def append(self, header: tuple[bytes, bytes]) -> None:
        pass


NOWHERE = _Nowhere()


class GuardedProtocol(LeanProtocol):
    """One connection."""

    __slots__ = (
        "_body_bytes",
        "_gate",
        "_head_bytes",
        "_is_socket",
        "_sent_bytes",
        "is_ahead",
        "is_known",
        "is_owing",
    )

    def __init__(self, gate: ConnectionGate, **given: Any) -> None:
        super().__init__(**given)
        self._gate = gate
        self._head_bytes = 0
        self._sent_bytes = self._body_bytes = 0  # after the head, and what of it is body
        self.headers, self.url = NOWHERE, b""  # until the first head
        self.is_owing = self.is_ahead = False
        self.is_known = False  # it has carried a request with a valid key
        self._is_socket = False  # the head that came last asks for a WebSocket, and may have it

    # -- asyncio's side ----------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._gate.owes(self, self.loop.time())
        self._gate.admit(self, address_of(self.client[0]) if self.client else "")

    def connection_lost(self, exc: Exception | None) -> None:
        self._gate.gone(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._gate.is_full(self)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._gate.is_read(self)
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self.has_whole_body:
            room = HEAD_BYTES_MAX - self._head_bytes
            if len(data) > room:
                self._receive_much(data, room)
                return
            self._head_bytes += len(data)
            super().data_received(data)
            if self.has_whole_body and self._head_bytes:
                self._has_half_a_head()
            return
        self._sent_bytes += len(data)
        super().data_received(data)
        if self._sent_bytes > HEAD_BYTES_MAX + FRAMING_MAX * self._body_bytes:
            self._gate.refuse(self, _HEAD_TOO_LARGE)  # trailers without end, or the like

    def _has_half_a_head(self) -> None:
        if self._is_too_much():
            self._refuse_head()
        elif not self.is_being_answered():
            self._gate.owes(self, self.loop.time())

    def _is_too_much(self) -> bool:
        return len(self.headers) > HEADERS_MAX or len(self.url) > TARGET_BYTES_MAX

    def _refuse_head(self) -> None:
        self.headers.clear()  # parser and protocol know each other: else it waits to be collected
        self._gate.refuse(self, _TOO_MANY_HEADERS)

    def _receive_much(self, data: bytes, room: int) -> None:
        """The parser sees what a head may have; the rest only when the head was in there."""
        self._head_bytes = HEAD_BYTES_MAX
        super().data_received(data[:room])
        if self.transport.is_closing():
            return  # it was no HTTP
        if self._head_bytes == 0:  # a head has come to its end
            self.data_received(data[room:])
        else:
            self._gate.refuse(self, _HEAD_TOO_LARGE)

    def is_busy(self) -> bool:
        return self.is_owing or self.is_being_answered()

    # -- the parser's side -------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        self.has_whole_body = False
        self._head_bytes = self._sent_bytes = self._body_bytes = 0
        if self.is_owing:
            self._gate.paid(self)
        if len(self.pipeline) >= (PIPELINED_MAX if self.is_known else STRANGER_PIPELINED_MAX):
            self._gate.is_too_far_ahead(self)
            raise ValueError("too many requests at once")  # stops the parser
        if self._is_too_much():
            self._refuse_head()
            raise ValueError("too many headers")
        self.scope[CONNECTION] = self  # type: ignore[literal-required]  # a key of our own
        self._is_socket = self.parser.should_upgrade() and self._asks_for_socket()
        super().on_headers_complete()
        if self._gate.is_moving and not self._is_socket:
            self.cycle.keep_alive = False  # which the reply says, too
        self.headers = NOWHERE
        if self.pipeline:
            self._gate.is_ahead(self)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.has_whole_body = True
        if self.is_owing:
            self._gate.paid(self)
        if self._is_socket:
            return
        super().on_message_complete()
        if self.cycle.response_complete:  # the rest of a body came after its answer: idle again
            self.rest()

    def on_response_complete(self) -> None:
        if self.is_ahead and not self.pipeline:
            self._gate.caught_up(self)
        super().on_response_complete()
        if not self.has_whole_body:  # a body that nobody reads any more must come to its end
            self._gate.owes(self, self.loop.time())

    # -- WebSockets --------------------------------------------------------------------------

    def _asks_for_socket(self) -> bool:
        """Elsewhere the wish for another protocol is left aside, as HTTP allows."""
        is_one = self.url.partition(b"?")[0] in self._gate.socket_paths
        return is_one and self.parser.get_method() == b"GET" and self._get_upgrade() == b"websocket"

    def _should_upgrade(self) -> bool:
        return self._is_socket

    def handle_websocket_upgrade(self) -> None:
        if self.is_being_answered():
            self.cut()  # the answer under way would end in the midst of frames
            return
        self.rest_no_more()
        self.ws_protocol_class = partial(SocketProtocol, self)  # type: ignore[assignment]  # it is called
        super().handle_websocket_upgrade()
        self.ws_protocol_class = None  # which has us: else we would wait to be collected

    # -- the door's side ---------------------------------------------------------------------

    def proved(self, holder: TenantId) -> None:
        """A request on it had a valid key, of this tenant or of STAFF."""
        self.is_known = True
        if self._gate.book.proved(self, holder):
            return
        if self._is_socket:
            self.loop.call_soon(self.cut)  # nothing follows that it could be closed after
        else:
            self.cycle.keep_alive = False  # answered, and closed

    def is_moving(self) -> bool:
        """What is said now is to be the last on this connection."""
        return self._gate.is_moving

    def cut(self) -> None:
        self.transport.abort()

    def too_slow(self) -> None:
        if self._head_bytes and not self.transport.is_closing():
            self.answer(_HEAD_TOO_SLOW)
        else:
            self.cut()

    def answer(self, error: FairwayError) -> None:
        status, body, headers = problem_reply(error)
        self.transport.write(reply_text(status, body, dict([*headers, CLOSE]).items()))
        self._finish()  # it broke the rules: it may not hear why

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            self._gate.refuse(self, InvalidRequest(msg, code="INVALID_HTTP"))


_HEAD_TOO_LARGE = InvalidRequest(
    f"Request line and headers have at most {HEAD_BYTES_MAX} bytes.", code="HEAD_TOO_LARGE"
)
_TOO_MANY_HEADERS = InvalidRequest(
    f"A request has at most {HEADERS_MAX} headers, and {TARGET_BYTES_MAX} bytes in its address.",
    code="HEAD_TOO_LARGE",
)
_HEAD_TOO_SLOW = InvalidRequest(
    "Request line and headers took too long to arrive.", code="REQUEST_TIMEOUT"
)
