"""For operators: keys."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, path, query
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.operators.tenants import plain_text, tenant_named, tenant_to_change
from fairway.core.audit import Actor
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.keys import PERMISSIONS, SCOPES, KeyFacts, permitted
from fairway.core.ownership.tenant_parts import whole_name
from fairway.core.tenant import Tenant, several_shards
from fairway.runtime.random_ids import new_api_key
from fairway.services.platform import Platform
from fairway.services.registry.principal import KeyWish
from fairway.wire.operators.operator import KeyAdded, KeyList, KeyRotation, KeyView, NewKey

KEY_ID = re.compile(r"[0-9a-f]{1,64}")


_FILTERS = (
    query("scope", "Only keys of this scope: tenant, worker or operator.", "worker"),
    query("tenant", "Only keys of this tenant.", "acme"),
    *filters.named("limit"),
    query("cursor", "`next_cursor` of the page before.", "b81f02aa"),
)


@Endpoint(
    "GET /v1/keys",
    keys=("operator",),
    parameters=_FILTERS,
    reply=Reply(
        200,
        "A page of keys.",
        KeyList,
        {
            "keys": [
                {
                    "id": "b81f02aa",
                    "scope": "worker",
                    "tenant": None,
                    "name": "render farm",
                    "permissions": ["read", "worker"],
                    "pools": ["long"],
                    "types": None,
                    "tenants": None,
                    "created_at": "2026-01-31T12:00:00Z",
                    "expires_at": None,
                    "last_used_at": "2026-01-31T12:15:00Z",
                }
            ],
            "next_cursor": None,
        },
    ),
    problems=("INVALID_REQUEST", "NOT_FOUND"),
)
async def list_keys(request: Request, platform: Platform) -> Response:
    """List keys

    The keys that open something now, by their public part; never their secrets.
    """
    given, directory = request.query_params, platform.directory
    filters.check_names(given, _FILTERS)
    scope, tenant = given.get("scope"), None
    if scope is not None and scope not in SCOPES:
        raise InvalidRequest(f"scope is one of {', '.join(SCOPES)}.", field="scope")
    if "tenant" in given:
        tenant = (await tenant_named(platform, given["tenant"], "tenant")).id
    limit = filters.limit(given.get("limit"))
    after = plain_text(given.get("cursor", ""), "cursor")
    found = await directory.list_keys(after, limit + 1, scope, tenant)
    views = [_view(platform, one) for one in found[:limit]]
    next_cursor = views[-1].id if len(found) > limit else None
    return json_reply(KeyList(keys=views, next_cursor=next_cursor))


@Endpoint(
    "POST /v1/keys",
    keys=("operator",),
    permission="admin",
    body=NewKey,
    body_example={"scope": "worker", "name": "render farm", "pools": ["long"]},
    reply=Reply(
        201,
        "The key.",
        KeyAdded,
        {
            "id": "b81f02aa",
            "scope": "worker",
            "tenant": None,
            "name": "render farm",
            "api_key": "fw_worker_b81f02aa_…",
        },
    ),
    problems=("NOT_FOUND", "CONFLICT", "UNKNOWN_POOL", "SEVERAL_SHARDS"),
)
async def add_key(request: Request, platform: Platform, actor: Actor) -> Response:
    """Make a key

    For a tenant's programs; for workers, of one tenant or of all when no tenant is named; or for
    operators. It may do all that its scope can, or less: name the permissions. A worker's key can
    be bound to pools and job types, and one of no tenant to some tenants. Rotate a key before it
    ends.
    """
    wanted = await decoded(request, NewKey)
    _check(platform, wanted)
    tenant_id = None
    if wanted.tenant is not None:
        tenant = await _living(platform, wanted.tenant, "/tenant")
        if wanted.scope == "worker" and (tenant.parts or tenant.part_of):
            raise several_shards(
                "A tenant with several shards has no workers of its own yet: make a key of no"
                " tenant that is bound to it (`tenants`)."
            )
        tenant_id = tenant.id
    only = None
    if wanted.tenants is not None:
        named = [await _living(platform, name, "/tenants") for name in wanted.tenants]
        only = sorted({part for one in named for part in platform.directory.parts.ids_of(one)})
    bounds = wanted.permissions, wanted.pools, wanted.types, only
    wish = KeyWish(wanted.name, wanted.expires_at, *bounds)
    key = new_api_key(wanted.scope)
    await platform.directory.add_key(key, tenant_id, actor, wish)
    added = KeyAdded(
        id=key.id, scope=key.scope, tenant=wanted.tenant, name=wanted.name, api_key=key.text
    )
    return json_reply(added, 201)


def _check(platform: Platform, wanted: NewKey) -> None:
    if not wanted.name.isprintable():
        raise InvalidRequest("A name has letters, digits and signs, on one line.", field="/name")
    if wanted.scope == "tenant" and wanted.tenant is None:
        raise InvalidRequest("A tenant's key needs its tenant.", field="/tenant")
    if wanted.scope == "operator" and wanted.tenant is not None:
        raise InvalidRequest("An operator's key belongs to no tenant.", field="/tenant")
    if wanted.scope != "worker" and (wanted.pools is not None or wanted.types is not None):
        field = "/types" if wanted.pools is None else "/pools"
        raise InvalidRequest("Only a worker's key is bound to pools and types.", field=field)
    if wanted.tenants is not None and (wanted.scope != "worker" or wanted.tenant is not None):
        raise InvalidRequest(
            "Only a worker's key that belongs to no tenant is bound to some.", field="/tenants"
        )
    for name in wanted.pools or ():
        platform.directory.pools.named(name, "/pools")
    if wanted.permissions is not None:
        choice = () if wanted.scope == "worker" else PERMISSIONS[wanted.scope]
        if beyond := sorted(set(wanted.permissions).difference(choice)):
            has = f"can have {', '.join(choice)}" if choice else "is bound to pools and types"
            raise InvalidRequest(
                f"A key of the scope {wanted.scope!r} {has}, not {', '.join(beyond)}.",
                field="/permissions",
            )
    if wanted.expires_at is not None and wanted.expires_at <= datetime.now(UTC):
        raise InvalidRequest("This is over already.", field="/expires_at")


async def _living(platform: Platform, name: str, field: str) -> Tenant:
    return await tenant_to_change(platform, name, field, may_be_deleted=False)


def _view(platform: Platform, one: KeyFacts) -> KeyView:
    facts, names = one._asdict(), platform.directory.name_of
    only = facts.pop("only_tenants")
    facts["tenants"] = None if only is None else sorted({whole_name(names(one)) for one in only})
    facts["tenant"] = None if one.tenant is None else platform.directory.name_of(one.tenant)
    facts["permissions"] = sorted(permitted(one.scope, one.permissions))
    return KeyView(**facts)


@Endpoint(
    "POST /v1/keys/{id}/rotate",
    keys=("operator",),
    permission="admin",
    parameters=(path("id", "The public part of the old key.", "b81f02aa", "$KEY_ID"),),
    body=KeyRotation,
    body_example={"overlap_seconds": 3600},
    reply=Reply(
        201,
        "The new key.",
        KeyAdded,
        {
            "id": "c0a1d9e4",
            "scope": "worker",
            "tenant": None,
            "name": "render farm",
            "api_key": "fw_worker_c0a1d9e4_…",
        },
    ),
    problems=("NOT_FOUND",),
)
async def rotate_key(request: Request, platform: Platform, actor: Actor) -> Response:
    """Rotate a key

    Makes a new key that may do the same, without an end. The old one goes on working for the
    overlap, a day unless said otherwise, and ends then.
    """
    wanted = await decoded(request, KeyRotation)
    key_id, overlap = request.path_params["id"], timedelta(seconds=wanted.overlap_seconds)
    made = None
    if KEY_ID.fullmatch(key_id):
        made = await platform.directory.rotate_key(key_id, new_api_key, overlap, actor)
    if made is None:
        raise NotFound("There is no such key, or it is not valid any more.")
    key, old = made
    tenant = None if old.tenant is None else platform.directory.name_of(old.tenant)
    added = KeyAdded(id=key.id, scope=key.scope, tenant=tenant, name=old.name, api_key=key.text)
    return json_reply(added, 201)


@Endpoint(
    "DELETE /v1/keys/{id}",
    keys=("operator",),
    permission="admin",
    parameters=(path("id", "The key's public part: `fw_tenant_<id>_…`.", "b81f02aa", "$KEY_ID"),),
    reply=Reply(204, "The key is revoked."),
    problems=("NOT_FOUND",),
)
async def revoke_key(request: Request, platform: Platform, actor: Actor) -> Response:
    """Revoke a key

    The key stops working on every server within five seconds.
    """
    key_id = request.path_params["id"]
    was_valid = KEY_ID.fullmatch(key_id) is not None and await platform.directory.revoke_key(
        key_id, actor
    )
    if not was_valid:
        raise NotFound("There is no such key, or it was revoked before.")
    return Response(status_code=204)
