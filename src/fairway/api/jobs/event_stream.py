"""A stream of server-sent events.

It ends with its key, and with the session by whose cookie it was asked for: who comes back is
refused.

A tenant may hold hundreds of streams, so one costs two tasks and leaves nothing to the collector;
a library's took five, and its remains held up everybody's requests.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext

from starlette.responses import Response

from fairway.api.auth import SESSION, CookieSession
from fairway.api.http.asgi import Receive, Scope, Send
from fairway.core.errors import Forbidden
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal

RETRY_MS = 2000
MEDIA = "text/event-stream"
HEADERS = [
    (b"content-type", f"{MEDIA}; charset=utf-8".encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # a proxy must not gather events
]
STILL_HERE = b": ping\n\n"


class EventStream(Response):
    """It holds a place of whoever asks, from its first byte to its end."""

    def __init__(self, platform: Platform, asked_by: Principal) -> None:
        super().__init__()
        self._platform = platform
        self._asked_by = asked_by

    async def tell(self, send: Send) -> None:
        """All that there is to say, until the end."""
        raise NotImplementedError

    def _session(self, scope: Scope) -> AbstractAsyncContextManager[None]:
        session: CookieSession | None = scope.get(SESSION)
        return nullcontext() if session is None else self._platform.sign_ins.held(session.token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key_id, holder = self._asked_by.key_id, self._asked_by.holder
        with self._platform.waiting.slot("streams", holder, key_id):
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            telling = asyncio.create_task(self.tell(send), name="events")
            leaving = asyncio.create_task(_until_gone(receive), name="events: client gone")
            both = (telling, leaving)
            try:
                async with self._platform.revocation.held(key_id), self._session(scope):
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            except Forbidden:
                pass  # the key was revoked, or who signed in is out: who comes back hears so
            finally:
                for task in both:
                    task.cancel()
                await asyncio.wait(both)  # the place is held until nothing is asked for it
            if not telling.cancelled():
                telling.result()  # a defect must not look like an end
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def send_part(send: Send, text: bytes) -> None:
    await send({"type": "http.response.body", "body": text, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
