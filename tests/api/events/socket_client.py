"""A WebSocket as a client has it: frames by hand, so that it can be rude."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Message,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

PATH = "/v1/events/socket"
PATIENCE_SECONDS = 30.0


class Closed(Exception):
    """The server has closed it; 1006: without a word."""

    def __init__(self, code: int, reason: str = "") -> None:
        self.code, self.reason = code, reason
        super().__init__(code, reason)


class Rejected(Exception):
    """It was answered as plain HTTP."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.problem = json.loads(body) if body else {}
        super().__init__(status, body)


class SocketClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self.connection = WSConnection(ConnectionType.CLIENT)
        self._words: list[str] = []
        self._partial = ""
        self._closed: Closed | None = None  # after what was said before
        self.subprotocol: str | None = None
        self.pongs = 0

    async def shake_hands(self, headers: dict[str, str], subprotocols: Sequence[str]) -> None:
        extra = [(name.encode(), value.encode()) for name, value in headers.items()]
        asked = Request(host="x", target=PATH, extra_headers=extra, subprotocols=list(subprotocols))
        self.writer.write(self.connection.send(asked))
        status, body = 0, b""
        while True:
            for event in await self._events():
                if isinstance(event, AcceptConnection):
                    self.subprotocol = event.subprotocol
                    return
                if isinstance(event, RejectConnection):
                    status = event.status_code
                if isinstance(event, RejectData):
                    body += bytes(event.data)
                    if event.body_finished:
                        raise Rejected(status, body)

    async def send(self, **message: Any) -> None:
        await self.send_text(json.dumps(message))

    async def send_text(self, text: str) -> None:
        self.writer.write(self.connection.send(Message(data=text)))
        await self.writer.drain()

    async def hear(self) -> dict[str, Any]:
        """The next message; Closed when there is none any more."""
        while not self._words:
            if self._closed is not None:
                raise self._closed
            for event in await self._events():
                self._take(event)
        found: dict[str, Any] = json.loads(self._words.pop(0))
        return found

    async def hear_events(self, count: int, name: str = "") -> list[dict[str, Any]]:
        """So many events, of one subscription or of all; what else is said is left out."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            said = await self.hear()
            assert "error" not in said, said
            if "event" in said and said["subscription"] == (name or said["subscription"]):
                found.append(said["event"])
        return found

    async def subscribe(self, name: str, **wanted: Any) -> int:
        """Answers where it begins."""
        await self.send(subscribe=name, **wanted)
        while True:
            said = await self.hear()
            assert "error" not in said, said
            if said.get("subscription") == name and "subscribed_at" in said:
                return int(said["subscribed_at"])

    def kill(self) -> None:
        """Without a word, as a machine that loses power."""
        self.writer.transport.abort()

    def _take(self, event: Any) -> None:
        if isinstance(event, TextMessage):
            self._partial += event.data
            if event.message_finished:
                self._words.append(self._partial)
                self._partial = ""
        elif isinstance(event, Ping):
            self.writer.write(self.connection.send(event.response()))
        elif isinstance(event, Pong):
            self.pongs += 1
        elif isinstance(event, CloseConnection):
            self._closed = Closed(event.code, event.reason or "")

    async def _events(self) -> list[Any]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                data = await self._reader.read(1 << 16)
            except ConnectionError:
                data = b""
        if not data:
            raise Closed(1006)
        self.connection.receive_data(data)
        return list(self.connection.events())


@asynccontextmanager
async def socket_to(
    port: int,
    key: str | None = None,
    *,
    subprotocols: Sequence[str] = (),
) -> AsyncIterator[SocketClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = SocketClient(reader, writer)
    try:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        await client.shake_hands(headers, subprotocols)
        yield client
    finally:
        writer.transport.abort()
