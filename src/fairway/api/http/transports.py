"""Transports around a connection's own: one write a reply, and a moment's patience at its end."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

LINGER_SECONDS, LINGER_BYTES = 2.0, 32 << 20  # for who still sends to hear why it was refused


class Corked:
    """A transport that gathers what is written, until `flush` or the event loop's next turn."""

    def __init__(self, transport: Any, protocol: Any) -> None:
        self._transport = transport
        self._protocol = weakref.ref(protocol)  # which has us: a closed connection goes at once
        self._loop = protocol.loop
        self._parts: list[bytes] = []
        self._is_lingering = False

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def write_whole(self, data: bytes) -> None:
        """All that is to be said for now: at once, after what was gathered before."""
        if self._parts:
            self._parts.append(data)
            self.flush()
        elif not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        self.flush()
        protocol = self._protocol()
        is_heard = protocol is None or protocol.has_whole_body or not self.can_write_eof()
        if is_heard or self.is_closing():
            self.finish()
        else:  # closed with bytes unread, it would take the answer with it
            self._is_lingering = True
            Lingering(self._transport, protocol).begin()

    def finish(self) -> None:
        """Close without listening any further."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._is_lingering or self._transport.is_closing()

    def flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            if not self._transport.is_closing():
                self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Lingering(asyncio.Protocol):
    """A connection that has its answer and sends on: what comes is thrown away, for a while."""

    def __init__(self, transport: Any, protocol: Any) -> None:
        self._transport = transport
        self._protocol = protocol
        self._left_bytes = LINGER_BYTES
        self._ending = protocol.loop.call_later(LINGER_SECONDS, transport.abort)

    def begin(self) -> None:
        self._protocol.flow.resume_reading()
        self._transport.set_protocol(self)
        self._transport.write_eof()

    def data_received(self, data: bytes) -> None:
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ending.cancel()
        self._protocol.connection_lost(exc)
