"""Bodies that come piece by piece, from senders that may be slow but not idle.

Only the time that a sender keeps us waiting counts, so a slow disk is not held against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fairway.api.http.asgi import ClientGone, Receive
from fairway.core.errors import InvalidRequest
from fairway.core.object_storage.upload_quota import patience_seconds


class Paced:
    """A `receive` that gives up on a sender who does not keep up the least rate."""

    def __init__(self, receive: Receive, seconds_max: float) -> None:
        self._receive = receive
        self._seconds_max = seconds_max
        self._now = asyncio.get_running_loop().time
        self._waited_seconds = 0.0
        self._received_bytes = 0

    async def __call__(self) -> Receive:
        left = patience_seconds(self._received_bytes, self._seconds_max) - self._waited_seconds
        began = self._now()
        try:
            async with asyncio.timeout(left):
                message = await self._receive()
        except TimeoutError:
            raise InvalidRequest(
                f"The body came too slowly: {self._received_bytes} bytes, and then nothing for"
                " too long.",
                code="REQUEST_TIMEOUT",
            ) from None
        self._waited_seconds += self._now() - began
        self._received_bytes += len(message.get("body", b""))
        return message


async def body_pieces(receive: Receive) -> AsyncIterator[bytes]:
    """The body as it comes; ClientGone when its sender goes before the end."""
    is_more = True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        if body := message.get("body", b""):
            yield body
        is_more = message.get("more_body", False)
