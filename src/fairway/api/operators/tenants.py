"""For operators: tenants and tiers, changeable while everything runs; for tenants: their limits."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, path, query
from fairway.api.http.decoding import converted, decoded, json_reply
from fairway.core.errors import Conflict, InvalidRequest, NotFound
from fairway.core.pools import PoolTable
from fairway.core.tenant import Tenant, TenantSettings, Tier
from fairway.runtime.random_ids import new_api_key
from fairway.services.platform import Platform
from fairway.services.registry.tenants_and_keys import Principal
from fairway.wire.messages import BATCH_MAX
from fairway.wire.tenancy import (
    Limits,
    NewTenant,
    TenantAdded,
    TenantChange,
    TenantList,
    TenantView,
    TierList,
    TierTerms,
    TierView,
)
from fairway.wire.value_count import BATCH_VALUES_MAX, VALUES_MAX

_ACME: dict[str, Any] = {
    "id": 7,
    "name": "acme",
    "tier": "pro",
    "weight": 100,
    "floor_per_mille": 10,
    "cap": None,
    "reserved": {},
    "rate_per_second": 10_000,
    "burst": 100_000,
    "depth_limit": 10_000_000,
}
_PRO: dict[str, Any] = {
    "weight": 100,
    "group": "",
    "floor_per_mille": 10,
    "cap": None,
    "rate_per_second": 10_000,
    "burst": 100_000,
    "depth_limit": 10_000_000,
}
CURSOR_MAX = 64
_CURSOR = query("cursor", "`next_cursor` of the page before.", "acme")
_TENANT = path("name", "The tenant's name.", "acme", "$TENANT")


@Endpoint(
    "POST /v1/tenants",
    keys=("operator",),
    permission="admin",
    body=NewTenant,
    body_example={"name": "acme", "tier": "pro"},
    reply=Reply(
        201, "The tenant and its key.", TenantAdded, _ACME | {"api_key": "fw_tenant_3fa9c1d2_…"}
    ),
    problems=("CONFLICT", "UNKNOWN_POOL"),
)
async def add_tenant(request: Request, platform: Platform, principal: Principal) -> Response:
    """Add a tenant

    Adds a customer and makes its first key. The key is in this reply and nowhere else: only a hash
    of it is kept. Its tier says what it is entitled to; each value can be its own.
    """
    wanted = await decoded(request, NewTenant)
    given = msgspec.structs.asdict(wanted)
    name = given.pop("name")
    reserved = _reserved(given.pop("reserved"), platform.directory.pools)
    settings = TenantSettings(**given, reserved=reserved)
    tenant = await platform.directory.add_tenant(name, settings, principal.key_id)
    if tenant is None:
        raise Conflict(f"There is a tenant named {name!r} already.", field="/name")
    key = new_api_key("tenant")
    await platform.directory.add_key(key, tenant.id, principal.key_id)
    return json_reply(TenantAdded(**_facts(tenant), api_key=key.text), 201)


@Endpoint(
    "GET /v1/tenants",
    keys=("operator",),
    parameters=(*filters.named("limit"), _CURSOR),
    reply=Reply(200, "A page of tenants.", TenantList, {"tenants": [_ACME], "next_cursor": None}),
    problems=("INVALID_REQUEST",),
)
async def list_tenants(request: Request, platform: Platform) -> Response:
    """List tenants

    By name, each with the values in force.
    """
    given = request.query_params
    filters.check_names(given, (*filters.named("limit"), _CURSOR))
    limit = filters.limit(given.get("limit"))
    after = plain_text(given.get("cursor", ""), "cursor")
    found = await platform.directory.list_tenants(after, limit + 1)
    views = [TenantView(**_facts(one)) for one in found[:limit]]
    next_cursor = views[-1].name if len(found) > limit else None
    return json_reply(TenantList(tenants=views, next_cursor=next_cursor))


@Endpoint(
    "GET /v1/tenants/{name}",
    keys=("operator",),
    parameters=(_TENANT,),
    reply=Reply(200, "The tenant.", TenantView, _ACME),
    problems=("NOT_FOUND",),
)
async def get_tenant(request: Request, platform: Platform) -> Response:
    """One tenant

    A tenant with the values in force.
    """
    return json_reply(
        TenantView(**_facts(await tenant_named(platform, request.path_params["name"])))
    )


@Endpoint(
    "PATCH /v1/tenants/{name}",
    keys=("operator",),
    permission="admin",
    parameters=(_TENANT,),
    body=TenantChange,
    body_example={"tier": "enterprise", "reserved": {"short": 20}},
    reply=Reply(200, "The tenant as it is now.", TenantView, _ACME),
    problems=("NOT_FOUND", "UNKNOWN_POOL"),
)
async def change_tenant(request: Request, platform: Platform, principal: Principal) -> Response:
    """Change a tenant

    New terms hold at once, for the jobs already queued too; on other servers within two seconds.
    What is left out stays; null takes the tier's value again.
    """
    wanted = await decoded(request, TenantChange)
    changes: dict[str, Any] = msgspec.to_builtins(wanted)
    if "reserved" in changes:
        changes["reserved"] = _reserved(changes["reserved"], platform.directory.pools)
    known = await tenant_named(platform, request.path_params["name"])
    tenant = await platform.directory.change_tenant(known.name, changes, principal.key_id)
    return json_reply(TenantView(**_facts(tenant or known)))


@Endpoint(
    "GET /v1/tiers",
    keys=("operator",),
    reply=Reply(
        200, "The tiers, the lightest first.", TierList, {"tiers": [_PRO | {"name": "pro"}]}
    ),
)
async def list_tiers(platform: Platform) -> Response:
    """All tiers

    What the tenants of each tier are entitled to.
    """
    return json_reply(TierList(tiers=[_tier_view(t) for t in await platform.directory.tiers()]))


@Endpoint(
    "PUT /v1/tiers/{name}",
    keys=("operator",),
    permission="admin",
    parameters=(path("name", "The tier's name.", "pro"),),
    body=TierTerms,
    body_example=_PRO,
    reply=Reply(200, "The tier.", TierView, _PRO | {"name": "pro"}),
)
async def put_tier(request: Request, platform: Platform, principal: Principal) -> Response:
    """Make or change a tier

    The whole of a tier's terms. They hold for its tenants at once, except where a tenant has a
    value of its own.
    """
    terms = await decoded(request, TierTerms)
    view = converted(msgspec.structs.asdict(terms) | request.path_params, TierView)
    # A tier has the same terms in the same order, some under another name.
    tier = Tier(view.name, *msgspec.structs.astuple(terms))
    await platform.directory.put_tier(tier, principal.key_id)
    return json_reply(view)


def plain_text(text: str, field: str) -> str:
    """What the store can compare: it knows no NUL, nor halves of letters."""
    if "\x00" in text or not text.isprintable() or len(text) > CURSOR_MAX:
        raise InvalidRequest(f"This is no {field} of ours.", field=field)
    return text


def _reserved(slots: dict[str, int], pools: PoolTable) -> tuple[tuple[str, int], ...]:
    for name in sorted(slots):
        pools.named(name, "/reserved")
    return tuple(sorted(slots.items()))


def _facts(tenant: Tenant) -> dict[str, Any]:
    facts = tenant._asdict()
    facts["floor_per_mille"] = facts.pop("floor_share")
    facts["reserved"] = dict(tenant.reserved)
    del facts["fair_group"]
    return facts


def _tier_view(tier: Tier) -> TierView:
    facts = tier._asdict()
    facts["floor_per_mille"] = facts.pop("floor_share")
    facts["group"] = facts.pop("fair_group")
    return TierView(**facts)


@Endpoint(
    "GET /v1/limits",
    keys=("tenant",),
    reply=Reply(
        200,
        "The limits in force.",
        Limits,
        {
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
        },
    ),
)
async def get_limits(platform: Platform, tenant: Tenant) -> Response:
    """Your limits

    What you may do, how much of it is used, and how many submissions this server has refused since
    it started, by code.
    """
    admission, settings = platform.admission, platform.settings
    return json_reply(
        Limits(
            tier=tenant.tier,
            weight=tenant.weight,
            rate_per_second=tenant.rate_per_second,
            burst=tenant.burst,
            jobs_left=admission.quota(tenant).left,
            depth=admission.depth(tenant),
            depth_limit=tenant.depth_limit,
            cap=tenant.cap,
            payload_bytes_max=settings.payload_bytes_max,
            payload_values_max=VALUES_MAX,
            batch_jobs_max=BATCH_MAX,
            batch_values_max=BATCH_VALUES_MAX,
            refused=admission.refusals(tenant),
        )
    )


async def tenant_named(platform: Platform, name: str, field: str = "") -> Tenant:
    directory = platform.directory
    if name not in directory.tenant_ids:
        await directory.refresh()  # another server may have made it a moment ago
    number = directory.tenant_ids.get(name)
    if number is None:
        raise NotFound(f"There is no tenant {name[:64]!r}.", field=field)
    return directory.tenants[number]
