"""Several regions over HTTP: who is there, whose home is where, and moving homes."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply, path
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.operators.tenants import TENANT_PATH, tenant_named
from fairway.core.audit import Actor
from fairway.core.errors import NotFound
from fairway.services.platform import Platform
from fairway.services.regions.failover import Moved
from fairway.services.regions.regions import Regions, RegionStanding
from fairway.wire.operators.regions import (
    FailbackWish,
    FailoverWish,
    HomesMoved,
    HomeView,
    HomeWish,
    RegionList,
    RegionView,
)

_REGION_PATH = path("name", "The region's name.", "eu", "eu")
_REGION = {
    "name": "eu",
    "urls": ["http://10.0.0.1:8700"],
    "is_here": True,
    "is_directory": True,
    "is_reachable": True,
    "latency_ms": None,
    "tenants": 120,
    "directory_term": 1,
    "trouble": "",
}
_REGIONS = {
    "here": "eu",
    "directory": "eu",
    "directory_term": 1,
    "lag_seconds": 0.0,
    "conflicts": 0,
    "held": 0,
    "held_in_doubt": 0,
    "regions": [_REGION],
}
_HOME = {"tenant": "acme", "region": "us", "term": 2}
_MOVED = {
    "source": "eu",
    "target": "us",
    "tenants": 120,
    "directory": "us",
    "directory_term": 2,
    "tenants_waiting": 0,
    "jobs_waiting": 0,
}
_BACK = _MOVED | {"source": "us", "target": "eu"}


@Endpoint(
    "GET /v1/regions",
    keys=("operator",),
    reply=Reply(200, "All regions.", RegionList, _REGIONS),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def list_regions(platform: Platform) -> Response:
    """List the regions

    As the region that answers sees them: who answers and how fast, which is the directory, how many
    tenants are at home where, and how many jobs wait here to be handed over.
    """
    return json_reply(_list(await _regions(platform).standing()))


@Endpoint(
    "GET /v1/tenants/{name}/home",
    keys=("operator",),
    parameters=(TENANT_PATH,),
    reply=Reply(200, "The home.", HomeView, _HOME),
    problems=("NOT_FOUND",),
)
async def get_home(request: Request, platform: Platform) -> Response:
    """Where a tenant is at home

    Its jobs are dispatched there; whatever it sends to another region is passed on.
    """
    regions = _regions(platform)
    tenant = await tenant_named(platform, request.path_params["name"])
    region, term = regions.homes.home_of(tenant.id), regions.homes.term_of(tenant.id)
    return json_reply(HomeView(tenant=tenant.name, region=region, term=term))


@Endpoint(
    "PUT /v1/tenants/{name}/home",
    keys=("operator",),
    permission="admin",
    parameters=(TENANT_PATH,),
    body=HomeWish,
    body_example={"region": "us"},
    reply=Reply(200, "The new home.", HomeView, _HOME),
    problems=("NOT_FOUND", "CONFLICT", "DIRECTORY_UNREACHABLE"),
)
async def set_home(request: Request, platform: Platform, actor: Actor) -> Response:
    """Move a tenant to another region

    New jobs go there from now on. Those that wait, and the tenant's schedules, are handed over
    within seconds; what runs ends where it runs, and so do flows that were begun. The new home must
    be there; what waits in a region that is away follows when it is back. A region that the tenant
    has just left must have handed over what waited there: 409 before that, unless you force it.
    """
    regions = _regions(platform)
    wanted = await decoded(request, HomeWish)
    known = await tenant_named(platform, request.path_params["name"])
    acts = regions.acts
    tenant = await acts.set_home(known.name, wanted.region, actor, force=wanted.force)
    region, term = regions.homes.home_of(tenant), regions.homes.term_of(tenant)
    return json_reply(HomeView(tenant=known.name, region=region, term=term))


@Endpoint(
    "POST /v1/regions/{name}/failover",
    keys=("operator",),
    permission="admin",
    parameters=(_REGION_PATH,),
    body=FailoverWish,
    body_example={"to": "us"},
    reply=Reply(200, "Its tenants moved.", HomesMoved, _MOVED),
    problems=("NOT_FOUND", "CONFLICT", "DIRECTORY_UNREACHABLE"),
)
async def fail_over_region(request: Request, platform: Platform, actor: Actor) -> Response:
    """Fail a lost region over

    All its tenants are at home in another region from now on, which dispatches what comes for them.
    If the lost one was the directory, the other becomes it. What waits in the lost region's store
    stays there until it is back: then it learns of this before it starts anything, and hands it
    over. Nobody but you knows that a region is lost: make sure that it does not run. While it
    answers this is refused with 409, unless you force it.
    """
    regions, source = _regions(platform), request.path_params["name"]
    wanted = await decoded(request, FailoverWish)
    where = regions.acts.acts_at(source, wanted.to)
    if where != regions.map.here and where in regions.map.regions:
        body = msgspec.json.encode(wanted)
        passed: Response = await request.app.state.gate.reply_of(request, where, body)
        return passed
    return json_reply(
        _moved(await regions.acts.fail_over(source, wanted.to, actor, force=wanted.force))
    )


@Endpoint(
    "POST /v1/regions/{name}/failback",
    keys=("operator",),
    permission="admin",
    parameters=(_REGION_PATH,),
    body=FailbackWish,
    body_example={},
    reply=Reply(200, "Its tenants are back.", HomesMoved, _BACK),
    problems=("NOT_FOUND", "CONFLICT", "DIRECTORY_UNREACHABLE"),
)
async def fail_back_region(request: Request, platform: Platform, actor: Actor) -> Response:
    """Move tenants back after a failover

    Those that a failover took from this region are at home there again, with what waits. It must be
    there, and have heard of the failover. The directory stays where it is. A tenant of which the
    region has still to hand over something is not moved yet: ask again while `tenants_waiting` is
    not 0.
    """
    regions, name = _regions(platform), request.path_params["name"]
    wanted = await decoded(request, FailbackWish, if_empty=b"{}")
    where = regions.homes.directory_region
    if where != regions.map.here:
        body = msgspec.json.encode(wanted)
        passed: Response = await request.app.state.gate.reply_of(request, where, body)
        return passed
    return json_reply(_moved(await regions.acts.fail_back(name, actor, force=wanted.force)))


def _regions(platform: Platform) -> Regions:
    if platform.regions is None:
        raise NotFound("There are no regions here: FAIRWAY_REGION is not set.")
    return platform.regions


def _list(found: RegionStanding) -> RegionList:
    return RegionList(
        here=found.here,
        directory=found.directory,
        directory_term=found.directory_term,
        lag_seconds=round(found.lag_seconds, 3),
        conflicts=found.conflicts,
        held=found.held,
        held_in_doubt=found.held_in_doubt,
        regions=[RegionView(**one._asdict()) for one in found.regions],
    )


def _moved(done: Moved) -> HomesMoved:
    return HomesMoved(**done._asdict())
