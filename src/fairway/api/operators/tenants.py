"""For operators: tenants, tiers and pauses, all changeable while everything runs.

A tenant's own key may pause and resume that tenant's jobs, and see its limits; nothing else here.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import operator_of, principal_of, tenant_of
from fairway.api.http.decoding import converted, decoded, json_reply
from fairway.core.backlog.holds import Hold
from fairway.core.errors import Conflict, Forbidden, InvalidRequest, NotFound
from fairway.core.pools import PoolTable
from fairway.core.tenant import Tenant, TenantSettings, Tier
from fairway.runtime.random_ids import new_api_key
from fairway.services.platform import Platform
from fairway.services.registry.tenants_and_keys import Principal
from fairway.services.registry.type_names import NO_TYPE, Namer
from fairway.wire.heft import BATCH_VALUES_MAX, VALUES_MAX
from fairway.wire.messages import BATCH_MAX
from fairway.wire.tenancy import (
    Limits,
    NewTenant,
    Pause,
    PauseList,
    TenantAdded,
    TenantChange,
    TenantView,
    TierList,
    TierTerms,
    TierView,
)


async def add_tenant(request: Request) -> Response:
    platform = await _as_operator(request)
    wanted = await decoded(request, NewTenant)
    given = msgspec.structs.asdict(wanted)
    name = given.pop("name")
    reserved = _reserved(given.pop("reserved"), platform.directory.pools)
    tenant = await platform.directory.add_tenant(name, TenantSettings(**given, reserved=reserved))
    if tenant is None:
        raise Conflict(f"There is a tenant named {name!r} already.", field="/name")
    key = new_api_key("tenant")
    await platform.directory.add_key(key, tenant.id)
    return json_reply(TenantAdded(**_facts(tenant), api_key=key.text), 201)


async def one_tenant(request: Request) -> Response:
    platform = await _as_operator(request)
    return json_reply(TenantView(**_facts(await _named(platform, request.path_params["name"]))))


async def change_tenant(request: Request) -> Response:
    platform = await _as_operator(request)
    wanted = await decoded(request, TenantChange)
    changes: dict[str, Any] = msgspec.to_builtins(wanted)
    if "reserved" in changes:
        changes["reserved"] = _reserved(changes["reserved"], platform.directory.pools)
    known = await _named(platform, request.path_params["name"])
    tenant = await platform.directory.change_tenant(known.name, changes)
    return json_reply(TenantView(**_facts(tenant or known)))


async def list_tiers(request: Request) -> Response:
    platform = await _as_operator(request)
    return json_reply(TierList(tiers=[_tier_view(t) for t in await platform.directory.tiers()]))


async def put_tier(request: Request) -> Response:
    platform = await _as_operator(request)
    terms = await decoded(request, TierTerms)
    view = converted(msgspec.structs.asdict(terms) | request.path_params, TierView)
    await platform.directory.put_tier(
        Tier(
            view.name, terms.weight, terms.group, terms.floor_per_mille, terms.cap,
            terms.rate_per_second, terms.burst, terms.depth_limit,
        )
    )  # fmt: skip
    return json_reply(view)


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


# -- pauses ------------------------------------------------------------------------------------


async def list_pauses(request: Request) -> Response:
    platform, principal = await _may_pause(request)
    found = await platform.holds.pauses(_asker(principal))
    return json_reply(PauseList(pauses=[await _pause_view(platform, hold) for hold in found]))


async def limits(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
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


async def pause(request: Request) -> Response:
    platform, principal = await _may_pause(request)
    wanted, asker = await decoded(request, Pause), _asker(principal)
    hold = await _hold(platform, principal, wanted)
    if wanted.type:
        hold = hold._replace(type=await _named_type(platform, asker, wanted.type, hold.type))
    await platform.holds.pause(hold, asker)
    return json_reply(wanted, 201)


async def resume(request: Request) -> Response:
    platform, principal = await _may_pause(request)
    wanted = converted(request.query_params, Pause)
    hold = await _hold(platform, principal, wanted)
    if hold.type == NO_TYPE or not await platform.holds.resume(hold, _asker(principal)):
        raise NotFound("This was not paused.")
    return json_reply(wanted)


async def _may_pause(request: Request) -> tuple[Platform, Principal]:
    platform: Platform = request.app.state.platform
    principal = await principal_of(request.scope, platform.directory)
    if principal.scope not in ("operator", "tenant"):
        raise Forbidden("This needs an operator's or a tenant's key; yours is for something else.")
    return platform, principal


def _asker(principal: Principal) -> int | None:
    """The tenant whose turn a question takes; None: an operator's."""
    return None if principal.tenant is None else principal.tenant.id


async def _hold(platform: Platform, principal: Principal, wanted: Pause) -> Hold:
    """The hold that is meant; a tenant's key means that tenant, whatever else is named.

    Its type is NO_TYPE when nobody has named that before.
    """
    if principal.tenant is not None:
        if wanted.tenant not in (None, principal.tenant.name):
            raise Forbidden("Your key can pause your own jobs only.")
        wanted.tenant = principal.tenant.name
    if wanted == Pause():
        raise InvalidRequest("Name a tenant, a type or a pool.", field="/tenant")
    return await _numbers(platform, wanted, _asker(principal))


async def _numbers(platform: Platform, wanted: Pause, asker: int | None) -> Hold:
    directory = platform.directory
    tenant = (await _named(platform, wanted.tenant, "/tenant")).id if wanted.tenant else 0
    pool = directory.pools.named(wanted.pool, "/pool").number if wanted.pool else 0
    type_id: int | None = 0
    if wanted.type:
        type_id = await directory.find_type(wanted.type, asker)
    return Hold(tenant, NO_TYPE if type_id is None else type_id, pool)


async def _named_type(platform: Platform, asker: int | None, name: str, known: int) -> int:
    """A pause may come before the first job: it names a type as a job does."""
    names = platform.directory.names
    if asker is None and known != NO_TYPE and name in names.ids:  # else it may be let go
        return known
    if asker is not None and not names.is_named_by(Namer(asker), name):
        await platform.holds.check_room(asker)  # else a pause that is refused would make one
    return (await names.know(asker, [name]))[name]


async def _pause_view(platform: Platform, hold: Hold) -> Pause:
    directory = platform.directory
    return Pause(
        tenant=directory.name_of(hold.tenant) if hold.tenant else None,
        type=await directory.type_name(hold.type) if hold.type else None,
        pool=directory.pools.by_number[hold.pool].name if hold.pool else None,
    )


async def _named(platform: Platform, name: str, field: str = "") -> Tenant:
    directory = platform.directory
    if name not in directory.tenant_ids:
        await directory.refresh()  # another server may have made it a moment ago
    number = directory.tenant_ids.get(name)
    if number is None:
        raise NotFound(f"There is no tenant {name[:64]!r}.", field=field)
    return directory.tenants[number]


async def _as_operator(request: Request) -> Platform:
    platform: Platform = request.app.state.platform
    await operator_of(request.scope, platform.directory)
    return platform
