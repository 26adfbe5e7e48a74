"""For operators: pools, job types, and the audit. Anybody with a key may look at the pools."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import operator_of, principal_of
from fairway.api.http.decoding import converted, decoded, json_reply
from fairway.api.payloads.payload_schema import schema_text
from fairway.core.errors import InvalidRequest
from fairway.core.job_type import JobType, TypeFacts
from fairway.core.pools import BY_NAME, Pool, PoolTable
from fairway.services.platform import Platform
from fairway.services.registry.tenants_and_keys import Principal
from fairway.wire.messages import JobRequest
from fairway.wire.registry import (
    AuditList,
    AuditView,
    PoolList,
    PoolTerms,
    PoolView,
    TypeList,
    TypeSettings,
    TypeView,
)

AUDIT_PAGE = 100
LAST = (1 << 63) - 1


async def list_pools(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    await principal_of(request.scope, platform.directory)
    pools = platform.registry.pools.by_name.values()
    return json_reply(PoolList(pools=[_pool_view(pool) for pool in pools]))


async def put_pool(request: Request) -> Response:
    platform, principal = await _as_operator(request)
    terms = await decoded(request, PoolTerms)
    view = converted(msgspec.structs.asdict(terms) | request.path_params, PoolView)
    if view.name in BY_NAME:
        raise InvalidRequest(
            f"The pool {view.name} is built in; add another with the terms you need.", field="name"
        )
    if view.lease_mode == "lazy" and view.checkpoint != "none":
        raise InvalidRequest(
            "A lazy lease is not on disk when a run begins, so it keeps no checkpoints: set"
            " lease_mode to durable, or checkpoint to none.",
            field="/checkpoint",
        )
    pool = await platform.registry.put_pool(_pool(view), principal.key_id)
    return json_reply(_pool_view(pool))


def _pool(view: PoolView) -> Pool:
    return Pool(
        number=0, name=view.name, lease_mode=view.lease_mode, lease_seconds=view.lease_seconds,
        slots_default=view.slots, run_mode=view.run_mode, checkpoint=view.checkpoint,
        attempts_max=view.attempts, pickup_target_seconds=view.pickup_target_seconds,
        estimate_seconds=10.0, labels=tuple(view.labels), reserved_share=view.reserved_per_mille,
    )  # fmt: skip


def _pool_view(pool: Pool) -> PoolView:
    return PoolView(
        name=pool.name, slots=pool.slots_default, lease_mode=pool.lease_mode,
        lease_seconds=pool.lease_seconds, run_mode=pool.run_mode, checkpoint=pool.checkpoint,
        attempts=pool.attempts_max, pickup_target_seconds=pool.pickup_target_seconds,
        labels=list(pool.labels), reserved_per_mille=pool.reserved_share,
        fits_seconds=pool.fits_seconds,
    )  # fmt: skip


# -- job types ---------------------------------------------------------------------------------


async def list_types(request: Request) -> Response:
    platform, _ = await _as_operator(request)
    registry = platform.registry
    found = sorted(registry.types.values(), key=lambda one: one.name)
    return json_reply(TypeList(job_types=[_type_view(registry.pools, one) for one in found]))


async def one_type(request: Request) -> Response:
    platform, _ = await _as_operator(request)
    registry = platform.registry
    found = await registry.type_named(request.path_params["name"])
    return json_reply(_type_view(registry.pools, found))


async def put_type(request: Request) -> Response:
    platform, principal = await _as_operator(request)
    wanted = await decoded(request, TypeSettings)
    name = converted({"type": request.path_params["name"]}, JobRequest).type
    registry = platform.registry
    pool = registry.pools.named(wanted.pool, "/pool").number if wanted.pool else None
    seconds = wanted.timeout_seconds
    facts = TypeFacts(
        pool,
        None if seconds is None else max(1, round(seconds * 1000)),
        wanted.attempts,
        wanted.dependency,
        wanted.warm_key,
        wanted.version,
        schema_text(wanted.schema),
    )
    job_type = await registry.put_type(name, facts, principal.key_id)
    return json_reply(_type_view(registry.pools, job_type))


async def delete_type(request: Request) -> Response:
    platform, principal = await _as_operator(request)
    await platform.registry.take_back_type(request.path_params["name"], principal.key_id)
    return Response(status_code=204)


def _type_view(pools: PoolTable, one: JobType) -> TypeView:
    facts, measured_ms = one.facts, one.measured_p95_ms
    return TypeView(
        name=one.name,
        pool=None if facts.pool is None else pools.by_number[facts.pool].name,
        timeout_seconds=None if facts.timeout_ms is None else facts.timeout_ms / 1000,
        attempts=facts.attempts_max,
        dependency=facts.dependency,
        warm_key=facts.warm_key,
        version=facts.version,
        schema=None if facts.schema is None else msgspec.json.decode(facts.schema),
        registered=one.is_registered,
        measured_pool=None
        if one.measured_pool is None
        else pools.by_number[one.measured_pool].name,
        measured_p95_seconds=None if measured_ms is None else measured_ms / 1000,
        moved_at=one.moved_at,
    )


# -- audit -------------------------------------------------------------------------------------


async def list_audit(request: Request) -> Response:
    platform, _ = await _as_operator(request)
    text = request.query_params.get("before", str(LAST))
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= LAST):
        raise InvalidRequest("before is the `next_before` of the page before.", field="before")
    found = await platform.registry.audit(int(text[:20]), AUDIT_PAGE)
    entries = [AuditView(**entry._asdict()) for entry in found]
    next_before = entries[-1].id if len(entries) == AUDIT_PAGE else None
    return json_reply(AuditList(entries=entries, next_before=next_before))


async def _as_operator(request: Request) -> tuple[Platform, Principal]:
    platform: Platform = request.app.state.platform
    return platform, await operator_of(request.scope, platform.directory)
