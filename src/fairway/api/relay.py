"""Calls between servers: pass a request on to the owner, and hint at new jobs.

A worker or a tenant may speak to any server; what only the owner can do is passed on, once. Hints
are sent in the background, gathered for a moment, and may be lost: the owner's sweep finds the
jobs anyway.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import httpx2
import msgspec
from starlette.responses import Response

from fairway.api.plain import CONNECTION, Receive, Scope, Send, header, send_bytes
from fairway.core.connections import STAFF
from fairway.core.errors import NotFound, Unavailable
from fairway.core.streams import StreamKey
from fairway.runtime.telemetry import logger
from fairway.services.places import Places
from fairway.services.platform import Platform

log = logger("relay")

RELAYED = b"x-fairway-relayed"
SECRET = b"x-fairway-cluster"
GATHER_SECONDS = 0.005
HINT_SECONDS_MAX = 2.0  # the next hint must not wait for an owner that hangs
OWNER_LOOK_SECONDS = 0.25
CALLS_MAX = 800  # that are passed on at a time; an owner lets an address have some more
TENANT_CALLS_MAX = 250  # of one tenant's: each of its workers may have one that is held
#: Headers of the owner's answer that the caller is to see.
KEPT = (
    "content-type", "location", "etag", "retry-after", "preference-applied", "www-authenticate",
    "x-content-type-options",
)  # fmt: skip


class Relay:
    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._clients: dict[bool, httpx2.AsyncClient] = {}  # for staff, and for tenants
        self._places = Places(per_owner=TENANT_CALLS_MAX, in_all=CALLS_MAX, wait_seconds=1.0)
        self._hints: dict[int, dict[StreamKey, str]] = {}
        self._senders: dict[int, asyncio.Task[None]] = {}  # by shard: one owner may hang
        platform.submissions.ring = self.hint

    def _http(self, *, for_staff: bool) -> httpx2.AsyncClient:
        """Connections of their own for shared workers and servers: tenants' calls may be held."""
        if for_staff not in self._clients:
            limits = httpx2.Limits(max_connections=CALLS_MAX)
            self._clients[for_staff] = httpx2.AsyncClient(
                timeout=30, limits=limits, trust_env=False
            )
        return self._clients[for_staff]

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def pass_on(self, scope: Scope, body: bytes, send: Send, *, shard: int | None) -> None:
        """Let the owner answer this request in our place."""
        if shard is not None and shard >= self._platform.cluster.shard_count:
            raise NotFound("There is no such job.")  # no shard that it could lie in
        url = self._platform.ownership.owner_url(shard)
        if url is None or header(scope, RELAYED) is not None:
            raise Unavailable(code="NOT_OWNER")
        target = url + scope["path"] + _query(scope)
        headers = {k: v for k, v in scope["headers"] if k not in (b"host", b"content-length")}
        async with AsyncExitStack() as stack:
            tenant = self._tenant_of(scope)
            if tenant is not None:
                await stack.enter_async_context(self._places.held(tenant))
            request = self._http(for_staff=tenant is None).request(
                scope["method"],
                target,
                content=body,
                headers=_names(headers) | {"x-fairway-relayed": "1"},
            )
            reply = await self._while_owner(url, shard, request)
        back = [(k.encode(), v.encode()) for k, v in reply.headers.items() if k.lower() in KEPT]
        await send_bytes(send, reply.status_code, reply.content, back)

    def _tenant_of(self, scope: Scope) -> int | None:
        """Whose call it is, by the key that was looked at before; None: of staff."""
        key = (header(scope, b"authorization") or b"").decode("latin-1").partition(" ")[2]
        principal = self._platform.directory.known(key)
        return principal.tenant.id if principal and principal.tenant else None

    async def _while_owner(
        self, url: str, shard: int | None, request: Coroutine[Any, Any, httpx2.Response]
    ) -> httpx2.Response:
        """The owner's answer. One that hangs is waited for only while it is the owner."""
        call = asyncio.create_task(request, name="relayed")
        try:
            while not (await asyncio.wait({call}, timeout=OWNER_LOOK_SECONDS))[0]:
                if self._platform.ownership.owner_url(shard) != url:
                    raise Unavailable(code="NOT_OWNER")
            return await call
        except httpx2.HTTPError as error:
            raise Unavailable(code="NOT_OWNER") from error
        finally:
            call.cancel()

    # -- hints -------------------------------------------------------------------------------

    def hint(self, shard: int, firsts: dict[StreamKey, str]) -> None:
        """Jobs of another owner's shard are on disk; `firsts` has the oldest of each stream."""
        known = self._hints.setdefault(shard, {})
        for key, first in firsts.items():
            known[key] = min(known.get(key, first), first)
        if shard not in self._senders:
            self._senders[shard] = asyncio.create_task(self._send_hints(shard), name="hints")

    async def _send_hints(self, shard: int) -> None:
        try:
            while shard in self._hints:  # what comes while a hint is under way goes with the next
                await asyncio.sleep(GATHER_SECONDS)
                url = self._platform.ownership.owner_url(shard)
                firsts = self._hints.pop(shard)
                if url is not None:
                    await self._send_hint(url, shard, firsts)
        finally:
            del self._senders[shard]  # in the same step as the last look: no hint falls between

    async def _send_hint(self, url: str, shard: int, firsts: dict[StreamKey, str]) -> None:
        streams = [[*key, first] for key, first in firsts.items()]
        message = msgspec.json.encode({"shard": shard, "streams": streams})
        secret = self._platform.cluster.secret
        try:
            await self._http(for_staff=True).post(
                f"{url}/internal/hint",
                content=message,
                headers={"x-fairway-cluster": secret},
                timeout=HINT_SECONDS_MAX,
            )
        except httpx2.HTTPError as error:
            log.info("hint lost; the owner will find the jobs", error=repr(error))

    def is_peer(self, scope: Scope) -> bool:
        """Whether the caller proves to be a server of this cluster."""
        secret = header(scope, SECRET) or b""
        is_peer = hmac.compare_digest(secret, self._platform.cluster.secret.encode())
        if is_peer and CONNECTION in scope:
            scope[CONNECTION].proved(STAFF)
        return is_peer

    def hear_hint(self, body: bytes) -> None:
        hint: dict[str, Any] = msgspec.json.decode(body)
        firsts = {StreamKey(*key): str(first) for *key, first in hint["streams"]}
        self._platform.dispatcher.hinted(int(hint["shard"]), firsts)
        if not firsts:  # only jobs for later were written
            self._platform.loops["promoter"].wake()


class RelayedReply(Response):
    """The owner's answer, for handlers that would give one of their own."""

    def __init__(self, relay: Relay, body: bytes, shard: int) -> None:
        super().__init__()
        self._pass_on = partial(relay.pass_on, body=body, shard=shard)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._pass_on(scope, send=send)


def _query(scope: Scope) -> str:
    return f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""


def _names(headers: dict[bytes, bytes]) -> dict[str, str]:
    return {key.decode("latin-1"): value.decode("latin-1") for key, value in headers.items()}
