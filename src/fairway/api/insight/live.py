"""`GET /v1/live`: the overview as server-sent events, whenever something newer was seen.

What an operator sees is computed and encoded once for all who look. A tenant sees what is its own.
Each is told what is newest when its turn comes (`live_turns.py`), so a stream among hundreds hears
every few seconds of it.
"""

from __future__ import annotations

from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.asgi import Send
from fairway.api.http.headers import header
from fairway.api.insight.live_turns import PING_SECONDS, OneByOne
from fairway.api.insight.views import OverviewText
from fairway.api.insight.whole_overview import LiveWholeOverview
from fairway.api.jobs.event_stream import MEDIA, RETRY_MS, STILL_HERE, EventStream, send_part
from fairway.api.relay import Relay
from fairway.api.tenant_parts.meant import PART
from fairway.core.errors import FairwayError, Unavailable
from fairway.runtime.loops import pause, wait
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal


@Endpoint(
    "GET /v1/live",
    keys=("operator", "tenant"),
    reply=Reply(
        200,
        "The stream.",
        example='retry: 2000\n\nevent: overview\ndata: {"at": "2026-01-31T12:00:00Z", …}\n\n',
        schema={},
        media=MEDIA,
    ),
    problems=("TOO_MANY_STREAMS", "NOT_OWNER"),
)
async def follow_overview(request: Request, platform: Platform, principal: Principal) -> Response:
    """Watch the platform

    Server-sent events without end: `overview`, with what `GET /v1/overview` answers, every two
    seconds or so, every five where hundreds watch. With several servers, only the one that owns a
    tenant's shard can tell a tenant: another says `NOT_OWNER`, and `GET /v1/overview` is passed on
    by it. A tenant in several shards is told by any, of all of them; while one of them cannot be
    asked, an event `unavailable` says which, as a problem.
    """
    if request.method == "HEAD":
        return Response(media_type=MEDIA)
    tenant = principal.tenant
    if tenant is not None and tenant.parts and header(request.scope, PART) is None:
        return LiveWholeOverview(request, tenant)
    live = LiveOverview(platform, principal, request.app.state)
    if not live.can_tell:
        raise Unavailable(code="NOT_OWNER")
    return live


class LiveOverview(EventStream):
    def __init__(self, platform: Platform, principal: Principal, state: State) -> None:
        super().__init__(platform, principal)
        self._board = platform.insight.board
        self._text: OverviewText = state.overview_text
        self._turns: OneByOne = state.live_turns
        self._relay: Relay = state.relay
        self._principal = principal

    @property
    def can_tell(self) -> bool:
        """Whether this server knows what whoever asks may see, and stays for a while."""
        tenant = self._principal.tenant
        if tenant is None or self._board.is_closed:
            return not self._board.is_closed
        return not self._relay.is_elsewhere(self._platform.tenant_shards.of(tenant.id))

    async def tell(self, send: Send) -> None:
        await send_part(send, b"retry: %d\n\n" % RETRY_MS)
        with self._turns.member():
            while self.can_tell:
                changed = self._board.changed
                await send_part(send, self._next())
                await wait(changed, PING_SECONDS)
                await pause(self._turns.wait_us() / 1e6)

    def _next(self) -> bytes:
        try:
            text = self._text.for_whom(self._principal)
        except FairwayError:  # nothing was seen yet
            return STILL_HERE
        return b"event: overview\ndata: " + text + b"\n\n"
