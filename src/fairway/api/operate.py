"""For operators and machines: tenants and keys, health, metrics."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import operator_of
from fairway.api.decoding import UNDECODABLE, invalid
from fairway.api.plain import read_body
from fairway.core.errors import Conflict, InvalidRequest, NotFound
from fairway.runtime.identity import new_api_key
from fairway.services.platform import Platform
from fairway.wire.operator import Health, KeyAdded, NewKey, NewTenant, TenantAdded

KEY_ID = re.compile(r"[0-9a-f]{1,64}")


async def add_tenant(request: Request) -> Response:
    platform = await _as_operator(request)
    wanted = await _decode(request, NewTenant)
    tenant = await platform.directory.add_tenant(wanted.name, wanted.weight, wanted.depth_limit)
    if tenant is None:
        raise Conflict(f"There is a tenant named {wanted.name!r} already.", field="/name")
    key = new_api_key("tenant")
    await platform.directory.add_key(key, tenant.id)
    return _json(TenantAdded(**tenant._asdict(), api_key=key.text), 201)


async def add_key(request: Request) -> Response:
    platform = await _as_operator(request)
    wanted = await _decode(request, NewKey)
    tenant_id = None
    if wanted.tenant is not None:
        tenant_id = platform.directory.tenant_ids.get(wanted.tenant)
        if tenant_id is None:
            raise NotFound(f"There is no tenant {wanted.tenant[:64]!r}.", field="/tenant")
    if wanted.scope == "tenant" and tenant_id is None:
        raise InvalidRequest("A tenant's key needs its tenant.", field="/tenant")
    key = new_api_key(wanted.scope)
    await platform.directory.add_key(key, tenant_id)
    added = KeyAdded(id=key.id, scope=key.scope, tenant=wanted.tenant, api_key=key.text)
    return _json(added, 201)


async def revoke_key(request: Request) -> Response:
    platform = await _as_operator(request)
    key_id = request.path_params["id"]
    if not KEY_ID.fullmatch(key_id) or not await platform.directory.revoke_key(key_id):
        raise NotFound("There is no such key, or it was revoked before.")
    return Response(status_code=204)


async def _as_operator(request: Request) -> Platform:
    platform: Platform = request.app.state.platform
    await operator_of(request.scope, platform.directory)
    return platform


Wanted = TypeVar("Wanted")
BODY_BYTES_MAX = 64 << 10


async def _decode(request: Request, kind: type[Wanted]) -> Wanted:
    body = await read_body(request.scope, request.receive, BODY_BYTES_MAX)
    try:
        return msgspec.json.decode(body, type=kind)
    except UNDECODABLE as error:
        raise invalid(error) from None


def _json(value: Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


# -- health ------------------------------------------------------------------------------------


async def livez(request: Request) -> Response:
    """The event loop turns. Never touches the database."""
    return _json(Health(status="ok"))


async def readyz(request: Request) -> Response:
    """Work can be accepted: the store answers and somebody owns every shard."""
    platform: Platform = request.app.state.platform
    checks = await platform.readiness()
    ok = all(checks.values())
    return _json(Health(status="ok" if ok else "not ready", checks=checks), 200 if ok else 503)


async def metrics(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    return Response(generate_latest(platform.metrics.registry), media_type=CONTENT_TYPE_LATEST)
