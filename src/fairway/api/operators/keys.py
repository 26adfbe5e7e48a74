"""For operators: keys."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, path, query
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.operators.tenants import plain_text, tenant_named
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.keys import SCOPES
from fairway.runtime.random_ids import new_api_key
from fairway.services.platform import Platform
from fairway.services.registry.tenants_and_keys import Principal
from fairway.wire.operator import KeyAdded, KeyList, KeyView, NewKey

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
                    "created_at": "2026-01-31T12:00:00Z",
                    "expires_at": None,
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
    views = [
        KeyView(**one._asdict() | {"tenant": one.tenant and directory.name_of(one.tenant)})
        for one in found[:limit]
    ]
    next_cursor = views[-1].id if len(found) > limit else None
    return json_reply(KeyList(keys=views, next_cursor=next_cursor))


@Endpoint(
    "POST /v1/keys",
    keys=("operator",),
    body=NewKey,
    body_example={"scope": "worker"},
    reply=Reply(
        201,
        "The key.",
        KeyAdded,
        {
            "id": "b81f02aa",
            "scope": "worker",
            "tenant": None,
            "api_key": "fw_worker_b81f02aa_…",
        },
    ),
    problems=("NOT_FOUND",),
)
async def add_key(request: Request, platform: Platform, principal: Principal) -> Response:
    """Make a key

    For a tenant's programs, or for workers: of one tenant, or of all when no tenant is named. To
    rotate a key, make the new one, move to it, revoke the old one.
    """
    wanted = await decoded(request, NewKey)
    tenant_id = None
    if wanted.tenant is not None:
        tenant_id = platform.directory.tenant_ids.get(wanted.tenant)
        if tenant_id is None:
            raise NotFound(f"There is no tenant {wanted.tenant[:64]!r}.", field="/tenant")
    if wanted.scope == "tenant" and tenant_id is None:
        raise InvalidRequest("A tenant's key needs its tenant.", field="/tenant")
    key = new_api_key(wanted.scope)
    await platform.directory.add_key(key, tenant_id, principal.key_id)
    added = KeyAdded(id=key.id, scope=key.scope, tenant=wanted.tenant, api_key=key.text)
    return json_reply(added, 201)


@Endpoint(
    "DELETE /v1/keys/{id}",
    keys=("operator",),
    parameters=(path("id", "The key's public part: `fw_tenant_<id>_…`.", "b81f02aa", "$KEY_ID"),),
    reply=Reply(204, "The key is revoked."),
    problems=("NOT_FOUND",),
)
async def revoke_key(request: Request, platform: Platform, principal: Principal) -> Response:
    """Revoke a key

    The key stops working on every server within five seconds.
    """
    key_id = request.path_params["id"]
    was_valid = KEY_ID.fullmatch(key_id) is not None and await platform.directory.revoke_key(
        key_id, principal.key_id
    )
    if not was_valid:
        raise NotFound("There is no such key, or it was revoked before.")
    return Response(status_code=204)
