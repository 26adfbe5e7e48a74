"""For operators: a tenant as a whole is suspended, resumed, deleted, restored."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.operators.tenants import ACME, TENANT_PATH, tenant_to_change, tenant_view
from fairway.core.audit import Actor
from fairway.core.errors import InvalidRequest
from fairway.services.platform import Platform
from fairway.wire.operators.tenancy import Suspension, TenantView

_SUSPENDED: dict[str, Any] = ACME | {
    "state": "suspended",
    "reason": "The invoice of March is open.",
    "running": "finish",
    "state_since": "2026-01-31T12:00:00Z",
}
_DELETED = _SUSPENDED | {
    "state": "deleted",
    "reason": "It was deleted.",
    "running": "cancel",
    "kept_until": "2026-03-02T12:00:00Z",
}
_SUSPEND_TOO = query(
    "suspend",
    "`true` suspends it first; else only a suspended tenant is deleted.",
    "true",
    schema={"type": "boolean", "default": False},
)


@Endpoint(
    "POST /v1/tenants/{name}/suspend",
    keys=("operator",),
    permission="admin",
    parameters=(TENANT_PATH,),
    body=Suspension,
    body_example={"running": "finish", "reason": "The invoice of March is open."},
    reply=Reply(200, "The tenant, suspended.", TenantView, _SUSPENDED),
    problems=("NOT_FOUND", "CONFLICT"),
)
async def suspend_tenant(request: Request, platform: Platform, actor: Actor) -> Response:
    """Suspend a tenant

    Its keys hear 403 `TENANT_SUSPENDED` with your reason, open streams and its own workers'
    sessions end, none of its jobs starts, its schedules do not tick and its transactions wait: here
    at once, on every server within five seconds. Jobs that shared workers run finish, or are
    cancelled; their results are recorded either way. Nothing is lost. Suspend it again to change
    the choice; its first reason stays, and is in the answer, unless you say `replace_reason`.
    """
    wanted = await decoded(request, Suspension)
    if wanted.reason is not None and not wanted.reason.isprintable():
        raise InvalidRequest("A reason is one line of text.", field="/reason")
    known = await tenant_to_change(platform, request.path_params["name"])
    tenant = await platform.tenant_states.suspend(
        known.name,
        wanted.reason,
        replace_reason=wanted.replace_reason,
        cancels_running=None if wanted.running is None else wanted.running == "cancel",
        actor=actor,
    )
    return json_reply(tenant_view(platform, tenant))


@Endpoint(
    "POST /v1/tenants/{name}/resume",
    keys=("operator",),
    permission="admin",
    parameters=(TENANT_PATH,),
    reply=Reply(200, "The tenant, active.", TenantView, ACME),
    problems=("NOT_FOUND", "CONFLICT"),
)
async def resume_tenant(request: Request, platform: Platform, actor: Actor) -> Response:
    """Resume a suspended tenant

    All is as it was: its keys open what they did and what waits may start. Its schedules go on
    within half a minute, and catch up as after an outage.
    """
    known = await tenant_to_change(platform, request.path_params["name"])
    tenant = await platform.tenant_states.resume(known.name, actor)
    return json_reply(tenant_view(platform, tenant))


@Endpoint(
    "DELETE /v1/tenants/{name}",
    keys=("operator",),
    permission="admin",
    parameters=(TENANT_PATH, _SUSPEND_TOO),
    reply=Reply(200, "The tenant, deleted.", TenantView, _DELETED),
    problems=("NOT_FOUND", "CONFLICT", "INVALID_REQUEST"),
)
async def delete_tenant(request: Request, platform: Platform, actor: Actor) -> Response:
    """Delete a tenant

    Its keys and SQL logins are gone at once; its waiting jobs are cancelled and its schedules
    removed soon after, in short steps; its history goes with the retention. Its name stays taken
    until `kept_until`, so that no other tenant is taken for it, and until then it can be restored.
    """
    filters.check_names(request.query_params, (_SUSPEND_TOO,))
    may_suspend = request.query_params.get("suspend", "false")
    if may_suspend not in ("true", "false"):
        raise InvalidRequest("suspend is true or false.", field="suspend")
    known = await tenant_to_change(platform, request.path_params["name"])
    tenant = await platform.tenant_states.delete(
        known.name, may_suspend=may_suspend == "true", actor=actor
    )
    return json_reply(tenant_view(platform, tenant))


@Endpoint(
    "POST /v1/tenants/{name}/restore",
    keys=("operator",),
    permission="admin",
    parameters=(TENANT_PATH,),
    reply=Reply(200, "The tenant, suspended.", TenantView, _SUSPENDED),
    problems=("NOT_FOUND", "CONFLICT"),
)
async def restore_tenant(request: Request, platform: Platform, actor: Actor) -> Response:
    """Restore a deleted tenant

    It is suspended then: resume it, and make it new keys. What was cancelled, removed or revoked
    when it was deleted stays so; its history is there.
    """
    known = await tenant_to_change(platform, request.path_params["name"])
    tenant = await platform.tenant_states.restore(known.name, actor)
    return json_reply(tenant_view(platform, tenant))
