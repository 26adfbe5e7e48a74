"""All connections of a server process: how many there are, who owes something, who gives way.

It counts and closes; what comes on a connection is read elsewhere (`protocol.py`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, NamedTuple, Protocol

from fairway.api.http.siblings import Handed, Siblings
from fairway.core.backpressure.connections import AHEAD_MAX, ConnectionBook, ConnectionLimits
from fairway.core.errors import FairwayError
from fairway.core.ids import TenantId
from fairway.core.ownership.connection_moves import ProcessLoad
from fairway.runtime.loops import WorkInParts, common_rest
from fairway.runtime.stalls import ThreadBusy
from fairway.runtime.telemetry import Metrics, logger

SWEEP_SECONDS = 0.5
BUSY_SECONDS = 0.75  # a few sweeps: connections go by what is so just now
UNREAD_SECONDS = 30.0  # for a reply to get on by so many bytes, once it has to wait
UNREAD_STEP_BYTES = 16 << 10
CROWD_LINE_SECONDS = 60.0  # between log lines about addresses with too many connections

log = logger("door")


class GuardedConnection(Protocol):
    """One connection, as the gate sees it."""

    loop: asyncio.AbstractEventLoop
    transport: Any
    is_owing: bool
    is_ahead: bool

    def cut(self) -> None: ...
    def too_slow(self) -> None: ...
    def is_being_answered(self) -> bool: ...
    def answer(self, error: FairwayError) -> None: ...
    def proved(self, holder: TenantId) -> None: ...


class GateLimits(NamedTuple):
    connections: ConnectionLimits
    head_seconds: float  # for a whole head, and for the rest of a body that nobody reads
    unread_bytes: int  # of all replies that wait to be read
    socket_paths: frozenset[bytes] = frozenset()  # where a connection may become a WebSocket


class ConnectionGate:
    """All connections of one server: how many there are, and which of them owe us something."""

    def __init__(
        self, limits: GateLimits, metrics: Metrics, siblings: Siblings | None = None
    ) -> None:
        self.siblings = siblings  # other processes at our address, if there are any
        self._busy = ThreadBusy(BUSY_SECONDS)
        self._connections_max = max(1, limits.connections.total_max)
        self._head_seconds = limits.head_seconds
        self.socket_paths = limits.socket_paths
        self.is_moving = False  # what comes next on a connection is for another process
        self.book: ConnectionBook[GuardedConnection] = ConnectionBook(limits.connections)
        self._owing: dict[GuardedConnection, float] = {}  # until when; all have the same time
        self._silent_until = 0.0
        self._ahead: dict[GuardedConnection, None] = {}  # the first has been here longest
        self._unread: dict[GuardedConnection, tuple[float, int]] = {}  # until when; bytes
        self._unread_bytes, self._unread_bytes_max = 0, limits.unread_bytes
        self._refused = metrics.connections_refused
        self._handed = metrics.connections_handed
        metrics.connections.set_function(lambda: len(self.book))
        metrics.unread_bytes.set_function(lambda: self._unread_bytes)

    def move(self) -> None:
        """From now on each reply is the last on its connection, and says so."""
        self.is_moving = True

    def admit(self, connection: GuardedConnection, address: str) -> None:
        leaving = self.book.arrived(connection, address)
        if leaving is not None:
            self._refused.labels("too many").inc()
            self._say_crowded(address, connection.loop.time())
            leaving.cut()

    def admit_handed(self, connection: GuardedConnection, address: str, facts: Handed) -> None:
        """One that has spoken for a tenant elsewhere. Without room it is judged as it speaks."""
        has_room = self.book.has_room(address, facts.tenant)
        self.admit(connection, address)
        self._tell_siblings()  # at once: others look at it before they hand over the next
        if has_room:
            connection.proved(facts.tenant)

    def hand_over(
        self, connection: GuardedConnection, tenant: TenantId, number: int, moves: int
    ) -> None:
        """To this process of ours, if that takes it: else it stays as it is."""
        if self.siblings is None or self.is_moving:
            return
        facts = Handed(tenant, moves, self.siblings.number, is_back=False)
        if self.siblings.move(number, connection.transport, facts):
            self._handed.inc()

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

    def owes(self, connection: GuardedConnection, now: float) -> None:
        connection.is_owing = True
        self._owing.setdefault(connection, now + self._head_seconds)

    def paid(self, connection: GuardedConnection) -> None:
        connection.is_owing = False
        self._owing.pop(connection, None)

    def is_ahead(self, connection: GuardedConnection) -> None:
        """It sent requests before it heard an answer. Few do, and what they sent is not counted."""
        connection.is_ahead = True
        self._ahead[connection] = None
        if len(self._ahead) > AHEAD_MAX:
            oldest = next(iter(self._ahead))
            self.caught_up(oldest)
            self._refused.labels("ahead").inc()
            oldest.loop.call_soon(oldest.cut)  # it may be in the midst of the parser

    def is_too_far_ahead(self, connection: GuardedConnection) -> None:
        """It asks on and on, and has not heard an answer yet."""
        self._refused.labels("ahead").inc()
        connection.cut()

    def caught_up(self, connection: GuardedConnection) -> None:
        connection.is_ahead = False
        self._ahead.pop(connection, None)

    def is_full(self, connection: GuardedConnection) -> None:
        """Its reply waits to be read."""
        self.is_read(connection)
        until = asyncio.get_running_loop().time() + UNREAD_SECONDS
        waiting_bytes = connection.transport.get_write_buffer_size()
        self._unread[connection] = (until, waiting_bytes)
        self._unread_bytes += waiting_bytes
        while self._unread_bytes > self._unread_bytes_max and len(self._unread) > 1:
            self._cut(self._heaviest())

    def is_read(self, connection: GuardedConnection) -> None:
        _, waiting_bytes = self._unread.pop(connection, (0.0, 0))
        self._unread_bytes -= waiting_bytes

    def _heaviest(self) -> GuardedConnection:
        """Of who leaves most unread, the connection with most of it."""
        held: Counter[TenantId | None] = Counter()
        for connection, (_, waiting_bytes) in self._unread.items():
            held[self.book.holder_of(connection)] += waiting_bytes
        (most, _), *_ = held.most_common(1)
        of_most = (one for one in self._unread if self.book.holder_of(one) == most)
        return max(of_most, key=lambda one: self._unread[one][1])

    def _cut(self, connection: GuardedConnection) -> None:
        self.is_read(connection)
        self._refused.labels("unread").inc()
        connection.loop.call_soon(connection.cut)  # it may be in the midst of a write

    def gone(self, connection: GuardedConnection) -> None:
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
        self._busy.look()
        self._tell_siblings()
        return common_rest(SWEEP_SECONDS)

    def _tell_siblings(self) -> None:
        if self.siblings is not None:
            full = len(self.book) * 1000 // self._connections_max
            self.siblings.tell(ProcessLoad(full, self._busy.per_mille))

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

    def refuse(self, connection: GuardedConnection, error: FairwayError) -> None:
        """Answer what was no request, and close."""
        self._refused.labels(error.code).inc()
        if connection.is_being_answered():
            connection.cut()  # a second answer would be taken for a part of the first
        else:
            connection.answer(error)
