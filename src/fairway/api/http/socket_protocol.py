"""A WebSocket on the wire: uvicorn's protocol, bounded as the HTTP connection was that became it.

That connection stays in the door's book for as long as the socket is open, and hears when nobody
reads: so a socket counts among its tenant's connections, and one whose client does not read is cut.
Nothing is kept that nobody asked for: neither messages sent ahead of being heard, nor answers to
pings of a client that reads nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto import events

from fairway.api.http.asgi import CONNECTION

MESSAGE_BYTES_MAX = 16 << 10
PING_SECONDS = 15.0
PONG_SECONDS = 20.0  # a client that does not answer for so long is gone
AHEAD_MAX = 64  # messages that came and were not heard yet
EARLY_BYTES_MAX = 64 << 10  # before anybody said that it may speak

#: What uvicorn's configuration says of sockets. Compressed ones are not spoken: a few bytes of a
#: stranger's would be megabytes here.
SOCKET_SETTINGS: dict[str, Any] = {
    "ws_max_size": MESSAGE_BYTES_MAX,
    "ws_ping_interval": PING_SECONDS,
    "ws_ping_timeout": PONG_SECONDS,
    "ws_per_message_deflate": False,
}


class SocketProtocol(WSProtocol):
    """One socket, and the connection that it was."""

    def __init__(self, connection: Any, **given: Any) -> None:
        given["app_state"] = {**given["app_state"], CONNECTION: connection}
        super().__init__(**given)
        self._connection: asyncio.Protocol = connection
        self._early_bytes = 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if not self.handshake_complete:
            self._early_bytes += len(data)
            if self._early_bytes > EARLY_BYTES_MAX:
                self.transport.abort()
                return
        super().data_received(data)

    def handle_message(self, event: events.TextMessage | events.BytesMessage) -> None:
        if self.queue.qsize() < AHEAD_MAX:
            super().handle_message(event)
        else:
            self.transport.abort()

    def handle_ping(self, event: events.Ping) -> None:
        if self.writable.is_set():  # else its answers would gather, and nobody reads them
            super().handle_ping(event)
