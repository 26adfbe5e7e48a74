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

from functools import partial
from typing import Any

from fairway.api.http.asgi import CLOSE, CONNECTION, problem_reply, reply_text
from fairway.api.http.gate import ConnectionGate
from fairway.api.http.head_limits import (
    HEAD_BYTES_MAX,
    HEAD_TOO_LARGE,
    HEAD_TOO_SLOW,
    HEADERS_MAX,
    TARGET_BYTES_MAX,
    TOO_MANY_HEADERS,
)
from fairway.api.http.lean_protocol import LeanProtocol
from fairway.api.http.siblings import Handed
from fairway.api.http.socket_protocol import SocketProtocol
from fairway.core.backpressure.connections import address_of
from fairway.core.errors import FairwayError, InvalidRequest
from fairway.core.ids import TenantId
from fairway.core.ownership.connection_moves import ConnectionMoves

FRAMING_MAX = 16  # bytes that carry one byte of a body in chunks
PIPELINED_MAX = 16  # requests that one connection sends before it has heard an answer
STRANGER_PIPELINED_MAX = 2  # before it has shown a valid key


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
        "_goes_to",
        "_handed",
        "_head_bytes",
        "_is_socket",
        "_is_upgrade",
        "_moves",
        "_sent_bytes",
        "is_ahead",
        "is_known",
        "is_owing",
    )

    def __init__(self, gate: ConnectionGate, handed: Handed | None = None, **given: Any) -> None:
        super().__init__(**given)
        self._gate = gate
        self._handed = handed  # another process had it before
        self._moves: ConnectionMoves | None = None  # until a request of it was passed on
        self._goes_to = 0  # the process that is to have it once it is between two requests
        self._head_bytes = 0
        self._sent_bytes = self._body_bytes = 0  # after the head, and what of it is body
        self.headers, self.url = NOWHERE, b""  # until the first head
        self.is_owing = self.is_ahead = False
        self.is_known = False  # it has carried a request with a valid key
        self._is_upgrade = False  # the head that came last asks for another protocol
        self._is_socket = False  # a WebSocket, which it may have

    # -- asyncio's side ----------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        address = address_of(self.client[0]) if self.client else ""
        if self._handed is None:
            self._gate.owes(self, self.loop.time())
            self._gate.admit(self, address)
        else:
            self._moves = ConnectionMoves(self._handed.moves, self.loop.time())
            self.rest()
            self._gate.admit_handed(self, address, self._handed)

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
            self._gate.refuse(self, HEAD_TOO_LARGE)  # trailers without end, or the like

    def _has_half_a_head(self) -> None:
        if self._is_too_much():
            self._refuse_head()
        elif not self.is_being_answered():
            self._gate.owes(self, self.loop.time())

    def _is_too_much(self) -> bool:
        return len(self.headers) > HEADERS_MAX or len(self.url) > TARGET_BYTES_MAX

    def _refuse_head(self) -> None:
        self.headers.clear()  # parser and protocol know each other: else it waits to be collected
        self._gate.refuse(self, TOO_MANY_HEADERS)

    def _receive_much(self, data: bytes, room: int) -> None:
        """The parser sees what a head may have; the rest only when the head was in there."""
        self._head_bytes = HEAD_BYTES_MAX
        super().data_received(data[:room])
        if self.transport.is_closing():
            return  # it was no HTTP
        if self._head_bytes == 0:  # a head has come to its end
            self.data_received(data[room:])
        else:
            self._gate.refuse(self, HEAD_TOO_LARGE)

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
        self._is_upgrade = self.parser.should_upgrade()
        self._is_socket = self._is_upgrade and self._asks_for_socket()
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
        if self._is_upgrade and not self._is_socket:
            return  # says the parser after such a head, whatever body comes
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
        if self._goes_to:
            self.loop.call_soon(self._go)

    # -- WebSockets --------------------------------------------------------------------------

    def _asks_for_socket(self) -> bool:
        """Elsewhere the wish for another protocol is left aside, as HTTP allows."""
        is_one = self.url.partition(b"?")[0] in self._gate.socket_paths
        return is_one and self.parser.get_method() == b"GET" and self._get_upgrade() == b"websocket"

    def _should_upgrade(self) -> bool:
        return self._is_socket

    def leave_upgrade(self) -> None:
        self._is_upgrade = False

    def handle_websocket_upgrade(self) -> None:
        if self.is_being_answered():
            self.cut()  # the answer under way would end in the midst of frames
            return
        self.rest_no_more()
        self.ws_protocol_class = partial(SocketProtocol, self)  # type: ignore[assignment]  # it is called
        super().handle_websocket_upgrade()
        self.ws_protocol_class = None  # which has us: else we would wait to be collected

    # -- other processes -----------------------------------------------------------------------

    def passed_on(self, tenant: TenantId, number: int, *, owns_nothing: bool) -> None:
        """The request under way was answered by this process of ours, which owns its tenant;
        `owns_nothing` is said of the one that passed it on."""
        now = self.loop.time()
        if self._moves is None:
            self._moves = ConnectionMoves(0, now)
        self._goes_to = (
            number if self._moves.may_go(tenant, number, now, owns_nothing=owns_nothing) else 0
        )

    def is_between_requests(self) -> bool:
        """All that was read is answered: what has come since is in the socket."""
        if self.cycle is None or self.is_being_answered() or self.pipeline:
            return False
        return self.headers is NOWHERE and self.has_whole_body

    def _go(self) -> None:
        number, self._goes_to = self._goes_to, 0
        tenant, moves = self._gate.book.holder_of(self), self._moves
        if number and tenant is not None and moves is not None and self.is_between_requests():
            self._gate.hand_over(self, tenant, number, moves.moves + 1)

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
            self.answer(HEAD_TOO_SLOW)
        else:
            self.cut()

    def answer(self, error: FairwayError) -> None:
        status, body, headers = problem_reply(error)
        self.transport.write(reply_text(status, body, dict([*headers, CLOSE]).items()))
        self._finish()  # it broke the rules: it may not hear why

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            self._gate.refuse(self, InvalidRequest(msg, code="INVALID_HTTP"))
