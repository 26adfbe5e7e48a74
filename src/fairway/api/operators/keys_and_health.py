"""For operators and machines: keys, health, metrics."""

from __future__ import annotations

import asyncio
import re

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import operator_of, principal_of
from fairway.api.http.decoding import decoded, json_reply
from fairway.core.errors import InvalidRequest, NotFound
from fairway.runtime.random_ids import new_api_key
from fairway.runtime.telemetry import Metrics
from fairway.services.platform import Platform
from fairway.wire.operator import Health, KeyAdded, NewKey

METRICS_SECONDS = 0.1  # a stranger may ask as often as it likes; a look takes milliseconds
KEY_ID = re.compile(r"[0-9a-f]{1,64}")


async def add_key(request: Request) -> Response:
    platform = await _as_operator(request)
    wanted = await decoded(request, NewKey)
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
    return json_reply(added, 201)


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


# -- health ------------------------------------------------------------------------------------


async def livez(request: Request) -> Response:
    """The event loop turns. Never touches the database."""
    return json_reply(Health(status="ok"))


async def readyz(request: Request) -> Response:
    """Work can be accepted: the store answers, takes jobs, and somebody owns every shard."""
    platform: Platform = request.app.state.platform
    checks = await platform.readiness.checks()
    ok = all(checks.values())
    return json_reply(Health(status="ok" if ok else "not ready", checks=checks), 200 if ok else 503)


async def metrics(request: Request) -> Response:
    """Anybody may ask; job types, which tell what customers do, are named to operators only."""
    text: MetricsText = request.app.state.metrics_text
    names_types = await _may_hear_types(request)
    return Response(text.now(names_types=names_types), media_type=CONTENT_TYPE_LATEST)


async def _may_hear_types(request: Request) -> bool:
    platform: Platform = request.app.state.platform
    is_told = platform.settings.metrics_name_types
    if "authorization" in request.headers:  # a wrong key is told so, not given less in silence
        principal = await principal_of(request.scope, platform.directory)
        return is_told or principal.scope == "operator"
    return is_told


class MetricsText:
    """The metrics as text, a moment old: anybody may ask for it, as often as they like."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._text, self._by_type, self._good_until = b"", b"", 0.0

    def now(self, *, names_types: bool) -> bytes:
        now = asyncio.get_running_loop().time()
        if now >= self._good_until:
            self._text = generate_latest(self._metrics.registry)
            self._by_type = generate_latest(self._metrics.by_type)
            self._good_until = now + METRICS_SECONDS
        return self._text + self._by_type if names_types else self._text
