"""The live overview of a tenant in several shards: its parts are asked once for all who look.

Only owners know what waits and runs, so each part's is asked for its own, as `GET /v1/overview`
does. Where one cannot be asked the stream goes on, and says which: half of the numbers would look
like all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import caller_of, platform_of
from fairway.api.every_part import answer_of_all
from fairway.api.http.asgi import Send, problem_reply
from fairway.api.insight.live_turns import PING_SECONDS, OneByOne
from fairway.api.insight.overview import get_overview
from fairway.api.jobs.event_stream import RETRY_MS, EventStream, send_part
from fairway.core.errors import FairwayError, Unavailable
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.runtime.loops import pause, wait

KEPT_US = 1_500_000  # so long one answer is for everybody
CALL, PATH = "GET /v1/overview", "/v1/overview"


class WholeOverviews:
    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._asked: dict[TenantId, tuple[int, asyncio.Task[bytes]]] = {}

    async def text(self, tenant: TenantId, ask: Callable[[], Awaitable[bytes]]) -> bytes:
        """What was asked a moment ago, or is being asked; else asked now."""
        now_us = self._now_us()
        asked_us, task = self._asked.get(tenant, (0, None))
        if task is None or (task.done() and now_us - asked_us > KEPT_US):
            task = asyncio.ensure_future(_told(ask))
            self._asked[tenant] = now_us, task
        return await asyncio.shield(task)  # who leaves takes it away from nobody


async def _told(ask: Callable[[], Awaitable[bytes]]) -> bytes:
    """As a part of a stream, whatever comes of it."""
    try:
        return b"event: overview\ndata: " + await ask() + b"\n\n"
    except FairwayError as error:
        return b"event: unavailable\ndata: " + problem_reply(error)[1] + b"\n\n"


class LiveWholeOverview(EventStream):
    def __init__(self, request: Request, tenant: Tenant) -> None:
        super().__init__(platform_of(request), caller_of(request))
        self._board = self._platform.insight.board
        self._turns: OneByOne = request.app.state.live_turns
        self._overviews: WholeOverviews = request.app.state.whole_overviews
        self._tenant = tenant
        scope = dict(request.scope) | {"path": PATH, "query_string": b""}
        self._question = Request(scope, request.receive)

    async def tell(self, send: Send) -> None:
        await send_part(send, b"retry: %d\n\n" % RETRY_MS)
        with self._turns.member():
            while not self._board.is_closed:
                changed = self._board.changed
                await send_part(send, await self._overviews.text(self._tenant.id, self._ask))
                await wait(changed, PING_SECONDS)
                await pause(self._turns.wait_us() / 1e6)

    async def _ask(self) -> bytes:
        reply = await answer_of_all(self._question, CALL, self._of_part)
        if reply is None or reply.status_code != 200:
            raise Unavailable()
        return bytes(reply.body)

    async def _of_part(self, request: Request) -> Response:
        return await get_overview(request, self._platform, caller_of(request))
