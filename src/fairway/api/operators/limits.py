"""What a tenant may do, what of it is used up, and what holds its jobs: as it sees them itself."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.decoding import json_reply
from fairway.api.operators.tenants import TENANT_PATH, tenant_named
from fairway.api.relay import RelayedReply
from fairway.core.backlog.holds import EVERY_TENANT, Hold
from fairway.core.explain import sentence_of
from fairway.core.tenant import Tenant, limits_reached
from fairway.services.platform import Platform
from fairway.wire.messages import BATCH_MAX
from fairway.wire.operators.tenancy import HeldBack, Limits
from fairway.wire.value_count import BATCH_VALUES_MAX, VALUES_MAX

HELD_MAX = 200  # that are told; a tenant may have very many circuits

_EXAMPLE: dict[str, Any] = {
    "tier": "standard",
    "weight": 10,
    "rate_per_second": 100,
    "burst": 1_000,
    "jobs_left": 940,
    "depth": 12,
    "depth_limit": 10_000_000,
    "cap": None,
    "payload_bytes_max": 65_536,
    "payload_values_max": 100_000,
    "batch_jobs_max": 10_000,
    "batch_values_max": 300_000,
    "refused": {"TENANT_RATE_LIMIT_EXCEEDED": 3},
    "reached": [],
    "held": [
        {
            "reason": "paused",
            "detail": "It is paused, by an operator or by the tenant.",
            "type": "email.send",
        }
    ],
}


@Endpoint(
    "GET /v1/limits",
    keys=("tenant",),
    reply=Reply(200, "The limits in force.", Limits, _EXAMPLE),
    problems=("NOT_OWNER",),
)
async def get_limits(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Your limits

    What you may do, how much of it is used, what keeps your jobs from starting now, and how many
    submissions the server that owns your jobs has refused since it started, by code.
    """
    return await _reply(request, platform, tenant)


@Endpoint(
    "GET /v1/tenants/{name}/limits",
    keys=("operator",),
    parameters=(TENANT_PATH,),
    reply=Reply(200, "The limits in force.", Limits, _EXAMPLE),
    problems=("NOT_FOUND", "NOT_OWNER"),
)
async def get_limits_of_tenant(request: Request, platform: Platform) -> Response:
    """The limits of a tenant

    As the tenant sees them itself, and its suspension, which it does not.
    """
    tenant = await tenant_named(platform, request.path_params["name"])
    return await _reply(request, platform, tenant)


async def _reply(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """By the owner, who alone knows what waits and what is left; while there is none, by us."""
    shard = platform.tenant_shards.of(tenant.id)
    has_owner = platform.ownership.owner_url(shard) is not None
    if has_owner and request.app.state.relay.is_elsewhere(shard):
        return RelayedReply(request.app.state.relay, b"", shard)
    return json_reply(await _limits(platform, tenant))


async def _limits(platform: Platform, tenant: Tenant) -> Limits:
    admission, settings = platform.admission, platform.settings
    left, depth = admission.quota(tenant).left, admission.depth(tenant)
    holds = platform.dispatcher.holds().naming(tenant.id)[:HELD_MAX]
    shares = (platform.dispatcher.share_of(pool) for pool in platform.pools.by_number)
    most = max((share.running(tenant.id) for share in shares), default=0)
    return Limits(
        tier=tenant.tier,
        weight=tenant.weight,
        rate_per_second=tenant.rate_per_second,
        burst=tenant.burst,
        jobs_left=left,
        depth=depth,
        depth_limit=tenant.depth_limit,
        cap=tenant.cap,
        payload_bytes_max=settings.payload_bytes_max,
        payload_values_max=VALUES_MAX,
        batch_jobs_max=BATCH_MAX,
        batch_values_max=BATCH_VALUES_MAX,
        refused=admission.refusals(tenant),
        reached=limits_reached(tenant, jobs_left=left, depth=depth, running_most=most),
        held=[await _view(platform, hold) for hold in holds],
    )


async def _view(platform: Platform, hold: Hold) -> HeldBack:
    directory = platform.directory
    return HeldBack(
        reason=hold.reason,
        detail=sentence_of(hold.reason),
        type=await directory.type_name(hold.type) if hold.type else None,
        pool=directory.pools.by_number[hold.pool].name if hold.pool else None,
        for_everybody=hold.tenant == EVERY_TENANT,
    )
