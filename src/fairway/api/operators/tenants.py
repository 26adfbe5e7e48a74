"""For operators: tenants and tiers, changeable while everything runs."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, path, query
from fairway.api.http.decoding import converted, decoded, json_reply
from fairway.core.audit import Actor
from fairway.core.errors import Conflict, InvalidRequest, NotFound
from fairway.core.ids import ShardId
from fairway.core.pools import PoolTable
from fairway.core.tenant import TENANT_STATES, Tenant, TenantFilter, TenantSettings, Tier
from fairway.runtime.random_ids import new_api_key
from fairway.services.platform import Platform
from fairway.services.registry.refusals import part_named
from fairway.services.registry.spread_tenants import SpreadTenants, WantedShards
from fairway.wire.operators.tenancy import (
    NewTenant,
    TenantAdded,
    TenantChange,
    TenantList,
    TenantView,
    TierList,
    TierTerms,
    TierView,
)

ACME: dict[str, Any] = {
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
    "state": "active",
    "reason": "",
    "running": None,
    "state_since": None,
    "kept_until": None,
    "shard": 7,
    "shards": [7],
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
TENANT_PATH = path("name", "The tenant's name.", "acme", "$TENANT")
_FILTERS = (
    query("q", "Only those with this somewhere in their name.", "acm"),
    query(
        "state",
        f"One or more of {', '.join(TENANT_STATES)}, with commas between; left out: all that are"
        " not deleted.",
        "suspended",
    ),
    query("tier", "Only those of this tier.", "pro"),
    *filters.named("limit"),
    _CURSOR,
)


@Endpoint(
    "POST /v1/tenants",
    keys=("operator",),
    permission="admin",
    body=NewTenant,
    body_example={"name": "acme", "tier": "pro"},
    reply=Reply(
        201, "The tenant and its key.", TenantAdded, ACME | {"api_key": "fw_tenant_3fa9c1d2_…"}
    ),
    problems=("CONFLICT", "UNKNOWN_POOL"),
)
async def add_tenant(request: Request, platform: Platform, actor: Actor) -> Response:
    """Add a tenant

    Adds a customer and makes its first key. The key is in this reply and nowhere else: only a hash
    of it is kept. Its tier says what it is entitled to; each value can be its own.
    """
    wanted = await decoded(request, NewTenant)
    given = msgspec.structs.asdict(wanted)
    name = given.pop("name")
    reserved = _reserved(given.pop("reserved"), platform.directory.pools)
    placed = _placed(platform, given.pop("shard"), given.pop("shards"))
    settings = TenantSettings(**given, reserved=reserved)
    if placed.number > 1:
        spread = SpreadTenants(platform.database, platform.directory, platform.tenant_shards)
        tenant = await spread.add(name, settings, actor, placed)
    else:
        tenant = await platform.directory.add_tenant(name, settings, actor, placed.first)
    if tenant is None:
        raise Conflict(await _taken(platform, name), field="/name")
    key = new_api_key("tenant")
    await platform.directory.add_key(key, tenant.id, actor)
    return json_reply(TenantAdded(**_facts(platform, tenant), api_key=key.text), 201)


@Endpoint(
    "GET /v1/tenants",
    keys=("operator",),
    parameters=_FILTERS,
    reply=Reply(200, "A page of tenants.", TenantList, {"tenants": [ACME], "next_cursor": None}),
    problems=("INVALID_REQUEST",),
)
async def list_tenants(request: Request, platform: Platform) -> Response:
    """List tenants

    By name, each with the values in force; deleted ones only when they are asked for.
    """
    given = request.query_params
    filters.check_names(given, _FILTERS)
    limit = filters.limit(given.get("limit"))
    after = plain_text(given.get("cursor", ""), "cursor")
    found = await platform.directory.list_tenants(after, limit + 1, _wanted(given))
    views = [tenant_view(platform, one) for one in found[:limit]]
    next_cursor = views[-1].name if len(found) > limit else None
    return json_reply(TenantList(tenants=views, next_cursor=next_cursor))


@Endpoint(
    "GET /v1/tenants/{name}",
    keys=("operator",),
    parameters=(TENANT_PATH,),
    reply=Reply(200, "The tenant.", TenantView, ACME),
    problems=("NOT_FOUND",),
)
async def get_tenant(request: Request, platform: Platform) -> Response:
    """One tenant

    A tenant with the values in force.
    """
    found = await tenant_named(platform, request.path_params["name"])
    return json_reply(tenant_view(platform, found))


@Endpoint(
    "PATCH /v1/tenants/{name}",
    keys=("operator",),
    permission="admin",
    parameters=(TENANT_PATH,),
    body=TenantChange,
    body_example={"tier": "enterprise", "reserved": {"short": 20}},
    reply=Reply(200, "The tenant as it is now.", TenantView, ACME),
    problems=("NOT_FOUND", "CONFLICT", "UNKNOWN_POOL"),
)
async def change_tenant(request: Request, platform: Platform, actor: Actor) -> Response:
    """Change a tenant

    New terms hold at once, for the jobs already queued too; on other servers within two seconds.
    What is left out stays; null takes the tier's value again.
    """
    wanted = await decoded(request, TenantChange)
    changes: dict[str, Any] = msgspec.to_builtins(wanted)
    if "reserved" in changes:
        changes["reserved"] = _reserved(changes["reserved"], platform.directory.pools)
    known = await whole_named(platform, request.path_params["name"], may_be_deleted=False)
    tenant = await platform.directory.change_tenant(known.name, changes, actor)
    return json_reply(tenant_view(platform, tenant or known))


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
async def put_tier(request: Request, platform: Platform, actor: Actor) -> Response:
    """Make or change a tier

    The whole of a tier's terms. They hold for its tenants at once, except where a tenant has a
    value of its own.
    """
    terms = await decoded(request, TierTerms)
    view = converted(msgspec.structs.asdict(terms) | request.path_params, TierView)
    # A tier has the same terms in the same order, some under another name.
    tier = Tier(view.name, *msgspec.structs.astuple(terms))
    await platform.directory.put_tier(tier, actor)
    return json_reply(view)


def _placed(platform: Platform, shard: int | None, count: int) -> WantedShards:
    """Where a new tenant is to be, if the platform has such a place."""
    shards = platform.tenant_shards.count
    if shard is not None and shard >= shards:
        there_are = f"there are {shards}, numbered from 0."
        raise InvalidRequest(f"There is no shard {shard}: {there_are}", field="/shard")
    if count > shards:
        raise InvalidRequest(
            f"There are {shards} shards, fewer than {count}: `fairway shards split` makes more.",
            field="/shards",
        )
    if count > 1 and platform.regions is not None:
        raise Conflict("Where there are regions a tenant has one shard.", field="/shards")
    return WantedShards(None if shard is None else ShardId(shard), count)


def plain_text(text: str, field: str) -> str:
    """What the store can compare: it knows no NUL, nor halves of letters."""
    if "\x00" in text or not text.isprintable() or len(text) > CURSOR_MAX:
        raise InvalidRequest(f"This is no {field} of ours.", field=field)
    return text


def _reserved(slots: dict[str, int], pools: PoolTable) -> tuple[tuple[str, int], ...]:
    for name in sorted(slots):
        pools.named(name, "/reserved")
    return tuple(sorted(slots.items()))


def _wanted(given: QueryParams) -> TenantFilter:
    states, tier, search = given.get("state"), given.get("tier"), given.get("q")
    known = TenantFilter(
        tier=None if tier is None else plain_text(tier, "tier"),
        search=None if search is None else plain_text(search, "q").lower(),
    )
    if states is None:
        return known
    asked = filters.words(states, "state", TENANT_STATES)
    return known._replace(states=[one for one in TENANT_STATES if one in asked])


async def _taken(platform: Platform, name: str) -> str:
    holder = await tenant_named(platform, name)
    if holder.state == "deleted":
        return f"The tenant {name!r} was deleted and can be restored; its name stays taken as long."
    return f"There is a tenant named {name!r} already."


def tenant_view(platform: Platform, tenant: Tenant) -> TenantView:
    return TenantView(**_facts(platform, tenant))


def _facts(platform: Platform, tenant: Tenant) -> dict[str, Any]:
    tenant, homes = platform.directory.parts.as_written(tenant), platform.tenant_shards
    facts, since = tenant._asdict(), tenant.state_since
    facts["floor_per_mille"] = facts.pop("floor_share")
    facts["reserved"] = dict(tenant.reserved)
    running = "cancel" if facts.pop("cancels_running") else "finish"
    facts["running"] = None if tenant.is_active else running
    facts["kept_until"] = None
    if tenant.state == "deleted" and since is not None:
        facts["kept_until"] = since + platform.tenant_states.kept
    facts["shard"] = homes.of(tenant.id) if tenant.shard is None else tenant.shard
    facts["shards"] = [homes.of(one) for one in tenant.parts] or [facts["shard"]]
    if platform.regions is not None:
        facts["home_region"] = platform.regions.homes.home_of(tenant.id)
        facts["is_home_here"] = platform.regions.homes.is_here(tenant.id)
    del facts["moved_from"], facts["part_of"], facts["parts"]
    del facts["fair_group"], facts["job_events"]  # the latter is the tenant's own choice
    return facts


def _tier_view(tier: Tier) -> TierView:
    facts = tier._asdict()
    facts["floor_per_mille"] = facts.pop("floor_share")
    facts["group"] = facts.pop("fair_group")
    return TierView(**facts)


async def tenant_named(
    platform: Platform, name: str, field: str = "", *, may_be_deleted: bool = True
) -> Tenant:
    directory = platform.directory
    if name not in directory.tenant_ids:
        await directory.refresh()  # another server may have made it a moment ago
    number = directory.tenant_ids.get(name)
    if number is None:
        raise NotFound(f"There is no tenant {name[:64]!r}.", field=field)
    tenant = directory.tenants[number]
    if tenant.state == "deleted" and not may_be_deleted:
        raise Conflict(f"The tenant {name!r} is deleted: restore it first.", field=field)
    return tenant


async def whole_named(
    platform: Platform, name: str, field: str = "", *, may_be_deleted: bool = True
) -> Tenant:
    """As `tenant_named`, for whoever would change something: of a tenant in several shards that is
    done to all of them, by the name that people know."""
    tenant = await tenant_named(platform, name, field, may_be_deleted=may_be_deleted)
    if tenant.part_of is not None:
        raise part_named(name, field)
    return tenant
