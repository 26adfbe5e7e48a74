"""`/v1/tenants/{name}/spend-cap` and `/v1/spend-caps`; `/v1/spend-cap` for the tenant itself."""

from __future__ import annotations

from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply, path
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.operators.tenants import tenant_named
from fairway.core.audit import Actor
from fairway.core.billing.spend_cap import SpendCap, Stage
from fairway.core.errors import NotFound
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant, several_shards
from fairway.services.platform import Platform
from fairway.wire.billing import SpendCapHolds, SpendCapTerms, SpendCapView

_STAGES: dict[Stage, Literal["below", "near", "reached", "paused"]] = {
    Stage.BELOW: "below",
    Stage.NEAR: "near",
    Stage.REACHED: "reached",
    Stage.PAUSED: "paused",
}
HELD_MAX = 1000  # names in one answer
_NAME = path("name", "The tenant's name.", "acme", "$TENANT")
_VIEW = {
    "tenant": "acme",
    "cap_micros": 50_000_000,
    "grace_seconds": 3600,
    "spent_micros": 41_000_000,
    "stage": "near",
    "reached_at": None,
}


@Endpoint(
    "GET /v1/spend-cap",
    keys=("tenant",),
    reply=Reply(200, "What may be spent, and what was.", SpendCapView, _VIEW),
    problems=parts.SLOW,
)
async def get_own_spend_cap(platform: Platform, tenant: Tenant) -> Response:
    """What you may spend this month

    The cap that an operator set, what is spent until now, and where that stands. You hear of it by
    events: `spend.near` at 80 %, `spend.reached`, `spend.paused` when no more jobs start,
    `spend.resumed`.
    """
    return json_reply(await _view(platform, tenant, tenant.id))


@Endpoint(
    "GET /v1/tenants/{name}/spend-cap",
    keys=("operator",),
    parameters=(_NAME,),
    reply=Reply(200, "What may be spent, and what was.", SpendCapView, _VIEW),
    problems=("NOT_FOUND", *parts.SLOW),
)
async def get_spend_cap(request: Request, platform: Platform) -> Response:
    """What a tenant may spend this month

    `stage` is `none` where there is no cap.
    """
    tenant = await tenant_named(platform, request.path_params["name"])
    return json_reply(await _view(platform, tenant, None))


@Endpoint(
    "GET /v1/spend-caps",
    keys=("operator",),
    reply=Reply(200, "Whom caps hold.", SpendCapHolds, {"tenants": ["acme"], "count": 1}),
)
async def list_spend_cap_holds(platform: Platform) -> Response:
    """Whom spend caps hold

    Tenants that have spent what they may this month and whose grace is over: no more of their jobs
    start until the cap is raised or the month is over.
    """
    held = platform.billing.spend_caps.held()
    names = sorted(platform.directory.name_of(one) for one in held)
    return json_reply(SpendCapHolds(tenants=names[:HELD_MAX], count=len(names)))


@Endpoint(
    "PUT /v1/tenants/{name}/spend-cap",
    keys=("operator",),
    permission="admin",
    parameters=(_NAME,),
    body=SpendCapTerms,
    body_example={"cap_micros": 50_000_000},
    reply=Reply(200, "It holds.", SpendCapView, _VIEW),
    problems=("NOT_FOUND", "SEVERAL_SHARDS"),
)
async def put_spend_cap(request: Request, platform: Platform, actor: Actor) -> Response:
    """Set what a tenant may spend

    In a month of UTC. When it is spent the tenant is told, and after the grace no more of its jobs
    start: they are accepted and wait, and what runs, runs on. They start again when the cap is
    raised or the month is over. A pause of somebody's is another thing, and stays.
    """
    tenant = await tenant_named(platform, request.path_params["name"])
    if tenant.parts or tenant.part_of:
        raise several_shards("A spend cap is for a tenant in one shard.")
    wanted = await decoded(request, SpendCapTerms)
    cap = SpendCap(wanted.cap_micros, wanted.grace_seconds)
    await platform.billing.spend_caps.put(tenant.id, tenant.name, cap, actor)
    return json_reply(await _view(platform, tenant, None))


@Endpoint(
    "DELETE /v1/tenants/{name}/spend-cap",
    keys=("operator",),
    permission="admin",
    parameters=(_NAME,),
    reply=Reply(204, "There is no cap any more."),
    problems=("NOT_FOUND",),
)
async def drop_spend_cap(request: Request, platform: Platform, actor: Actor) -> Response:
    """Let a tenant spend what it likes

    Jobs that the cap held start again.
    """
    tenant = await tenant_named(platform, request.path_params["name"])
    if not await platform.billing.spend_caps.drop(tenant.id, tenant.name, actor):
        raise NotFound(f"The tenant {tenant.name} has no spend cap.")
    return Response(status_code=204)


async def _view(platform: Platform, tenant: Tenant, asker: TenantId | None) -> SpendCapView:
    found = await platform.billing.spend_caps.of(tenant.id, asker)
    if found is None:
        return SpendCapView(
            tenant=tenant.name,
            cap_micros=None,
            grace_seconds=None,
            spent_micros=None,
            stage="none",
            reached_at=None,
        )
    return SpendCapView(
        tenant=tenant.name,
        cap_micros=found.row.cap_micros,
        grace_seconds=found.row.grace_seconds,
        spent_micros=found.spent_micros,
        stage=_STAGES[Stage(found.row.stage)],
        reached_at=found.row.reached_at,
    )
