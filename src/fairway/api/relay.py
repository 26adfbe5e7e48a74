"""Calls between servers: pass a request on to the owner, say how jobs run here, hint at new ones.

A worker or a tenant may speak to any server; what only the owner can do is passed on, once. How far
its runs are the owner tells other servers (which ask by `peers.py`) and they join it with what the
store says. Hints are sent in the background, gathered for a moment, and may be lost: the owner's
sweep finds the jobs anyway.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Coroutine, Iterable
from functools import partial
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from fairway.api.auth import CALLER
from fairway.api.http.asgi import CONNECTION, Receive, Scope, Send, send_bytes
from fairway.api.http.headers import header
from fairway.api.next_owner import NextOwner, OwnerGone
from fairway.api.origin import ORIGIN, SECRET, passing_on
from fairway.api.passing import Passing
from fairway.api.peers import AskedWorkers, Peers, asked_jobs, cluster_lines, encode_runs
from fairway.api.worker_views import merged, workers_here
from fairway.core.backlog.streams import StreamKey
from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import NotFound, Unavailable
from fairway.core.ids import ShardId, TenantId
from fairway.runtime.loops import Loop, pause
from fairway.runtime.plain_http import HttpClient, Reply, head_lines
from fairway.runtime.telemetry import logger
from fairway.services.backpressure.owner_slots import OwnerSlots
from fairway.services.jobs.far_runs import JOBS_MAX
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.operators.operator import WorkerList, WorkerView

log = logger("relay")

RELAYED = b"x-fairway-relayed"
GATHER_SECONDS = 0.005
HINT_SECONDS_MAX = 2.0  # the next hint must not wait for an owner that hangs
HINTS_REST_SECONDS = 60.0  # unless there is news
HINTS_LOST_APART_US = (
    1_000_000  # of an owner that died every job's hint is lost, until its term ends
)
OWNER_LOOK_SECONDS = 0.25
CALL_SECONDS_MAX = 60.0  # a call that is held, and a large body on its way
CALLS_MAX = 800  # that are passed on at a time; an owner lets an address have some more
TENANT_CALLS_MAX = 250  # of one tenant's: each of its workers may have one that is held
#: Headers of the owner's answer that the caller is to see.
KEPT = frozenset(
    {
        b"content-type",
        b"location",
        b"etag",
        b"retry-after",
        b"preference-applied",
        b"www-authenticate",
        b"x-content-type-options",
        b"idempotent-replayed",
        b"ratelimit",
        b"ratelimit-policy",
        b"fairway-owner",
        b"x-request-id",
    }
)
#: Headers of a request that are about the caller's own connection, or that we say ourselves.
NOT_PASSED_ON = frozenset(
    {
        b"host",
        b"content-length",
        b"connection",
        b"keep-alive",
        b"transfer-encoding",
        b"te",
        b"trailer",
        b"upgrade",
        b"expect",
        b"accept-encoding",
        ORIGIN,
        SECRET,
    }
)


class Relay:
    def __init__(self, platform: Platform, peers: Peers) -> None:
        self._platform = platform
        self._peers = peers
        # Shared workers and servers have places of their own: tenants' calls may be held.
        self._slots, self._staff_slots = _slots(TENANT_CALLS_MAX), _slots(CALLS_MAX)
        self._next_owner = NextOwner(platform, self.is_elsewhere)
        self._hints = platform.hints
        self._senders: dict[ShardId, asyncio.Task[None]] = {}  # by shard: one owner may hang
        self._hints_lost, self._say_lost_from_us = 0, 0
        self._listening = Loop("hints", self._hear_news, platform.clock, self._hints.news)
        self._listening.start()

    def close(self) -> None:
        self._listening.cancel()

    def is_elsewhere(self, shard: ShardId | None) -> bool:
        """Whether another server must answer for this shard; None: for workers, wherever.

        The one place where the edge asks whose a job is.
        """
        dispatcher = self._platform.dispatcher
        return not (dispatcher.owns_any() if shard is None else dispatcher.owns(shard))

    async def passed_on(self, scope: Scope, body: bytes, send: Send, *, shard: ShardId) -> bool:
        """Whether another server, which owns the shard, has answered this request in our place.

        If that one is gone, the next owner is waited for; it may be this server, which answers.
        """
        if not self.is_elsewhere(shard):
            return False
        try:
            await self.pass_on(scope, body, send, shard=shard)
        except OwnerGone as gone:
            await self._next_owner.after(gone, shard, _tenant_of(scope))
            if (caller := scope.get(CALLER)) is not None:
                self._platform.revocation.check(caller.key_id)  # it may have been seconds
            if not self.is_elsewhere(shard):
                return False
            await self.pass_on(scope, body, send, shard=shard)
        return True

    async def pass_on(
        self,
        scope: Scope,
        body: bytes,
        send: Send,
        *,
        shard: ShardId | None,
        owner: str | None = None,
    ) -> None:
        """Let the owner answer this request in our place; or this one of several, by address."""
        if shard is not None and shard >= self._platform.tenant_shards.count:
            raise NotFound("There is no such job.")  # no shard that it could lie in
        url = self._platform.ownership.owner_url(shard) if owner is None else owner
        if header(scope, RELAYED) is not None:
            raise Unavailable(code="NOT_OWNER")
        if url is None or not self._is_owner(url, shard):
            raise OwnerGone(url)
        tenant = _tenant_of(scope)
        slots = self._staff_slots if tenant is None else self._slots
        async with slots.held(tenant):
            client = self._peers.client(url, for_staff=tenant is None)
            told = passing_on(
                scope, self._platform.cluster.secret, self._platform.settings.trusted_proxies
            )
            reply = await self._while_owner(url, shard, _ask(client, scope, body, told))
        back = [(name, value) for name, value in reply.headers if name.lower() in KEPT]
        await send_bytes(send, reply.status, reply.body, back)

    async def _while_owner(
        self, url: str, shard: ShardId | None, request: Coroutine[Any, Any, Reply]
    ) -> Reply:
        """The owner's answer. One that hangs is waited for only while it is the owner."""
        call = asyncio.create_task(request, name="relayed")
        try:
            while not (await asyncio.wait({call}, timeout=OWNER_LOOK_SECONDS))[0]:
                if not self._is_owner(url, shard):
                    raise Unavailable(code="NOT_OWNER")
            return await call
        except ConnectionRefusedError as error:
            raise OwnerGone(url) from error
        except (OSError, TimeoutError) as error:
            raise Unavailable(code="NOT_OWNER") from error
        finally:
            call.cancel()

    def _is_owner(self, url: str, shard: ShardId | None) -> bool:
        """Whether that server owns this shard now, or any; no other address is ever called."""
        owners = self._platform.ownership.owners
        found = owners.values() if shard is None else filter(None, [owners.get(shard)])
        return any(one.owner_url == url for one in found)

    # -- hints -------------------------------------------------------------------------------

    async def _hear_news(self, now_us: int) -> float:
        """Jobs of other owners' shards are on disk."""
        for shard in self._hints.shards:
            if shard not in self._senders:
                self._senders[shard] = asyncio.create_task(self._send_hints(shard), name="hints")
        return HINTS_REST_SECONDS

    async def _send_hints(self, shard: ShardId) -> None:
        try:
            while shard in self._hints:  # what comes while a hint is under way goes with the next
                await pause(GATHER_SECONDS)
                url = self._platform.ownership.owner_url(shard)
                firsts = self._hints.take(shard)
                if url is not None:
                    await self._send_hint(url, shard, firsts)
        finally:
            del self._senders[shard]  # in the same step as the last look: no hint falls between

    async def _send_hint(self, url: str, shard: ShardId, firsts: dict[StreamKey, str]) -> None:
        streams = [[*key, first] for key, first in firsts.items()]
        message = msgspec.json.encode({"shard": shard, "streams": streams})
        lines = cluster_lines(self._platform.cluster.secret)
        try:
            client = self._peers.client(url, for_staff=True)
            await client.call("POST", "/internal/hint", message, HINT_SECONDS_MAX, lines)
        except (OSError, TimeoutError) as error:
            self._hint_lost(url, error)

    def _hint_lost(self, url: str, error: OSError) -> None:
        self._hints_lost += 1
        now_us = self._platform.clock.now_us()
        if now_us >= self._say_lost_from_us:
            count, self._hints_lost = self._hints_lost, 0
            self._say_lost_from_us = now_us + HINTS_LOST_APART_US
            event = "hints lost; the owner will find the jobs"
            log.info(event, count=count, url=url, error=repr(error))

    # -- runs --------------------------------------------------------------------------------

    def tell_runs(self, body: bytes) -> bytes:
        """The runs among these jobs that this server owns, for another server."""
        runs = ((job, self._platform.job_lookup.run_of(job)) for job in asked_jobs(body)[:JOBS_MAX])
        return encode_runs((job, run) for job, run in runs if run is not None)

    # -- workers -----------------------------------------------------------------------------

    async def workers(self, asked: AskedWorkers) -> list[WorkerView]:
        """The workers that all owners hear, once each; one that gives no answer is left out.

        An answer without any owner's word would be wrong: whoever asks is to try again.
        """
        platform, urls = self._platform, self._platform.ownership.peer_urls()
        ask = partial(self._peers.ask_workers, platform.cluster.secret)
        found = await asyncio.gather(*(ask(url, asked) for url in urls))
        told = [one for one in found if one is not None]
        if self.is_elsewhere(None) and not told:
            raise Unavailable(code="NOT_OWNER")
        return merged([*workers_here(platform, asked), *chain.from_iterable(told)])

    def tell_workers(self, body: bytes) -> bytes:
        """The workers that are heard here, for another server."""
        asked = msgspec.json.decode(body, type=AskedWorkers)
        return msgspec.json.encode(WorkerList(workers=workers_here(self._platform, asked)))

    def is_peer(self, scope: Scope) -> bool:
        """Whether the caller proves to be a server of this cluster."""
        secret = header(scope, SECRET) or b""
        is_peer = hmac.compare_digest(secret, self._platform.cluster.secret.encode())
        if is_peer and CONNECTION in scope:
            scope[CONNECTION].proved(STAFF)
        return is_peer

    def receive_hint(self, body: bytes) -> None:
        hint: dict[str, Any] = msgspec.json.decode(body)
        firsts = {StreamKey(*key): str(first) for *key, first in hint["streams"]}
        self._platform.dispatcher.hinted(ShardId(int(hint["shard"])), firsts)
        if not firsts:  # only jobs for later were written
            self._platform.loops["promoter"].wake()


class Edge(NamedTuple):
    """What a hot endpoint is made with, once."""

    platform: Platform
    relay: Relay
    passing: Passing


class HotEndpoint:
    """A raw ASGI callable, made once."""

    def __init__(self, edge: Edge) -> None:
        self._platform = edge.platform
        self._relay = edge.relay


class RelayedReply(Response):
    """The owner's answer, for handlers that would give one of their own."""

    def __init__(self, relay: Relay, body: bytes, shard: ShardId | None) -> None:
        super().__init__()
        self._pass_on = partial(relay.pass_on, body=body, shard=shard)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._pass_on(scope, send=send)


def _tenant_of(scope: Scope) -> TenantId | None:
    """Whose call it is, by who was admitted; None: of staff, whoever it acts for."""
    caller: Principal | None = scope.get(CALLER)
    if caller is None or caller.tenant is None or caller.scope == "operator":
        return None
    return caller.tenant.id


def _slots(per_owner: int) -> OwnerSlots:
    return OwnerSlots(
        "calls to the owner are being passed on for you",
        per_owner=per_owner,
        in_all=CALLS_MAX,
        wait_seconds=1.0,
    )


def _query(scope: Scope) -> str:
    return f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""


async def _ask(
    client: HttpClient, scope: Scope, body: bytes, told: Iterable[tuple[bytes, bytes]]
) -> Reply:
    method = "GET" if scope["method"] == "HEAD" else scope["method"]  # the caller's has no body
    lines = head_lines(
        {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in ((RELAYED, b"1"), *reversed(scope["headers"]))  # the first counts
            if name not in NOT_PASSED_ON
        }
        | {name.decode("latin-1"): value.decode("latin-1") for name, value in told}
    )
    return await client.call(
        method, quote(scope["path"]) + _query(scope), body, CALL_SECONDS_MAX, lines
    )
