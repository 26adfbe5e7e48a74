"""A request that means all parts of a tenant: each answers by itself, and the replies become one.

The endpoint's own handler is asked for each part in turn, as if its tenant were that part; a part
that another server owns is asked there, by the same way as ever (the header `Fairway-Part` goes
along, so nobody asks all parts again). If one of them cannot answer, nothing is: half of a list
would look like all of it. An operator who names the tenant is answered in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.auth import CALLER, platform_of
from fairway.api.http.asgi import problem_reply
from fairway.api.tenant_parts.meant import BY_ALL, PART
from fairway.api.tenant_parts.merging import MERGES, PAGES, Body, pages
from fairway.api.tenant_parts.replies import in_one_piece, of_part
from fairway.api.waiting_parts import wait_for_all
from fairway.core.errors import NotFound
from fairway.core.tenant import Tenant
from fairway.services.backpressure.owner_slots import OwnerSlots
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal

Answer: TypeAlias = Callable[[Request], Awaitable[Response]]

WAIT = "POST /v1/jobs/wait"
LIFT = "DELETE /v1/quarantines/{type}"  # which one part may have, and another not
#: Where an operator names the tenant.
NAMED_IN = {
    "GET /v1/tenants/{name}/limits": "name",
    "GET /v1/usage/attempts": "tenant",
    "GET /v1/statements/{month}": "tenant",
    "GET /v1/shares": "tenant",
    "GET /v1/history": "name",
}
BY_LIMIT = ("GET /v1/jobs", "GET /v1/dead-letters")
LIGHT_BYTES = 256 << 10  # of replies: what is more is merged in a thread


def merge_slots() -> OwnerSlots:
    """What is held of one request: a page of each part."""
    return OwnerSlots(
        "lists of all your shards are being made", per_owner=2, in_all=8, wait_seconds=3.0
    )


async def answer_of_all(request: Request, call: str, answer: Answer) -> Response | None:
    """The reply of all parts together; None: one tenant, or part, is meant, and answers."""
    tenant = _tenant_meant(request, call)
    if tenant is None:
        return None
    places: OwnerSlots = request.app.state.merges
    if call == WAIT:
        return await wait_for_all(request, platform_of(request), tenant, answer, _each)
    async with places.held(tenant.id):
        told: list[Response] = []
        for place in range(len(tenant.parts)):
            asked = _told(_each(request, tenant, place), answer, call)
            one = await of_part(asked, place, len(tenant.parts))
            if one.status_code >= 400 and call != LIFT:
                return one
            told.append(one)
        if call == LIFT:
            return min(told, key=lambda one: one.status_code)
        return await _merged(request, call, [bytes(one.body) for one in told])


def _tenant_meant(request: Request, call: str) -> Tenant | None:
    """The tenant whose parts all are meant."""
    platform = platform_of(request)
    if not platform.directory.parts or PART.decode() in request.headers:
        return None
    caller: Principal | None = request.scope.get(CALLER)
    if caller is None:
        return None
    if caller.tenant is not None:
        return caller.tenant if caller.tenant.parts and call in BY_ALL else None
    return _named(request, platform, call)


def _named(request: Request, platform: Platform, call: str) -> Tenant | None:
    """The tenant that an operator names."""
    field, given = NAMED_IN.get(call), request.query_params
    if field is None or (call == "GET /v1/history" and given.get("of") != "tenant"):
        return None
    name = request.path_params.get(field) or given.get(field)
    number = platform.directory.tenant_ids.get(name or "")
    found = None if number is None else platform.directory.tenants[number]
    return found if found is not None and found.parts else None


def _each(request: Request, tenant: Tenant, place: int) -> Request:
    """The same request, of one part: by its own name, wherever the whole one's stands."""
    platform, scope = platform_of(request), dict(request.scope)
    part = platform.directory.parts.all_of(tenant)[place]
    caller: Principal = scope[CALLER]
    if caller.tenant is not None:
        scope[CALLER] = caller._replace(tenant=part)
    scope["headers"] = [*scope["headers"], (PART, b"%d" % place)]
    # A job type may have the same name as its tenant.
    names = {"tenant", "name"} if request.query_params.get("of") == "tenant" else {"tenant"}
    query = [
        (field, part.name if field in names and said == tenant.name else said)
        for field, said in request.query_params.multi_items()
    ]
    scope["query_string"] = urlencode(query).encode()
    if scope["path_params"].get("name") == tenant.name:
        scope["path_params"] = scope["path_params"] | {"name": part.name}
        before, _, after = scope["path"].rpartition(f"/{tenant.name}/")  # it may be named "v1"
        scope["path"] = f"{before}/{part.name}/{after}"
    return Request(scope, request.receive)


async def _told(request: Request, answer: Answer, call: str) -> Response:
    try:
        return await in_one_piece(request, await answer(request))
    except NotFound as missing:
        if call != LIFT:
            raise
        status, body, headers = problem_reply(missing)
        return Response(body, status, {name.decode(): value.decode() for name, value in headers})


async def _merged(request: Request, call: str, bodies: list[bytes]) -> Response:
    limit = None
    if call in BY_LIMIT:
        limit = filters.limit(request.query_params.get("limit"))
    if sum(map(len, bodies)) <= LIGHT_BYTES:
        merged = _merge(call, bodies, limit)
    else:
        merged = await asyncio.to_thread(_merge, call, bodies, limit)
    reply = Response(msgspec.json.encode(merged), media_type="application/json")
    if call == "GET /v1/jobs" and merged["next_cursor"]:
        query = urlencode(dict(request.query_params) | {"cursor": merged["next_cursor"]})
        reply.headers["link"] = f'<{request.scope["path"]}?{query}>; rel="next"'
    return reply


def _merge(call: str, texts: list[bytes], limit: int | None) -> Body:
    bodies: list[Body] = [msgspec.json.decode(text) for text in texts]
    if call in PAGES:
        return pages(bodies, *PAGES[call], limit)
    return MERGES[call](bodies)
