"""What holds a tenant's failing jobs back. That it does is in its log of events."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply, path
from fairway.api.http.decoding import json_reply
from fairway.core.audit import Actor
from fairway.core.errors import NotFound
from fairway.core.tenant import Tenant
from fairway.runtime.loops import WorkInParts
from fairway.services.platform import Platform
from fairway.wire.dead_letters import (
    CircuitView,
    QuarantineView,
    Restraints,
)


@Endpoint(
    "GET /v1/restraints",
    keys=("tenant",),
    reply=Reply(
        200,
        "What is in force now.",
        Restraints,
        {
            "circuits": [
                {
                    "type": "email.send",
                    "dependency": "smtp",
                    "opened_at": "2026-01-31T12:00:00Z",
                    "next_probe_seconds": 7.5,
                }
            ],
            "quarantines": [{"type": "report.build", "since": "2026-01-31T11:00:00Z"}],
        },
    ),
)
async def list_restraints(platform: Platform, tenant: Tenant) -> Response:
    """See what holds failing jobs back

    Dependencies that are away, and job types in quarantine.
    """
    circuits, quarantines = await platform.tenant_restraints.restraints(tenant.id)
    names, work, said = platform.directory, WorkInParts(), Restraints(circuits=[], quarantines=[])
    for key, found in circuits.items():
        view = CircuitView(
            type=await names.type_name(key.type),
            dependency=key.dependency,
            opened_at=found.opened_at,
            next_probe_seconds=found.record.probe_in_us / 1e6,
        )
        said.circuits.append(view)
        await work.let_others()
    for type_, since in quarantines.items():
        said.quarantines.append(QuarantineView(type=await names.type_name(type_), since=since))
        await work.let_others()
    return json_reply(said)


@Endpoint(
    "DELETE /v1/quarantines/{type}",
    keys=("tenant",),
    parameters=(path("type", "The job type.", "report.build"),),
    reply=Reply(204, "Its jobs have all their attempts again."),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def lift_quarantine(
    request: Request, platform: Platform, tenant: Tenant, actor: Actor
) -> Response:
    """Lift a quarantine

    When you have mended the handler and would not wait for a few good runs.
    """
    name = request.path_params["type"]
    type_ = await platform.directory.find_type(name, tenant.id)
    lift = platform.tenant_restraints.lift_quarantine
    if type_ is None or not await lift(tenant.id, type_, name, actor):
        raise NotFound(f"Your job type {name[:128]!r} is not in quarantine.")
    return Response(status_code=204)
