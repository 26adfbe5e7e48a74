"""`/v1/dead-letters/…`: replay or discard many dead letters, and see how far that has come."""

from __future__ import annotations

import uuid
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, ReplyHeader, path
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.jobs.dead_letters import NARROWING, body_bytes_max, given_payload, wanted_filter
from fairway.core.errors import NotFound
from fairway.core.failure.dead_letter import Action, DeadFilter
from fairway.core.failure.fingerprint import as_text
from fairway.core.tenant import Tenant
from fairway.services.jobs.dead_letters import COUNT_MAX
from fairway.services.platform import Platform
from fairway.wire.dead_letters import (
    ActionList,
    ActionView,
    DiscardMany,
    Matched,
    ReplayMany,
)

DISCARDS_PER_SECOND = 10_000


_ACTION: dict[str, Any] = {
    "id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "kind": "replay",
    "state": "running",
    "type": "email.send",
    "pool": None,
    "fingerprint": None,
    "per_second": 100,
    "matched": 4200,
    "done": 1300,
    "created_at": "2026-01-31T13:00:00Z",
    "finished_at": None,
    "error": None,
}

_ACTION_PATH = path(
    "id", "The action's id.", _ACTION["id"], "$ACTION", schema={"type": "string", "format": "uuid"}
)

_STARTED = Reply(
    202,
    "The action runs: ask for its progress at `Location`.",
    ActionView,
    _ACTION | {"done": 0},
    headers=(
        ReplyHeader(
            "Location",
            "Where to ask how far it has come.",
            f"/v1/dead-letters/actions/{_ACTION['id']}",
        ),
    ),
)

_COUNTED = Reply(
    200,
    "A dry run: how many match. Nothing was changed.",
    Matched,
    {"matched": 4200, "is_exact": True},
)


@Endpoint(
    "POST /v1/dead-letters/replay",
    keys=("tenant",),
    parameters=NARROWING,
    body=ReplayMany,
    body_example={"per_second": 100, "dry_run": False},
    replies=(_STARTED, _COUNTED),
    problems=("TOO_MANY_WAITING", "UNKNOWN_POOL", "CONFLICT", *parts.SLOW),
)
async def replay_dead_letters(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Replay many dead letters

    All that match the filters of the list and are dead when it begins, oldest job first, at the
    given rate; they then run at your fair share. It goes on by itself, through crashes and
    failovers, each job once.
    """
    filters.check_names(request.query_params, NARROWING)
    counted = (platform.bodies.requests, tenant.id)
    wanted = await decoded(request, ReplayMany, body_bytes_max(platform), counted=counted)
    payload = await given_payload(wanted.payload, platform, tenant)
    which = await wanted_filter(request, platform, tenant)
    if wanted.dry_run:
        return await _dry_run(platform, tenant, which)
    action = await platform.dead_letters.begin(
        tenant.id, "replay", which, payload=payload, per_second=wanted.per_second
    )
    return await _accepted(action, platform)


@Endpoint(
    "POST /v1/dead-letters/discard",
    keys=("tenant",),
    parameters=NARROWING,
    body=DiscardMany,
    body_example={"dry_run": True},
    replies=(_STARTED, _COUNTED),
    problems=("UNKNOWN_POOL", "CONFLICT", *parts.SLOW),
)
async def discard_dead_letters(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Discard many dead letters

    All that match the filters of the list and are dead when it begins.
    """
    filters.check_names(request.query_params, NARROWING)
    wanted = await decoded(request, DiscardMany)
    which = await wanted_filter(request, platform, tenant)
    if wanted.dry_run:
        return await _dry_run(platform, tenant, which)
    action = await platform.dead_letters.begin(
        tenant.id, "discard", which, payload=None, per_second=DISCARDS_PER_SECOND
    )
    return await _accepted(action, platform)


@Endpoint(
    "GET /v1/dead-letters/actions",
    keys=("tenant",),
    reply=Reply(200, "The actions.", ActionList, {"actions": [_ACTION]}),
)
async def list_dead_letter_actions(platform: Platform, tenant: Tenant) -> Response:
    """List replays and discards

    The newest, with their progress.
    """
    found = await platform.dead_letters.latest_actions(tenant.id)
    return json_reply(ActionList(actions=[await _action(one, platform) for one in found]))


@Endpoint(
    "GET /v1/dead-letters/actions/{id}",
    keys=("tenant",),
    parameters=(_ACTION_PATH,),
    reply=Reply(200, "The action.", ActionView, _ACTION),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def get_dead_letter_action(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Get the progress of an action

    How many matched, how many are done.
    """
    found = await platform.dead_letters.action(tenant.id, _action_id(request))
    return json_reply(await _action(found, platform))


@Endpoint(
    "DELETE /v1/dead-letters/actions/{id}",
    keys=("tenant",),
    parameters=(_ACTION_PATH,),
    reply=Reply(
        200,
        "It is aborted.",
        ActionView,
        _ACTION | {"state": "aborted", "finished_at": "2026-01-31T13:00:13Z"},
    ),
    problems=("NOT_FOUND", "CONFLICT", *parts.QUICK),
)
async def abort_dead_letter_action(
    request: Request, platform: Platform, tenant: Tenant
) -> Response:
    """Abort an action

    What is done stays done; nothing further begins.
    """
    found = await platform.dead_letters.abort(tenant.id, _action_id(request))
    return json_reply(await _action(found, platform))


async def _dry_run(platform: Platform, tenant: Tenant, which: DeadFilter) -> Response:
    matched = await platform.dead_letters.count(tenant.id, which)
    return json_reply(Matched(matched=matched, is_exact=matched < COUNT_MAX))


async def _accepted(action: Action, platform: Platform) -> Response:
    reply = json_reply(await _action(action, platform), 202)
    reply.headers["location"] = f"/v1/dead-letters/actions/{action.id}"
    return reply


def _action_id(request: Request) -> str:
    try:
        return str(uuid.UUID(request.path_params["id"]))
    except ValueError:
        raise NotFound("There is no such action.") from None


async def _action(action: Action, platform: Platform) -> ActionView:
    names = platform.directory
    same = {name: getattr(action, name) for name in ActionView.__struct_fields__}
    told = {
        "type": None if action.type is None else await names.type_name(action.type),
        "pool": None if action.pool is None else names.pools.by_number[action.pool].name,
        "fingerprint": None if action.fingerprint is None else as_text(action.fingerprint),
    }
    return ActionView(**same | told)
