"""Requests that another region must answer: passed on whole, with the key that they came with.

Keys are known in every region, so the home looks at the key itself. What a tenant asks goes to its
home; what operators change of tenants, tiers, keys and homes goes to the directory. Reads of one
job go where it may be, the likeliest region first, and waits for many to all
(`api/regions/waits.py`). Submissions are not here: they can be held (`api/region_lines.py`). What
streams or is very large is refused, with the address to go to.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import CALLER, SESSION
from fairway.api.endpoint import Endpoint
from fairway.api.http.asgi import JSON, Receive, Scope, Send, read_body, send_bytes
from fairway.api.http.headers import etag, header, known_versions, wait_seconds
from fairway.api.origin import FORWARDED_FOR, SECRET, sender_of
from fairway.api.regions.held_views import held_explained, held_views
from fairway.api.regions.waits import CALL as WAIT
from fairway.api.regions.waits import Here, RegionWaits, WaitCall
from fairway.api.relay import KEPT, NOT_PASSED_ON, RELAYED
from fairway.core.errors import Conflict, Forbidden, NotFound, Unavailable
from fairway.core.ids import JobId, TenantId, parse_job_id
from fairway.core.tenant import Tenant
from fairway.runtime.loops import pause
from fairway.runtime.plain_http import Reply, head_lines
from fairway.services.backpressure.owner_slots import OwnerSlots
from fairway.services.platform import Platform
from fairway.services.regions.peer_calls import (
    REGION_SECRET,
    RegionAway,
    RegionRequest,
    directory_away,
    home_away,
    region_away,
)
from fairway.services.regions.regions import Regions
from fairway.services.registry.principal import Principal

#: Of the region that passes a request on: whoever gets it answers by itself.
FROM_REGION = b"x-fairway-region"
CALL_SECONDS_MAX = 62.0  # one that is held by `Prefer: wait` as well
CALLS_MAX = 800  # that are passed on at a time
OWNER_CALLS_MAX = 100  # of one tenant's: any of them may be held
SUBMISSIONS = frozenset({"POST /v1/jobs", "POST /v1/jobs/batch"})
EXPLAIN = "GET /v1/jobs/{id}/explain"
JOB_READS = frozenset({"GET /v1/jobs/{id}", "HEAD /v1/jobs/{id}"})
#: They stay open, or are larger than a server holds.
NOT_PASSABLE = frozenset(
    {
        "GET /v1/jobs/{id}/events",
        "GET /v1/events/stream",
        "GET /v1/events/socket",
        "GET /v1/live",
        "POST /v1/uploads",
        "GET /v1/jobs/{id}/payload",
        "GET /v1/jobs/{id}/result",
    }
)
#: Every region answers these by itself, for whomever.
OF_EACH_REGION = frozenset({"GET /v1/pools", "GET /session", "DELETE /session"})
#: What is changed in the directory alone.
OF_DIRECTORY = ("/v1/tenants", "/v1/tiers", "/v1/keys")
SPEND_CAP = "/spend-cap"  # is of the home's own books
EVENT_STREAM = b"text/event-stream"  # never ends: nobody would hear of it before it is broken off
READING = ("GET", "HEAD")
UNAUTHENTICATED = 401
HELD = "held"  # the version of a job, for as long as it is
HELD_LOOK_SECONDS = 1.0


class RegionGate:
    """Made only where there are regions."""

    def __init__(self, platform: Platform, regions: Regions) -> None:
        self._platform = platform
        self._regions = regions
        # More than a home takes from one address would look as if it were away, to everybody.
        self._slots = OwnerSlots(
            "calls to another region are being passed on for you",
            per_owner=OWNER_CALLS_MAX,
            in_all=CALLS_MAX,
            wait_seconds=1.0,
        )
        self._waits = RegionWaits(platform, regions, self.reply_of)

    # -- hot paths ---------------------------------------------------------------------------

    async def has_answered(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        endpoint: Endpoint,
        here: Callable[[], Awaitable[None]],
    ) -> bool:
        """Whether another region's answer was sent; or, of a job, what any region knows."""
        caller: Principal = scope[CALLER]
        if endpoint.call in JOB_READS and caller.tenant is not None:
            await self._read_job(scope, send, caller.tenant.id, here)
            return True
        region = self._answering(scope, endpoint, caller)
        if region is None:
            return False
        if endpoint.call == EXPLAIN and await self._has_explained(scope, send, region):
            return True
        body = await self._body(scope, receive)
        await self._send(send, await self._ask(region, scope, body))
        return True

    # -- cold routes -------------------------------------------------------------------------

    async def reply(self, request: Request, endpoint: Endpoint, here: Here) -> Response | None:
        """Another region's answer, or that of several; None: this one's own."""
        scope = request.scope
        caller: Principal | None = scope.get(CALLER)
        if caller is None:
            return None
        if endpoint.call == WAIT and caller.tenant is not None:
            call = WaitCall(request, caller.tenant.id, here)
            is_passed_on = self._is_passed_on(scope) or self._is_relayed(scope)
            return await self._waits.reply(call, is_passed_on=is_passed_on)
        region = self._answering(scope, endpoint, caller)
        if region is None:
            return None
        body = await self._body(scope, request.receive)
        return await self.reply_of(request, region, body)

    async def reply_of(self, request: Request, region: str, body: bytes) -> Response:
        reply = await self._ask(region, request.scope, body)
        return Response(reply.body, reply.status, headers=_back(reply))

    def refuse_elsewhere(self, scope: Scope, endpoint: Endpoint, caller: Principal) -> None:
        """Of what stays open and is no HTTP: HOME_ELSEWHERE, if another region is to be asked."""
        self._answering(scope, endpoint, caller)

    # -- where to ----------------------------------------------------------------------------

    def _answering(self, scope: Scope, endpoint: Endpoint, caller: Principal) -> str | None:
        if endpoint.call in OF_EACH_REGION or self._is_passed_on(scope):
            return None
        region = self._region_for(endpoint, caller)
        if region is None:
            return None
        if endpoint.call in NOT_PASSABLE or SESSION in scope or _wants_stream(scope):
            raise self._elsewhere(region, is_staff=caller.tenant is None)
        return region

    def _elsewhere(self, region: str, *, is_staff: bool) -> Conflict:
        """The directory may name a region that this server was not told of: then nobody knows its
        address here, and who is asked says so."""
        what = "Tenants, tiers and keys are changed in" if is_staff else "The tenant's home is"
        known = self._regions.map.regions.get(region)
        where = f"ask at {known.urls[0]}" if known else "ask there (its address is not known here)"
        return Conflict(
            f"{what} the region {region}, and this is not passed on to it: {where}.",
            code="HOME_ELSEWHERE",
        )

    def _region_for(self, endpoint: Endpoint, caller: Principal) -> str | None:
        if caller.tenant is not None:
            if caller.scope == "worker" or endpoint.call in SUBMISSIONS:
                return None
            return self._regions.elsewhere(caller.tenant.id)
        is_change = endpoint.method not in READING and endpoint.path.startswith(OF_DIRECTORY)
        if not is_change or endpoint.path.endswith(SPEND_CAP):
            return None
        directory = self._regions.homes.directory_region
        return None if directory == self._regions.map.here else directory

    def _is_passed_on(self, scope: Scope) -> bool:
        if header(scope, FROM_REGION) is None:
            return False
        return hmac.compare_digest(header(scope, REGION_SECRET) or b"", self._regions.secret)

    def _is_relayed(self, scope: Scope) -> bool:
        """By another server of this region, which looks in the others itself."""
        secret = self._platform.cluster.secret.encode()
        is_peer = hmac.compare_digest(header(scope, SECRET) or b"", secret)
        return is_peer and header(scope, RELAYED) is not None

    # -- asking ------------------------------------------------------------------------------

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """How much this path takes the other region knows: what is held here until it has answered
        is bounded in bytes, as the bodies of our own requests are."""
        counted = (self._platform.bodies.requests, scope[CALLER].holder)
        return await read_body(
            scope, receive, self._platform.settings.body_bytes_max, counted=counted
        )

    async def _ask(self, region: str, scope: Scope, body: bytes) -> Reply:
        """What the region says; a change is asked of another of its servers only if it was not
        heard by the first."""
        is_read = scope["method"] in READING
        try:
            request = RegionRequest(
                "GET" if scope["method"] == "HEAD" else scope["method"],
                quote(scope["path"]) + _query(scope),
                body,
                self._lines(scope),
                may_repeat=is_read,
                of_a_caller=True,
            )
            async with self._slots.held((region, scope[CALLER].holder)):
                reply = await self._regions.peers.pass_on(region, request, CALL_SECONDS_MAX)
        except RegionAway:
            raise self._away(region, scope[CALLER].tenant) from None
        if reply.status == UNAUTHENTICATED:
            raise self._unknown_there(region)
        return reply

    def _away(self, region: str, tenant: Tenant | None) -> Unavailable:
        """What the region is to whoever asks: its home, the directory, or one among others."""
        homes = self._regions.homes
        if tenant is None:
            return (
                directory_away(region) if region == homes.directory_region else region_away(region)
            )
        return home_away(region) if region == homes.home_of(tenant.id) else region_away(region)

    def _unknown_there(self, region: str) -> Forbidden:
        """The key is good here, or nothing would have been passed on: it was made here, or its
        change is on the way. That it is "not valid" would send its holder the wrong way."""
        here, directory = self._regions.map.here, self._regions.homes.directory_region
        return Forbidden(
            f"This API key opens the region {here} and is not known in {region}, which has to"
            f" answer this. Keys that are made in the region {directory} open every region, a few"
            " seconds later.",
            code="UNAUTHENTICATED",
        )

    def _lines(self, scope: Scope) -> str:
        own = {FROM_REGION, REGION_SECRET, FORWARDED_FOR}
        told = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])  # the first counts
            if name not in NOT_PASSED_ON and name not in own
        }
        # As we know it: a home that trusts our address must not take its word from whoever asks.
        secret, proxies = self._platform.cluster.secret, self._platform.settings.trusted_proxies
        told[FORWARDED_FOR.decode()] = sender_of(scope, secret, proxies)
        told[FROM_REGION.decode()] = self._regions.map.here
        told[REGION_SECRET.decode()] = self._regions.secret.decode()
        return head_lines(told)

    async def _send(self, send: Send, reply: Reply) -> None:
        back = [(name, value) for name, value in reply.headers if name.lower() in KEPT]
        await send_bytes(send, reply.status, reply.body, back)

    # -- one job -----------------------------------------------------------------------------

    async def _read_job(
        self, scope: Scope, send: Send, tenant: TenantId, here: Callable[[], Awaitable[None]]
    ) -> None:
        """Wherever it is: moved, accepted elsewhere before its tenant moved, or held."""
        job = parse_job_id(scope["path"].rpartition("/")[2])
        if job is None or self._is_passed_on(scope):
            await self._read_here(scope, send, tenant, job, here)
            return
        absent: Exception = NotFound(f"There is no job {job}.")
        likely = self._regions.may_have(tenant, job)
        for region in (*likely, *likely[:-1]):  # it may have been on its way between two of them
            if region == self._regions.map.here:
                try:
                    await self._read_here(scope, send, tenant, job, here)
                    return
                except NotFound as error:
                    absent = absent if not isinstance(absent, NotFound) else error
                    continue
            if self._regions.peers.is_away(region):
                absent = self._away(region, scope[CALLER].tenant)
                continue
            try:
                reply = await self._ask(region, scope, b"")
            except Exception as error:
                absent = error
                continue
            if reply.status != 404:
                await self._send(send, reply)
                return
        raise absent

    async def _read_here(
        self,
        scope: Scope,
        send: Send,
        tenant: TenantId,
        job: JobId | None,
        here: Callable[[], Awaitable[None]],
    ) -> None:
        try:
            await here()
            return
        except NotFound:
            if job is None:
                raise
            await self._while_held(tenant, job, wait_seconds(scope))
            held = await self._regions.held.find(tenant, job)
            if held is None:
                raise
        if held.became is not None:
            await self._send(send, await self._read_other(scope, tenant, held.became))
            return
        headers = [(b"etag", etag(HELD)), (b"cache-control", b"no-cache")]
        if HELD in known_versions(scope):
            await send_bytes(send, 304, b"", headers)
            return
        (view,) = held_views(held, self._platform.directory)
        await send_bytes(send, 200, msgspec.json.encode(view), [JSON, *headers])

    async def _has_explained(self, scope: Scope, send: Send, home: str) -> bool:
        """Whether the job is held here for its home, which does not know of it yet."""
        tenant: Tenant = scope[CALLER].tenant
        job = parse_job_id(scope["path"].split("/")[-2])
        try:
            held = None if job is None else await self._regions.held.find(tenant.id, job)
        except Unavailable:  # our own store: the home may know
            return False
        if held is None or held.became is not None:
            return False
        (view,) = held_views(held, self._platform.directory)
        here, is_away = self._regions.map.here, self._regions.peers.is_away(home)
        told = held_explained(view, here, home, is_away=is_away)
        await send_bytes(send, 200, msgspec.json.encode(told), [JSON])
        return True

    async def _while_held(self, tenant: TenantId, job: JobId, seconds: float) -> None:
        """For whoever asked to wait: until the home is back; a moment at least, for to ask again
        at once is all that such a caller does otherwise. Nothing of the job is read before that:
        many may wait, and it may be large."""
        clock, waiting = self._platform.clock, self._platform.waiting
        if not seconds or not waiting.has_slot("waits", tenant):
            return
        if not await self._regions.held.among(tenant, [job]):
            return
        until_us = clock.now_us() + round(seconds * 1e6)
        with waiting.slot("waits", tenant):
            while (left_us := until_us - clock.now_us()) > 0:
                await pause(min(left_us / 1e6, HELD_LOOK_SECONDS))
                if not self._regions.peers.is_away(self._regions.homes.home_of(tenant)):
                    return

    async def _read_other(self, scope: Scope, tenant: TenantId, job: JobId) -> Reply:
        """The job that this one turned out to be: another with the same Idempotency-Key."""
        path = f"{scope['path'].rpartition('/')[0]}/{job}"
        likely = self._regions.may_have(tenant, job)
        for region in (*likely, *likely[:-1]):
            reply = await self._ask(region, {**scope, "path": path}, b"")
            if reply.status != 404:
                return reply
        raise NotFound(
            f"The job turned out to be {job}, which had the same Idempotency-Key and is gone."
        )


def _wants_stream(scope: Scope) -> bool:
    return EVENT_STREAM in (header(scope, b"accept") or b"").lower()


def _back(reply: Reply) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in reply.headers
        if name.lower() in KEPT
    }


def _query(scope: Scope) -> str:
    return f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
