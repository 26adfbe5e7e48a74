"""`GET /v1/events/socket`: one WebSocket, many subscriptions to the event log.

The key comes in the header, as anywhere; or, from browsers, as a subprotocol or in the first
message. Never in the address: addresses are logged.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.utils import ClientDisconnected

from fairway.api.auth import admit
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.events.conversation import Conversation
from fairway.api.events.event_log import logs_of
from fairway.api.events.socket_line import KEY_PREFIX, SocketGone, SocketLine
from fairway.api.http.asgi import Receive, Scope, Send
from fairway.api.http.decoding import UNDECODABLE
from fairway.api.http.headers import header
from fairway.api.http.socket_protocol import MESSAGE_BYTES_MAX
from fairway.core.errors import FairwayError, Forbidden, NotFound, Unavailable
from fairway.runtime.telemetry import logger
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.services.transient_errors import may_pass
from fairway.wire.events import SocketKey, SocketRequest

log = logger("socket")

PATH = "/v1/events/socket"
AUTHORIZE_SECONDS = 10.0  # for the first message, where no key came before it

_decode_key = msgspec.json.Decoder(SocketKey).decode


SOCKET = Endpoint(
    f"GET {PATH}",
    keys=("tenant",),
    reply=Reply(
        101,
        f"A WebSocket. You send text messages of up to {MESSAGE_BYTES_MAX >> 10} KB:"
        ' `{"subscribe": "mine", "after": 4711, "kind": "job.*", "type": "email.send",'
        ' "job": null}` (all but the name may be left out; without `after`: from now on) and'
        ' `{"unsubscribe": "mine"}`. You hear `{"subscription": "mine", "subscribed_at": 4711}`,'
        ' then `{"subscription": "mine", "event": {…}}` for each event, in order;'
        ' `{"subscription": "mine", "gap": {"from": …, "to": …}}` for events that were deleted'
        ' before you came for them; `{"subscription": "mine", "position": …}` now and then, so that'
        " you know from where to go on where a filter lets nothing through; and"
        ' `{"error": {…}}` with a problem, where something was refused.',
    ),
    messages=(SocketKey, SocketRequest),
    problems=("UPGRADE_REQUIRED", "TOO_MANY_STREAMS", "INVALID_REQUEST"),
)


@SOCKET
async def open_event_socket(request: Request) -> Response:
    """Follow the event log by WebSocket

    Up to 32 subscriptions on one connection, each with its filter and its position. A browser,
    which can send no `Authorization`, offers the subprotocols `fairway.events` and
    `bearer.fw_tenant_…`, or sends `{"authorize": "fw_tenant_…"}` as its first message, within ten
    seconds. What is refused once the socket is open closes it with 4000 and the status: 4401,
    4429, 4503.
    """
    raise FairwayError(
        "This address speaks WebSocket: send `Upgrade: websocket`. For plain HTTP there is"
        " /v1/events/stream.",
        code="UPGRADE_REQUIRED",
    )


#: Raises if the tenant's home is another region: its events are there.
RefuseElsewhere: TypeAlias = Callable[[Scope, Endpoint, Principal], None]


class EventSocket:
    """The ASGI application behind it."""

    def __init__(self, platform: Platform, refuse_elsewhere: RefuseElsewhere | None = None) -> None:
        self._platform = platform
        self._refuse_elsewhere = refuse_elsewhere  # where there are regions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line = SocketLine(scope, receive, send)
        try:
            await receive()  # says that somebody wants to connect
            await self._answer(scope, line)
        except (SocketGone, ClientDisconnected):
            return

    async def _answer(self, scope: Scope, line: SocketLine) -> None:
        try:
            if scope["path"] != PATH:
                raise NotFound(f"There is no WebSocket at {scope['path'][:200]}.")
            await self._converse(scope, line)
        except FairwayError as error:
            await line.refuse(error)
        except (SocketGone, ClientDisconnected):
            raise
        except Exception as error:
            if may_pass(error):
                log.warning("store away", path=PATH, error=repr(error))
                await line.refuse(Unavailable())
                return
            log.exception("socket failed", request_id=secrets.token_hex(8))
            await line.refuse(FairwayError())

    async def _converse(self, scope: Scope, line: SocketLine) -> None:
        platform, key = self._platform, line.offered_key
        if key is None and header(scope, b"authorization") is None:
            key = await _first_message(line)
        caller = await admit(scope, platform, SOCKET, key)
        assert caller.tenant is not None
        if self._refuse_elsewhere is not None:
            self._refuse_elsewhere(scope, SOCKET, caller)
        logs = logs_of(scope, platform, caller.tenant)
        with platform.waiting.slot("streams", caller.holder, caller.key_id):
            async with platform.revocation.held(caller.key_id):
                await line.accept()
                await Conversation(line, logs).run()


async def _first_message(line: SocketLine) -> str:
    await line.accept()
    try:
        async with asyncio.timeout(AUTHORIZE_SECONDS):
            return _decode_key(await line.hear()).authorize
    except (TimeoutError, *UNDECODABLE):
        raise Forbidden(
            "Send your API key: in the header `Authorization: Bearer fw_…`, as a subprotocol"
            f' `{KEY_PREFIX}fw_…`, or as the first message, {{"authorize": "fw_…"}}, within'
            f" {AUTHORIZE_SECONDS:.0f} s.",
            code="UNAUTHENTICATED",
        ) from None
