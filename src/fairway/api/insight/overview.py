"""`GET /v1/overview` and `GET /v1/shares`: the platform as it is now, and who gets how much."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.decoding import json_reply
from fairway.api.insight.alarms import ALARM
from fairway.api.insight.views import OverviewText
from fairway.api.operators.tenants import tenant_named
from fairway.api.relay import RelayedReply
from fairway.core.errors import InvalidRequest
from fairway.core.insight.sight import ShareSight
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.insight import Overview, Share, ShareList, TenantOverview

PAGE = 100
PLACE_MAX = 1_000_000
_PERCENTILES = {"p50": 0.012, "p95": 0.05, "p99": 0.1}
_RATES = {
    "accepted_per_second": 10.1,
    "started_per_second": 9.9,
    "ended_per_second": 9.8,
    "failed_per_second": 0.1,
    "retried_per_second": 0.1,
    "dead_per_second": 0.0,
}
_POOL = {
    "name": "short",
    "queued": 12,
    "running": 3,
    "slots": 8,
    "utilisation": 0.375,
    "oldest_runnable_age_seconds": 0.4,
    "slo_seconds": 0.5,
    "held": {"paused": 0, "throttled": 0, "circuit": 0, "no_worker": 0},
    **_RATES,
    "pickup_seconds": _PERCENTILES,
    "end_to_end_seconds": _PERCENTILES,
    "drain_seconds": None,
    "near_knee": False,
}
OVERVIEW = {
    "at": "2026-01-31T12:00:00Z",
    "health": {"status": "ok", "reasons": []},
    "pools": [_POOL],
    "workers": {"live": 2, "draining": 0},
    "shards": {"owned": 16, "total": 16},
    "restraints": {"circuit": 0, "quarantine": 0, "throttle": 0},
    "alarms": [ALARM],
}
_OWN = {
    "at": "2026-01-31T12:00:00Z",
    "tenant": "acme",
    "pools": [
        {
            "name": "short",
            "queued": 12,
            "running": 3,
            "oldest_runnable_age_seconds": 0.4,
            **_RATES,
            "pickup_seconds": _PERCENTILES,
            "end_to_end_seconds": _PERCENTILES,
            "share_received": 0.3,
            "share_entitled": 0.25,
        }
    ],
}


@Endpoint(
    "GET /v1/overview",
    keys=("operator", "tenant"),
    replies=(
        Reply(200, "For an operator: the platform.", Overview, OVERVIEW),
        Reply(200, "For a tenant: what is its own.", TenantOverview, _OWN),
    ),
    problems=("NOT_OWNER", "UNAVAILABLE"),
)
async def get_overview(request: Request, platform: Platform, principal: Principal) -> Response:
    """The platform as it is now

    Every pool with what waits, runs and how fast it goes, over all servers, at most a few seconds
    old; and whether the platform is well, with reasons. A tenant's key shows what is its own.
    """
    if principal.tenant is not None:
        shard = platform.tenant_shards.of(principal.tenant.id)
        if request.app.state.relay.is_elsewhere(shard):
            return RelayedReply(request.app.state.relay, b"", shard)
    text: OverviewText = request.app.state.overview_text
    return Response(text.for_whom(principal), media_type="application/json")


SHARES = (
    query("tenant", "Only this tenant, however small: every pool where it has work.", "acme"),
    query("cursor", "`next` of the page before. Opaque.", "100"),
)


@Endpoint(
    "GET /v1/shares",
    keys=("operator",),
    parameters=SHARES,
    reply=Reply(
        200,
        "A page of shares.",
        ShareList,
        {
            "items": [
                {
                    "tenant": "acme",
                    "pool": "short",
                    "weight": 10,
                    "queued": 1200,
                    "running": 4,
                    "share_received": 0.24,
                    "share_entitled": 0.25,
                    "throttled": False,
                }
            ],
            "next": None,
        },
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", "NOT_FOUND"),
)
async def list_shares(request: Request, platform: Platform) -> Response:
    """Who gets how much

    Tenants with jobs that wait, or that ran in the last minute, by pool, the largest first: what
    each got of the pool's slot-time in about the last minute, and what it was due. Of each server
    the 200 largest; a tenant that is asked for by name is told of whatever its size.
    """
    filters.check_names(request.query_params, SHARES)
    begin = _place(request.query_params.get("cursor"))
    if (name := request.query_params.get("tenant")) is not None:
        return await _shares_of(request, platform, name)
    seen = platform.insight.board.seen
    found = seen.shares if seen else []
    items = [_share(platform, one) for one in found[begin : begin + PAGE]]
    following = begin + PAGE if begin + PAGE < len(found) else None
    return json_reply(ShareList(items=items, next=None if following is None else str(following)))


async def _shares_of(request: Request, platform: Platform, name: str) -> Response:
    """As the owner of its shard sees it: nobody else knows of small ones."""
    tenant = await tenant_named(platform, name, "tenant")
    shard = platform.tenant_shards.of(tenant.id)
    if request.app.state.relay.is_elsewhere(shard):
        return RelayedReply(request.app.state.relay, b"", shard)
    shares = [pool.share for pool in platform.insight.tenants.pools(tenant.id)]
    found = [one for one in shares if one.queued or one.running or one.received]
    return json_reply(ShareList(items=[_share(platform, one) for one in found], next=None))


def _place(text: str | None) -> int:
    if text is None:
        return 0
    if text.isascii() and text.isdigit() and len(text) <= len(str(PLACE_MAX)):
        return int(text)
    raise InvalidRequest("The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor")


def _share(platform: Platform, one: ShareSight) -> Share:
    return Share(
        tenant=platform.directory.name_of(one.tenant),
        pool=one.pool,
        weight=one.weight,
        queued=one.queued,
        running=one.running,
        share_received=one.received,
        share_entitled=one.entitled,
        throttled=one.throttled,
    )
