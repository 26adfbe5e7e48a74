"""Requests on their way to another region, with the key that they came with.

A key is good in every region, a session only where somebody signed in: no cookie ever leaves.
"""

from __future__ import annotations

import hmac
from urllib.parse import quote

from fairway.api.auth import CALLER, SESSION
from fairway.api.http.asgi import Receive, Scope, Send, read_body, send_bytes
from fairway.api.http.headers import header
from fairway.api.origin import FORWARDED_FOR, SECRET, sender_of
from fairway.api.relay import KEPT, NOT_PASSED_ON, RELAYED
from fairway.core.errors import Conflict, Forbidden, Unavailable
from fairway.core.tenant import Tenant
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

#: Of the region that passes a request on: whoever gets it answers by itself.
FROM_REGION = b"x-fairway-region"
CALL_SECONDS_MAX = 62.0  # one that is held by `Prefer: wait` as well
CALLS_MAX = 800  # that are passed on at a time
OWNER_CALLS_MAX = 100  # of one tenant's: any of them may be held
READING = ("GET", "HEAD")
UNAUTHENTICATED = 401
#: We say the first ourselves; the last opens this region alone.
OWN = NOT_PASSED_ON | {FROM_REGION, REGION_SECRET, FORWARDED_FOR, b"cookie"}


class OtherRegions:
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

    # -- who asks ----------------------------------------------------------------------------

    def is_passed_on(self, scope: Scope) -> bool:
        """By another region, which looks in the others itself."""
        if header(scope, FROM_REGION) is None:
            return False
        return hmac.compare_digest(header(scope, REGION_SECRET) or b"", self._regions.secret)

    def is_relayed(self, scope: Scope) -> bool:
        """By another server of this region, which looks in the others itself."""
        secret = self._platform.cluster.secret.encode()
        is_peer = hmac.compare_digest(header(scope, SECRET) or b"", secret)
        return is_peer and header(scope, RELAYED) is not None

    # -- asking ------------------------------------------------------------------------------

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """How much this path takes the other region knows: what is held here until it has answered
        is bounded in bytes, as the bodies of our own requests are."""
        counted = (self._platform.bodies.requests, scope[CALLER].holder)
        return await read_body(
            scope, receive, self._platform.settings.body_bytes_max, counted=counted
        )

    async def ask(self, region: str, scope: Scope, body: bytes) -> Reply:
        """What the region says."""
        try:
            return await self.try_to_ask(region, scope, body)
        except RegionAway:
            raise self.away(region, scope[CALLER].tenant) from None

    async def try_to_ask(self, region: str, scope: Scope, body: bytes) -> Reply:
        """As `ask`, or RegionAway. A change is asked of another of its servers only if it was not
        heard by the first."""
        if SESSION in scope:
            raise self.elsewhere(region, scope[CALLER].tenant)
        request = RegionRequest(
            "GET" if scope["method"] == "HEAD" else scope["method"],
            quote(scope["path"]) + _query(scope),
            body,
            self._lines(scope),
            may_repeat=scope["method"] in READING,
            of_a_caller=True,
        )
        async with self._slots.held((region, scope[CALLER].holder)):
            reply = await self._regions.peers.pass_on(region, request, CALL_SECONDS_MAX)
        if reply.status == UNAUTHENTICATED:
            raise self._unknown_there(region)
        return reply

    def _lines(self, scope: Scope) -> str:
        told = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])  # the first counts
            if name not in OWN
        }
        # As we know it: a home that trusts our address must not take its word from whoever asks.
        secret, proxies = self._platform.cluster.secret, self._platform.settings.trusted_proxies
        told[FORWARDED_FOR.decode()] = sender_of(scope, secret, proxies)
        told[FROM_REGION.decode()] = self._regions.map.here
        told[REGION_SECRET.decode()] = self._regions.secret.decode()
        return head_lines(told)

    # -- words -------------------------------------------------------------------------------

    def away(self, region: str, tenant: Tenant | None) -> Unavailable:
        """What the region is to whoever asks: its home, the directory, or one among others."""
        homes = self._regions.homes
        if tenant is None:
            return (
                directory_away(region) if region == homes.directory_region else region_away(region)
            )
        return home_away(region) if region == homes.home_of(tenant.id) else region_away(region)

    def elsewhere(self, region: str, tenant: Tenant | None) -> Conflict:
        if tenant is None:
            what = "Tenants, tiers and keys are changed in"
        elif region == self._regions.homes.home_of(tenant.id):
            what = "The tenant's home is"
        else:
            what = "What this is about is in"
        return Conflict(
            f"{what} the region {region}, and this is not passed on to it: {self.where(region)}",
            code="HOME_ELSEWHERE",
        )

    def where(self, region: str) -> str:
        """The directory may name a region that this server was not told of: then nobody knows its
        address here, and who is asked says so."""
        known = self._regions.map.regions.get(region)
        if known is None:
            return "ask there (its address is not known here)."
        if self._regions.peers.is_away(region):
            return f"ask at {known.urls[0]} when it is back; just now none of its servers answers."
        return f"ask at {known.urls[0]}."

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


async def send_reply(send: Send, reply: Reply) -> None:
    back = [(name, value) for name, value in reply.headers if name.lower() in KEPT]
    await send_bytes(send, reply.status, reply.body, back)


def _query(scope: Scope) -> str:
    return f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
