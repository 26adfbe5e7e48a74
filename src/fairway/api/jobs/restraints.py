"""What holds a tenant's failing jobs back, and the events by which it heard of that."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.auth import tenant_of
from fairway.api.http.decoding import json_reply
from fairway.core.errors import InvalidRequest, NotFound
from fairway.runtime.loops import WorkInParts
from fairway.services.platform import Platform
from fairway.wire.dead_letters import (
    CircuitView,
    EventList,
    EventView,
    QuarantineView,
    Restraints,
)

EVENT_FILTERS = ("kind", "limit", "cursor")
LAST_EVENT = (1 << 63) - 1


async def restraints(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    circuits, quarantines = await platform.bulletin.restraints(tenant.id)
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


async def lift_quarantine(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    name = request.path_params["type"]
    type_ = await platform.directory.find_type(name, tenant.id)
    if type_ is None or not await platform.bulletin.lift_quarantine(tenant.id, type_):
        raise NotFound(f"Your job type {name[:128]!r} is not in quarantine.")
    return Response(status_code=204)


async def list_events(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    query = request.query_params
    filters.check_names(query, EVENT_FILTERS)
    limit = filters.limit(query.get("limit"))
    kind = filters.event_kind(query.get("kind"))
    found = await platform.bulletin.events(tenant.id, _place(query.get("cursor")), kind, limit + 1)
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
