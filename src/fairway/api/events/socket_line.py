"""One WebSocket as the endpoint sees it: accepted or refused, heard, spoken to, closed.

Before it is accepted a refusal is an HTTP response, as anywhere; after that a message
`{"error": {…}}`, and a close whose code is 4000 and the status.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fairway.api.http.asgi import CONNECTION, Receive, Scope, Send, problem_reply
from fairway.core.errors import FairwayError
from fairway.wire import problems

SUBPROTOCOL = "fairway.events"
KEY_PREFIX = "bearer."  # of a subprotocol that is a key: browsers can send no other header
OF_A_PROBLEM = 4000  # and its status: codes for applications begin there
GOING_AWAY = 1012  # the server restarts: come back
GOODBYE_SECONDS = 1.0  # who does not even read that it was refused is cut


class SocketGone(Exception):
    """Nobody is there any more."""


class SocketLine:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._connection: Any = scope.get("state", {}).get(CONNECTION)
        if self._connection is not None:
            scope[CONNECTION] = self._connection  # who shows a key on it is known from then on
        self._offered: list[str] = scope.get("subprotocols") or []
        self._is_accepted = False

    @property
    def offered_key(self) -> str | None:
        """The key among the subprotocols, if there is one."""
        found = [one for one in self._offered if one.startswith(KEY_PREFIX)]
        return found[0].removeprefix(KEY_PREFIX) if found else None

    async def accept(self) -> None:
        """Said twice, the second time means nothing."""
        if self._is_accepted:
            return
        self._is_accepted = True
        chosen = SUBPROTOCOL if SUBPROTOCOL in self._offered else None
        await self._send({"type": "websocket.accept", "subprotocol": chosen})

    async def hear(self) -> bytes:
        """The next message; whoever speaks in bytes means the same."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise SocketGone
        text: str | None = message.get("text")
        said: bytes = message["bytes"] if text is None else text.encode()
        return said

    async def say(self, text: bytes) -> None:
        """Waits for as long as the client does not read; the door ends that (`protocol.py`)."""
        await self._send({"type": "websocket.send", "text": text.decode()})

    async def refuse(self, error: FairwayError) -> None:
        """The end of it, with the reason."""
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                if self._is_accepted:
                    problem = problems.problem_of(error)
                    await self.say(b'{"error":%s}' % problems.encode(problem))
                    await self.close(OF_A_PROBLEM + problem.status, problem.code)
                else:
                    await self._respond(error)
        except TimeoutError:
            self._connection.cut()

    async def close(self, code: int, reason: str) -> None:
        await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def _respond(self, error: FairwayError) -> None:
        status, body, headers = problem_reply(error)
        length = (b"content-length", str(len(body)).encode())
        start = {"status": status, "headers": [*headers, length, (b"connection", b"close")]}
        await self._send({"type": "websocket.http.response.start", **start})
        await self._send({"type": "websocket.http.response.body", "body": body})
