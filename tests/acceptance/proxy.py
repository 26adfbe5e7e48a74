"""A proxy between a worker and its server that loses messages, by a seeded plan.

It knows where an HTTP message ends, so it can do what a network does worst: deliver the request
and lose the reply, so that the sender cannot know whether it was heard.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from urllib.parse import urlsplit

Message = bytes


class Proxy:
    def __init__(self, target: str, seed: int) -> None:
        place = urlsplit(target)
        self._host, self._port = place.hostname or "", place.port or 0
        self._dice = random.Random(seed)
        self._server: asyncio.Server | None = None
        self.drop_reply = 0.0  # the part of replies that is lost
        self.drop_request = 0.0  # the part of requests that is lost
        self.fates: Counter[str] = Counter()
        self.answered: list[tuple[Message, Message]] = []  # requests, and what came back
        self.url = ""

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _message(reader)) is not None:
                reply = await self._fate(request)
                if reply is None:
                    break
                writer.write(reply)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()  # as a network does: nobody says goodbye

    async def _fate(self, request: Message) -> Message | None:
        if self._dice.random() < self.drop_request:
            self.fates["request lost"] += 1
            return None
        reply = await self._ask(request)
        if reply is not None:
            self.answered.append((request, reply))
        if self._dice.random() < self.drop_reply:
            self.fates["reply lost"] += 1
            return None
        self.fates["passed"] += 1
        return reply

    async def _ask(self, request: Message) -> Message | None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(request)
            return await _message(reader)
        finally:
            writer.transport.abort()


async def _message(reader: asyncio.StreamReader) -> Message | None:
    """One HTTP message with its body; None at the end of the stream."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return head + await reader.readexactly(length)
