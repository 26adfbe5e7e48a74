"""What holds a tenant's failing jobs back, and the events by which it heard of that."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, path, query
from fairway.api.http.decoding import json_reply
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.tenant import Tenant
from fairway.runtime.loops import WorkInParts
from fairway.services.platform import Platform
from fairway.wire.dead_letters import (
    CircuitView,
    EventList,
    EventView,
    QuarantineView,
    Restraints,
)

EVENT_FILTERS = (
    query("kind", "Only of this kind.", "quarantine_imposed"),
    *filters.named("limit"),
    query("cursor", "`next_cursor` of the page before. Opaque.", "4711"),
)
LAST_EVENT = (1 << 63) - 1


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
    circuits, quarantines = await platform.tenant_events.restraints(tenant.id)
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
async def lift_quarantine(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Lift a quarantine

    When you have mended the handler and would not wait for a few good runs.
    """
    name = request.path_params["type"]
    type_ = await platform.directory.find_type(name, tenant.id)
    if type_ is None or not await platform.tenant_events.lift_quarantine(tenant.id, type_):
        raise NotFound(f"Your job type {name[:128]!r} is not in quarantine.")
    return Response(status_code=204)


@Endpoint(
    "GET /v1/events",
    keys=("tenant",),
    parameters=EVENT_FILTERS,
    reply=Reply(
        200,
        "A page of events.",
        EventList,
        {
            "events": [
                {
                    "id": 4712,
                    "at": "2026-01-31T12:00:00Z",
                    "kind": "dependency_circuit_open",
                    "subject": "email.send",
                    "detail": "smtp failed for most jobs of type email.send: they wait.",
                }
            ],
            "next_cursor": None,
        },
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", *parts.QUICK),
)
async def list_events(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """List events

    What you should hear of, newest first: circuits, quarantines, throttles. Kept for seven days.
    """
    given = request.query_params
    filters.check_names(given, EVENT_FILTERS)
    limit = filters.limit(given.get("limit"))
    kind = filters.event_kind(given.get("kind"))
    found = await platform.tenant_events.events(
        tenant.id, _place(given.get("cursor")), kind, limit + 1
    )
    page = [EventView(**event._asdict()) for event in found[:limit]]
    next_cursor = str(page[-1].id) if len(found) > limit else None
    return json_reply(EventList(events=page, next_cursor=next_cursor))


def _place(cursor: str | None) -> int:
    if cursor is None:
        return LAST_EVENT
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidRequest(
            "The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor"
        )
    return int(cursor)
