"""Autoscaling over HTTP: how many workers pools should have, why, and saying otherwise.

Fleets read it with the key of a shared worker. To a tenant's own workers the platform's fleet is
nothing: they see no pools here.
"""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, path, query
from fairway.api.http.decoding import decoded, json_reply
from fairway.core.audit import Actor
from fairway.core.autoscale.facts import Override, RecordedDecision, ScaleSettings
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.unix_time import from_unix_ms
from fairway.services.autoscale.autoscaling import PoolStanding
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.operators.autoscale import (
    AutoscaleList,
    AutoscaleSettings,
    AutoscaleView,
    OverrideView,
    OverrideWish,
    ScaleDecisionList,
    ScaleDecisionView,
)

LAST = (1 << 63) - 1

_POOL = path("pool", "The pool's name.", "short", "short")
_VIEW = {
    "pool": "short",
    "mode": "on",
    "workers": 3,
    "busy_workers": 2,
    "closed_workers": 0,
    "slots": 24,
    "wanted_workers": 4,
    "minimum_workers": 1,
    "maximum_workers": 20,
    "down_after_seconds": None,
    "backlog_slot_seconds": 12.5,
    "oldest_runnable_age_seconds": 0.4,
    "utilisation": 0.7,
    "may_go": [],
    "override": None,
}
_DECISION = {
    "at": "2026-01-31T12:00:00Z",
    "pool": "short",
    "from_workers": 3,
    "to_workers": 4,
    "code": "BACKLOG",
    "reason": "From 3 to 4 workers: 50 jobs of 12.5 slot-seconds could run, and 24 of 24 slots are"
    " in use, 23.1 in the mean of the last seconds.",
    "dry_run": False,
    "facts": {"workers": 3, "busy_slots": 24, "backlog_slot_seconds": 12.5},
}
_FILTERS = (
    query("pool", "Only of this pool.", "short"),
    *filters.named("limit"),
    query("cursor", "`next_cursor` of the page before. Opaque.", "4711"),
)


@Endpoint(
    "GET /v1/autoscale",
    keys=("operator", "worker"),
    reply=Reply(200, "Every pool.", AutoscaleList, {"pools": [_VIEW]}),
    problems=parts.QUICK,
)
async def list_autoscale(platform: Platform, principal: Principal) -> Response:
    """How many workers pools should have

    Of every pool: its workers, what waits for them and could start, and how many there should be.
    Fleets on worker machines read this and start or end processes. What is capped, paused or
    parked does not count.
    """
    if principal.tenant is not None:
        return json_reply(AutoscaleList(pools=[]))
    found = await platform.insight.autoscaling.standings()
    return json_reply(AutoscaleList(pools=[_view(one) for one in found]))


@Endpoint(
    "GET /v1/autoscale/decisions",
    keys=("operator",),
    parameters=_FILTERS,
    reply=Reply(
        200, "A page of decisions.", ScaleDecisionList, {"items": [_DECISION], "next_cursor": None}
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", "NOT_FOUND", *parts.QUICK),
)
async def list_autoscale_decisions(request: Request, platform: Platform) -> Response:
    """Why there are so many workers

    Every change of mind of the autoscaler, newest first, with the numbers that it was made from;
    those of a dry run too.
    """
    given = request.query_params
    filters.check_names(given, _FILTERS)
    limit, below = filters.limit(given.get("limit")), _place(given.get("cursor"))
    autoscaling = platform.insight.autoscaling
    found = await autoscaling.decisions(given.get("pool"), below, limit + 1)
    next_cursor = str(found[limit - 1].id) if len(found) > limit else None
    items = [_decision(one) for one in found[:limit]]
    return json_reply(ScaleDecisionList(items=items, next_cursor=next_cursor))


@Endpoint(
    "GET /v1/autoscale/{pool}",
    keys=("operator", "worker"),
    parameters=(_POOL,),
    reply=Reply(200, "The pool.", AutoscaleView, _VIEW),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def get_autoscale(request: Request, platform: Platform, principal: Principal) -> Response:
    """How many workers a pool should have

    For KEDA's `metrics-api` scaler: `valueLocation: wanted_workers`, `targetValue: "1"`.
    """
    if principal.tenant is not None:
        raise NotFound("Your key is a tenant's: the platform's own workers are not yours to see.")
    return json_reply(_view(await platform.insight.autoscaling.standing(_named(request))))


@Endpoint(
    "PUT /v1/autoscale/{pool}",
    keys=("operator",),
    parameters=(_POOL,),
    body=AutoscaleSettings,
    body_example={"mode": "on", "minimum_workers": 1, "maximum_workers": 20},
    reply=Reply(200, "The pool as it is now.", AutoscaleView, _VIEW),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def put_autoscale(request: Request, platform: Platform, actor: Actor) -> Response:
    """Set how many workers a pool may have

    Begin with `dry_run` and read the decisions. While it is on, workers that are to be spared get
    no more jobs and are ended once they are idle; a busy one is never picked.
    """
    wanted = await decoded(request, AutoscaleSettings)
    if wanted.minimum_workers > wanted.maximum_workers:
        raise InvalidRequest(
            f"The minimum of {wanted.minimum_workers} workers is above the maximum of"
            f" {wanted.maximum_workers}.",
            field="/minimum_workers",
        )
    settings = ScaleSettings(**msgspec.structs.asdict(wanted))
    autoscaling = platform.insight.autoscaling
    return json_reply(_view(await autoscaling.put_settings(_named(request), settings, actor)))


@Endpoint(
    "PUT /v1/autoscale/{pool}/override",
    keys=("operator",),
    parameters=(_POOL,),
    body=OverrideWish,
    body_example={"workers": 10, "for_seconds": 3600},
    reply=Reply(200, "The pool as it is now.", AutoscaleView, _VIEW),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def put_override(request: Request, platform: Platform, actor: Actor) -> Response:
    """Say how many workers a pool should have, for a while

    Whatever waits. Fewer come about as workers become idle. It ends by itself.
    """
    wanted = await decoded(request, OverrideWish)
    found = await platform.insight.autoscaling.put_override(
        _named(request), wanted.workers, wanted.for_seconds, actor
    )
    return json_reply(_view(found))


@Endpoint(
    "DELETE /v1/autoscale/{pool}/override",
    keys=("operator",),
    parameters=(_POOL,),
    reply=Reply(200, "The pool as it is now.", AutoscaleView, _VIEW),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def drop_override(request: Request, platform: Platform, actor: Actor) -> Response:
    """End an override

    The autoscaler decides again, with its usual patience.
    """
    return json_reply(
        _view(await platform.insight.autoscaling.drop_override(_named(request), actor))
    )


def _named(request: Request) -> str:
    name: str = request.path_params["pool"]
    return name


def _view(one: PoolStanding) -> AutoscaleView:
    facts = one.facts
    return AutoscaleView(
        pool=one.pool,
        mode=one.settings.mode,
        workers=0 if facts is None else facts.workers,
        busy_workers=0 if facts is None else facts.busy_workers,
        closed_workers=0 if facts is None else facts.closed_workers,
        slots=0 if facts is None else facts.slots,
        wanted_workers=one.wanted,
        minimum_workers=one.settings.minimum_workers,
        maximum_workers=one.settings.maximum_workers,
        down_after_seconds=one.settings.down_after_seconds,
        backlog_slot_seconds=0.0 if facts is None else round(facts.backlog_slot_seconds, 3),
        oldest_runnable_age_seconds=0.0 if facts is None else facts.oldest_runnable_age_seconds,
        utilisation=0.0 if facts is None else round(facts.utilisation, 3),
        may_go=one.may_go,
        override=None if one.override is None else _override(one.override),
    )


def _override(one: Override) -> OverrideView:
    return OverrideView(workers=one.workers, until=from_unix_ms(one.until_ms), by=one.by)


def _decision(one: RecordedDecision) -> ScaleDecisionView:
    told = {name: value for name, value in one._asdict().items() if name != "id"}
    return ScaleDecisionView(**told | {"facts": msgspec.Raw(one.facts.encode())})


def _place(cursor: str | None) -> int:
    if cursor is None:
        return LAST
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidRequest(
            "The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor"
        )
    return int(cursor)
