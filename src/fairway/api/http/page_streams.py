"""Pages of lists: made and sent a few at a time, so that who does not read them fills no memory.

A page may have some megabytes. Its tenant has a place for it from the question to the last piece;
who finds none waits for a moment. A page goes out in pieces, each when the one before is on its
way: a reader that stops keeps its own place, and nobody else's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.responses import Response, StreamingResponse

from fairway.api.http.asgi import Receive, Scope, Send
from fairway.core.ids import TenantId
from fairway.services.backpressure.owner_slots import OwnerSlots

TENANT_PAGES_MAX = 8
PAGES_MAX = 256
WAIT_SECONDS = 3.0
PIECE_BYTES = 64 << 10


def page_slots() -> OwnerSlots:
    return OwnerSlots(
        "pages are being sent to you",
        per_owner=TENANT_PAGES_MAX,
        in_all=PAGES_MAX,
        wait_seconds=WAIT_SECONDS,
    )


class PageReply(Response):
    def __init__(
        self, slots: OwnerSlots, tenant: TenantId, make: Callable[[], Awaitable[Response]]
    ) -> None:
        super().__init__()
        self._slots, self._tenant, self._make = slots, tenant, make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._slots.held(self._tenant):
            page = await self._make()
            if isinstance(page, StreamingResponse):
                await page(scope, receive, send)
            else:
                await _send_in_pieces(page, send)


async def _send_in_pieces(page: Response, send: Send) -> None:
    body = bytes(page.body)
    start = {"type": "http.response.start", "status": page.status_code}
    await send(start | {"headers": page.raw_headers})
    for first in range(0, max(len(body), 1), PIECE_BYTES):
        piece, is_more = body[first : first + PIECE_BYTES], first + PIECE_BYTES < len(body)
        await send({"type": "http.response.body", "body": piece, "more_body": is_more})
