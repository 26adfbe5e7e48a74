"""`/v1/bulk-actions`: cancel, replay or discard many jobs, and see how far that has come."""

from __future__ import annotations

import uuid
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.auth import part_ids
from fairway.api.endpoint import Endpoint, Reply, ReplyHeader, path
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.jobs.dead_letters import body_bytes_max, given_payload
from fairway.core.audit import Actor
from fairway.core.bulk import BulkAction, BulkFilter, is_meant
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.ids import LOWEST_JOB_ID
from fairway.core.tenant import Tenant
from fairway.services.jobs.bulk_actions import Pace
from fairway.services.platform import Platform
from fairway.wire.bulk import (
    NULL,
    BulkActionList,
    BulkActionView,
    BulkCount,
    BulkFilters,
    BulkRequest,
)

REPLAYS_PER_SECOND = 100
OTHERS_PER_SECOND = 10_000

_ACTION: dict[str, Any] = {
    "id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "act": "replay",
    "state": "running",
    "filter": {"type": "email.send"},
    "per_second": 100,
    "matched": 4200,
    "done": 1300,
    "asked_to_stop": 0,
    "skipped": 2,
    "failed": 0,
    "created_at": "2026-01-31T13:00:00Z",
    "finished_at": None,
    "error": None,
}
_PATH = path(
    "id", "The action's id.", _ACTION["id"], "$ACTION", schema={"type": "string", "format": "uuid"}
)
_LOCATION = ReplyHeader(
    "Location", "Where to ask how far it has come.", f"/v1/bulk-actions/{_ACTION['id']}"
)


@Endpoint(
    "POST /v1/bulk-actions",
    keys=("tenant",),
    body=BulkRequest,
    body_example={"act": "cancel", "filter": {"type": "email.send"}, "dry_run": True},
    replies=(
        Reply(
            202,
            "The action runs: ask for its progress at `Location`.",
            BulkActionView,
            _ACTION | {"done": 0, "skipped": 0},
            headers=(_LOCATION,),
        ),
        Reply(
            200,
            "A dry run: how many match. Nothing was changed.",
            BulkCount,
            {"matched": 4200, "is_exact": True},
        ),
    ),
    problems=("TOO_MANY_WAITING", "UNKNOWN_POOL", "CONFLICT", *parts.SLOW),
)
async def begin_bulk_action(
    request: Request, platform: Platform, tenant: Tenant, actor: Actor
) -> Response:
    """Act on many jobs

    Cancels every job that has not ended, or replays or discards every dead letter, that matches
    the filter and is there when it begins. It goes on by itself in small steps, through crashes
    and failovers, each job once. Jobs that run are asked to stop, and counted apart; replayed ones
    run at your fair share. Without a filter it must be said that `all` are meant. With `dry_run` it
    only counts. At most ten run at a time. With several shards it is one action in all of them, and
    `per_second` is divided, one for each at least.
    """
    counted = (platform.bodies.requests, tenant.id)
    wanted = await decoded(request, BulkRequest, body_bytes_max(platform), counted=counted)
    which = await _which(wanted, platform, tenant)
    payload = await given_payload(wanted.payload, platform, tenant)
    asked = part_ids(request, tenant)
    if wanted.dry_run:
        found = [await platform.bulk_actions.count(one, wanted.act, which) for one in asked]
        matched, is_exact = sum(one.matched for one in found), all(one.is_exact for one in found)
        return json_reply(BulkCount(matched=matched, is_exact=is_exact))
    usual = REPLAYS_PER_SECOND if wanted.act == "replay" else OTHERS_PER_SECOND
    terms = Pace(wanted.per_second or usual, payload)
    begin, (first, *also) = platform.bulk_actions.begin, asked
    action = await begin(first, wanted.act, which, terms, actor, also=also)
    reply = json_reply(await _view(action, platform), 202)
    reply.headers["location"] = f"/v1/bulk-actions/{action.id}"
    return reply


@Endpoint(
    "GET /v1/bulk-actions",
    keys=("tenant",),
    reply=Reply(200, "The actions.", BulkActionList, {"actions": [_ACTION]}),
    problems=parts.QUICK,
)
async def list_bulk_actions(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """List bulk actions

    The newest, with their progress. Those that ended are kept as long as jobs are.
    """
    first, *also = part_ids(request, tenant)
    found = await platform.bulk_actions.latest(first, also=also)
    return json_reply(BulkActionList(actions=[await _view(one, platform) for one in found]))


@Endpoint(
    "GET /v1/bulk-actions/{id}",
    keys=("tenant",),
    parameters=(_PATH,),
    reply=Reply(200, "The action.", BulkActionView, _ACTION),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def get_bulk_action(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Get the progress of a bulk action

    How many matched, how many are done, were asked to stop, were skipped or failed.
    """
    first, *also = part_ids(request, tenant)
    found = await platform.bulk_actions.read(first, _id(request), also=also)
    return json_reply(await _view(found, platform))


@Endpoint(
    "POST /v1/bulk-actions/{id}/abort",
    keys=("tenant",),
    parameters=(_PATH,),
    reply=Reply(
        200,
        "It is aborted.",
        BulkActionView,
        _ACTION | {"state": "aborted", "finished_at": "2026-01-31T13:00:13Z"},
    ),
    problems=("NOT_FOUND", "CONFLICT", *parts.QUICK),
)
async def abort_bulk_action(
    request: Request, platform: Platform, tenant: Tenant, actor: Actor
) -> Response:
    """Abort a bulk action

    What is done stays done; nothing further begins.
    """
    first, *also = part_ids(request, tenant)
    found = await platform.bulk_actions.abort(first, _id(request), actor, also=also)
    return json_reply(await _view(found, platform))


# -- words ---------------------------------------------------------------------------------------


async def _which(wanted: BulkRequest, platform: Platform, tenant: Tenant) -> BulkFilter:
    given = wanted.filter
    if given == BulkFilters() and not (wanted.all or wanted.dry_run):
        raise InvalidRequest(
            f"No filter is given, so this would {wanted.act} every job: name a state, a type, a"
            " pool, a tag or a time, or set all to true.",
            field="/all",
        )
    if wanted.act != "replay" and bytes(wanted.payload) != bytes(NULL):
        raise InvalidRequest("Only a replay takes other arguments.", field="/payload")
    if wanted.act == "cancel" and given.fingerprint is not None:
        raise InvalidRequest("Only dead letters have a cause.", field="/filter/fingerprint")
    try:
        return await _filter(wanted, platform, tenant)
    except InvalidRequest as error:
        name = error.field.removeprefix("/")
        raise InvalidRequest(error.message, code=error.code, field=f"/filter/{name}") from None


async def _filter(wanted: BulkRequest, platform: Platform, tenant: Tenant) -> BulkFilter:
    given, states = wanted.filter, filters.states(wanted.filter.state)
    if not is_meant(wanted.act, states):
        ended = "jobs that have not ended" if wanted.act == "cancel" else "dead letters"
        raise InvalidRequest(f"A {wanted.act} is for {ended} only.", field="state")
    return BulkFilter(
        before=filters.moment(given.until, "until", filters.HIGHEST_JOB_ID),
        since=filters.moment(given.since, "since", LOWEST_JOB_ID),
        states=states if wanted.act == "cancel" else None,
        pool=filters.pool(given.pool, platform.directory.pools),
        tag=filters.tag(given.tag),
        fingerprint=filters.fingerprint(given.fingerprint),
        type=await filters.job_type(given.type, platform.directory, tenant.id),
    )


def _id(request: Request) -> str:
    try:
        return str(uuid.UUID(request.path_params["id"]))
    except ValueError:
        raise NotFound("There is no such bulk action.") from None


async def _view(action: BulkAction, platform: Platform) -> BulkActionView:
    shown = BulkActionView.__struct_fields__
    same = {name: getattr(action, name) for name in shown if name != "filter"}
    told = BulkFilters(**await platform.bulk_actions.told(action.wanted))
    return BulkActionView(**same, filter=told)
