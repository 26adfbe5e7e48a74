"""Pauses: an operator may pause anything; a tenant's own key that tenant's jobs, no others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.decoding import converted, decoded, json_reply
from fairway.api.operators.tenants import tenant_named
from fairway.core.audit import Actor
from fairway.core.backlog.holds import EVERY_POOL, EVERY_TENANT, EVERY_TYPE, Hold
from fairway.core.errors import Forbidden, InvalidRequest, NotFound
from fairway.core.ids import TenantId, TypeId
from fairway.core.ownership.tenant_parts import whole_name
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.services.registry.type_names import NO_TYPE, Namer
from fairway.services.restraints.pauses import Pauser
from fairway.wire.operators.tenancy import (
    Pause,
    Paused,
    PauseList,
)

_WHICH = tuple(
    query(name, about, example, shell)
    for name, about, example, shell in (
        ("tenant", "The tenant's name.", "acme", ""),
        ("type", "The job type.", "email.send", "email.send"),
        ("pool", "The pool.", "long", ""),
    )
)


@Endpoint(
    "GET /v1/pauses",
    keys=("operator", "tenant"),
    reply=Reply(
        200,
        "The pauses in force.",
        PauseList,
        {"pauses": [{"tenant": "acme", "type": "email.send"}]},
    ),
    problems=parts.QUICK,
)
async def list_pauses(platform: Platform, principal: Principal) -> Response:
    """What is paused

    An operator sees all pauses. A tenant sees those that may hold its jobs: its own, and those
    that an operator made for everybody, which name no tenant.
    """
    asker = _asker(principal)
    found = [*await platform.pauses.of(asker)]
    if principal.tenant is not None:
        for part in principal.tenant.parts[1:]:
            found += await platform.pauses.of(part)
    everybodys = () if asker is None else platform.pauses.of_everybody()
    views = list[Pause]()
    for hold in (*found, *everybodys):
        view, whose = await _pause_view(platform, hold), platform.directory.tenants.get(hold.tenant)
        is_of_parts = whose is not None and (whose.parts or whose.part_of)  # in any order
        if not (is_of_parts and view in views):
            views.append(view)  # of a tenant's parts each has it
    return json_reply(PauseList(pauses=views))


@Endpoint(
    "POST /v1/pauses",
    keys=("operator", "tenant"),
    body=Pause,
    body_example={"type": "email.send"},
    reply=Reply(201, "It is paused.", Paused, {"type": "email.send", "type_is_known": False}),
    problems=("NOT_FOUND", "UNKNOWN_POOL", "TOO_MANY_JOB_TYPES", "TOO_MANY_PAUSES", *parts.QUICK),
)
async def pause(
    request: Request, platform: Platform, principal: Principal, actor: Actor
) -> Response:
    """Pause a tenant, a job type or a pool

    Jobs that match all that is named are still accepted, and do not start; what runs, runs on.
    With a tenant's own key the pause covers that tenant's jobs only. A job type can be paused
    before its first job: the answer has `type_is_known: false` then, for one that is misspelt is
    paused too.
    """
    wanted, asker = await decoded(request, Pause), _asker(principal)
    hold = await _hold(platform, principal, wanted)
    is_known = hold.type != NO_TYPE
    if wanted.type:
        hold = hold._replace(type=await _named_type(platform, asker, wanted.type, hold.type))
    by = Pauser(actor, _words(wanted), asker)
    await platform.pauses.pause(hold, by, also=_other_parts(platform, hold))
    named = msgspec.structs.asdict(wanted)
    return json_reply(Paused(**named, type_is_known=is_known), 201)


@Endpoint(
    "DELETE /v1/pauses",
    keys=("operator", "tenant"),
    parameters=_WHICH,
    reply=Reply(200, "It runs again.", Pause, {"type": "email.send"}),
    problems=("INVALID_REQUEST", "NOT_FOUND", "UNKNOWN_POOL", *parts.QUICK),
)
async def resume(
    request: Request, platform: Platform, principal: Principal, actor: Actor
) -> Response:
    """Resume

    Ends a pause: name what was named when it was made.
    """
    wanted = converted(request.query_params, Pause)
    hold = await _hold(platform, principal, wanted)
    by = Pauser(actor, _words(wanted), _asker(principal))
    was_paused = False
    if hold.type != NO_TYPE:
        was_paused = await platform.pauses.resume(hold, by, also=_other_parts(platform, hold))
    if not was_paused:
        raise NotFound("This was not paused.")
    return json_reply(wanted)


def _other_parts(platform: Platform, hold: Hold) -> Sequence[TenantId]:
    """Of a tenant in several shards: those that are to have it, too."""
    tenant = platform.directory.tenants.get(hold.tenant)
    return () if tenant is None else tenant.parts[1:]


def _words(wanted: Pause) -> str:
    named = msgspec.to_builtins(wanted)
    return " ".join(f"{name}={value}" for name, value in named.items())


def _asker(principal: Principal) -> TenantId | None:
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


async def _numbers(platform: Platform, wanted: Pause, asker: TenantId | None) -> Hold:
    directory = platform.directory
    tenant, pool = EVERY_TENANT, EVERY_POOL
    if wanted.tenant:
        tenant = (await tenant_named(platform, wanted.tenant, "/tenant")).id
    if wanted.pool:
        pool = directory.pools.named(wanted.pool, "/pool").number
    type_id: TypeId | None = EVERY_TYPE
    if wanted.type:
        type_id = await directory.find_type(wanted.type, asker)
    return Hold(tenant, NO_TYPE if type_id is None else type_id, pool)


async def _named_type(
    platform: Platform, asker: TenantId | None, name: str, known: TypeId
) -> TypeId:
    """A pause may come before the first job: it names a type as a job does."""
    names = platform.directory.names
    if asker is None and known != NO_TYPE and name in names.ids:  # else it may be let go
        return known
    if asker is not None and not names.is_named_by(Namer(asker), name):
        await platform.pauses.check_room(asker)  # else a pause that is refused would make one
    return (await names.know(asker, [name]))[name]


async def _pause_view(platform: Platform, hold: Hold) -> Pause:
    directory = platform.directory
    return Pause(
        tenant=whole_name(directory.name_of(hold.tenant)) if hold.tenant else None,
        type=await directory.type_name(hold.type) if hold.type else None,
        pool=directory.pools.by_number[hold.pool].name if hold.pool else None,
    )
