"""For operators: pools and job types. Anybody with a key may look at the pools."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.endpoint import Endpoint, Reply, path
from fairway.api.http.decoding import converted, decoded, json_reply
from fairway.api.payloads.payload_schema import schema_text
from fairway.api.type_facts import as_said, facts_of
from fairway.core.audit import Actor
from fairway.core.errors import InvalidRequest
from fairway.core.job_type import JobType
from fairway.core.pools import BY_NAME, Pool, PoolTable
from fairway.services.platform import Platform
from fairway.wire.job_type import TypeList, TypeSettings, TypeView
from fairway.wire.messages import JobRequest
from fairway.wire.operators.registry import (
    PoolList,
    PoolTerms,
    PoolView,
)

_GPU = {
    "name": "gpu",
    "slots": 1,
    "lease_mode": "durable",
    "lease_seconds": 90.0,
    "run_mode": "process",
    "checkpoint": "expected",
    "attempts": 2,
    "pickup_target_seconds": 60.0,
    "labels": ["gpu"],
    "reserved_per_mille": 800,
    "fits_seconds": None,
}
_TYPE = {
    "name": "email.send",
    "registered": True,
    "pool": "short",
    "timeout_seconds": 10.0,
    "attempts": 5,
    "dependency": "smtp",
    "warm_key": "",
    "version": "2",
    "schema": None,
    "measured_pool": "medium",
    "measured_p95_seconds": 19.7,
    "moved_at": "2026-01-31T12:00:00Z",
}
_TYPE_PATH = path("name", "The job type.", "email.send")


@Endpoint(
    "GET /v1/pools",
    keys=("operator", "tenant", "worker"),
    reply=Reply(200, "The pools.", PoolList, {"pools": [_GPU]}),
)
async def list_pools(platform: Platform) -> Response:
    """List pools

    Every pool there is: the built-in three, by duration, and those that were added.
    """
    pools = platform.registry.pools.by_name.values()
    return json_reply(PoolList(pools=[_pool_view(pool) for pool in pools]))


@Endpoint(
    "PUT /v1/pools/{name}",
    keys=("operator",),
    parameters=(path("name", "The pool's name.", "gpu"),),
    body=PoolTerms,
    body_example={"slots": 1, "lease_seconds": 90, "run_mode": "process", "labels": ["gpu"]},
    reply=Reply(200, "The pool as it is now.", PoolView, _GPU),
)
async def put_pool(request: Request, platform: Platform, actor: Actor) -> Response:
    """Add or change a pool

    By resource profile: gpu, cpp, contest. A worker serves it with `--pool gpu --label gpu`; slots
    of a worker that lacks one of the labels do not count. The built-in pools cannot be changed.
    Every server knows the change within two seconds.
    """
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
    pool = await platform.registry.put_pool(_pool(view), actor)
    return json_reply(_pool_view(pool))


#: What a pool calls otherwise than its view does.
_CALLED = {
    "slots": "slots_default",
    "attempts": "attempts_max",
    "reserved_per_mille": "reserved_share",
}


def _pool(view: PoolView) -> Pool:
    facts = {_CALLED.get(name, name): value for name, value in msgspec.structs.asdict(view).items()}
    return Pool(**facts | {"number": 0, "labels": tuple(view.labels), "estimate_seconds": 10.0})


def _pool_view(pool: Pool) -> PoolView:
    names = PoolView.__struct_fields__
    facts = {name: getattr(pool, _CALLED.get(name, name)) for name in names}
    return PoolView(**facts | {"labels": list(pool.labels)})


# -- job types ---------------------------------------------------------------------------------


@Endpoint(
    "GET /v1/job-types",
    keys=("operator",),
    reply=Reply(200, "The types.", TypeList, {"job_types": [_TYPE]}),
)
async def list_job_types(platform: Platform) -> Response:
    """List job types

    What was said of each, by its workers or by hand, and where the clock says it belongs.
    """
    registry = platform.registry
    found = sorted(registry.types.values(), key=lambda one: one.name)
    return json_reply(TypeList(job_types=[_type_view(registry.pools, one) for one in found]))


@Endpoint(
    "GET /v1/job-types/{name}",
    keys=("operator",),
    parameters=(_TYPE_PATH,),
    reply=Reply(200, "The type.", TypeView, _TYPE),
    problems=("NOT_FOUND",),
)
async def get_job_type(request: Request, platform: Platform) -> Response:
    """Get a job type

    What was said of it and what was measured. `measured_pool` beats what was declared.
    """
    registry = platform.registry
    found = await registry.type_named(request.path_params["name"])
    return json_reply(_type_view(registry.pools, found))


@Endpoint(
    "PUT /v1/job-types/{name}",
    keys=("operator",),
    parameters=(_TYPE_PATH,),
    body=TypeSettings,
    body_example={"pool": "short", "timeout_seconds": 10, "schema": {"required": ["to"]}},
    reply=Reply(200, "The type as it is now.", TypeView, _TYPE),
    problems=("UNKNOWN_POOL", "TOO_MANY_JOB_TYPES"),
)
async def put_job_type(request: Request, platform: Platform, actor: Actor) -> Response:
    """Register a job type

    Workers do this when they start; by hand it is needed for types that no worker of ours runs, or
    before the first one starts. The last word stands. With a `schema`, payloads that do not fit
    are refused when they are submitted.
    """
    wanted = await decoded(request, TypeSettings)
    name = converted({"type": request.path_params["name"]}, JobRequest).type
    registry = platform.registry
    pool = registry.pools.named(wanted.pool, "/pool").number if wanted.pool else None
    seconds = wanted.timeout_seconds
    facts = facts_of(
        wanted,
        pool=pool,
        timeout_ms=None if seconds is None else max(1, round(seconds * 1000)),
        attempts_max=wanted.attempts,
        schema=schema_text(wanted.schema),
    )
    job_type = await registry.put_type(name, facts, actor)
    return json_reply(_type_view(registry.pools, job_type))


@Endpoint(
    "DELETE /v1/job-types/{name}",
    keys=("operator",),
    parameters=(_TYPE_PATH,),
    reply=Reply(204, "It is not registered any more."),
    problems=("NOT_FOUND", "CONFLICT"),
)
async def delete_job_type(request: Request, platform: Platform, actor: Actor) -> Response:
    """Take back a job type

    Of a type that was put by hand, all that was said and measured is forgotten, and its name goes
    as others do. Its jobs are not touched: they run when a worker comes that runs them, and
    whoever names the type has it back, counted as theirs. A shared worker that is there registers
    it anew, with what its own code says. While a tenant names it, or a schedule or a pause does,
    it is listed, with `registered` false. Every server knows within two seconds.
    """
    await platform.registry.take_back_type(request.path_params["name"], actor)
    return Response(status_code=204)


def _type_view(pools: PoolTable, one: JobType) -> TypeView:
    facts, measured_ms = one.facts, one.measured_p95_ms
    return TypeView(
        name=one.name,
        pool=None if facts.pool is None else pools.by_number[facts.pool].name,
        timeout_seconds=None if facts.timeout_ms is None else facts.timeout_ms / 1000,
        attempts=facts.attempts_max,
        schema=None if facts.schema is None else msgspec.json.decode(facts.schema),
        registered=one.is_registered,
        measured_pool=None
        if one.measured_pool is None
        else pools.by_number[one.measured_pool].name,
        measured_p95_seconds=None if measured_ms is None else measured_ms / 1000,
        moved_at=one.moved_at,
        **as_said(facts),
    )
