"""`/v1/dead-letters…`: look at dead letters, replay or discard one or many. One filter grammar."""

from __future__ import annotations

import uuid
from functools import partial

from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.auth import tenant_of
from fairway.api.http.asgi import read_body
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.http.page_streams import PageReply
from fairway.api.jobs import views
from fairway.api.jobs.jobs import job_id
from fairway.api.jobs.listing import page
from fairway.api.payloads.body_cost import CAREFUL_BYTES_MAX
from fairway.api.relay import RelayedReply
from fairway.core.errors import NotFound
from fairway.core.failure.dead_letter import Action, Cause, DeadFilter
from fairway.core.failure.fingerprint import as_text
from fairway.core.ids import LOWEST_JOB_ID, shard_of
from fairway.core.tenant import Tenant
from fairway.services.jobs.dead_letters import COUNT_EACH_MAX, COUNT_MAX
from fairway.services.jobs.lookup import JobSight
from fairway.services.platform import Platform
from fairway.wire.dead_letters import (
    ActionList,
    ActionView,
    DiscardMany,
    FailureGroup,
    FailureGroups,
    Matched,
    ReplayMany,
    ReplayOne,
    TypeCount,
)
from fairway.wire.payload import check_carefully, check_payload

NARROWING = ("type", "pool", "fingerprint", "since", "until")
FILTERS = (*NARROWING, "limit", "cursor")
DISCARDS_PER_SECOND = 10_000
ROOM_BYTES = 4096  # for what a body holds beside its payload


async def list_dead(request: Request) -> Response:
    platform, tenant = await _asked(request)
    query = request.query_params
    filters.check_names(query, FILTERS)
    limit = filters.limit(query.get("limit"))
    wanted = await _wanted(request, platform, tenant)
    if cursor := query.get("cursor"):
        wanted = wanted._replace(before=min(wanted.before, filters.place_of(cursor)))

    async def look() -> Response:
        found = await platform.dead_letters.page(tenant.id, wanted, limit + 1)
        return await page(request, [JobSight(record) for record in found], limit)

    return PageReply(request.app.state.pages, tenant.id, look)


async def groups(request: Request) -> Response:
    platform, tenant = await _asked(request)
    found = await platform.dead_letters.groups(tenant.id)
    types = [
        TypeCount(
            type=await platform.directory.type_name(number),
            count=count,
            count_is_exact=count < COUNT_EACH_MAX,
        )
        for number, count in sorted(found.by_type.items(), key=lambda item: -item[1])
    ]
    shown = [await _group(cause, platform) for cause in found.causes]
    return json_reply(FailureGroups(groups=shown, types=types))


async def show(request: Request) -> Response:
    platform, tenant = await _asked(request)
    job = job_id(request.path_params["id"])
    sight = await platform.insight.job(tenant.id, job)
    if sight.record.fingerprint is None:
        raise NotFound(f"The job {job} is no dead letter.")
    return json_reply(await views.job_view(sight, platform.directory))


# -- one -----------------------------------------------------------------------------------------


async def replay_one(request: Request) -> Response:
    platform, tenant = await _asked(request)
    job, counted = job_id(request.path_params["id"]), (platform.bodies.requests, tenant.id)
    if request.app.state.relay.is_elsewhere(shard_of(job)):
        body = await read_body(request.scope, request.receive, _body_max(platform), counted=counted)
        return RelayedReply(request.app.state.relay, body, shard_of(job))
    wanted = await decoded(request, ReplayOne, _body_max(platform), if_empty=b"{}", counted=counted)
    payload = await _payload(wanted.payload, platform, tenant)
    await platform.dead_letters.replay_one(tenant.id, job, payload)
    sight = await platform.insight.job(tenant.id, job)
    return json_reply(await views.job_view(sight, platform.directory), 202)


async def discard_one(request: Request) -> Response:
    platform, tenant = await _asked(request)
    job = job_id(request.path_params["id"])
    if request.app.state.relay.is_elsewhere(shard_of(job)):
        return RelayedReply(request.app.state.relay, b"", shard_of(job))
    await platform.dead_letters.discard_one(tenant.id, job)
    return Response(status_code=204)


# -- many ----------------------------------------------------------------------------------------


async def replay_many(request: Request) -> Response:
    platform, tenant = await _asked(request)
    filters.check_names(request.query_params, NARROWING)
    counted = (platform.bodies.requests, tenant.id)
    wanted = await decoded(request, ReplayMany, _body_max(platform), counted=counted)
    payload = await _payload(wanted.payload, platform, tenant)
    which = await _wanted(request, platform, tenant)
    if wanted.dry_run:
        return await _dry_run(platform, tenant, which)
    action = await platform.dead_letters.begin(
        tenant.id, "replay", which, payload=payload, per_second=wanted.per_second
    )
    return await _accepted(action, platform)


async def discard_many(request: Request) -> Response:
    platform, tenant = await _asked(request)
    filters.check_names(request.query_params, NARROWING)
    wanted = await decoded(request, DiscardMany)
    which = await _wanted(request, platform, tenant)
    if wanted.dry_run:
        return await _dry_run(platform, tenant, which)
    action = await platform.dead_letters.begin(
        tenant.id, "discard", which, payload=None, per_second=DISCARDS_PER_SECOND
    )
    return await _accepted(action, platform)


async def list_actions(request: Request) -> Response:
    platform, tenant = await _asked(request)
    found = await platform.dead_letters.latest_actions(tenant.id)
    return json_reply(ActionList(actions=[await _action(one, platform) for one in found]))


async def one_action(request: Request) -> Response:
    platform, tenant = await _asked(request)
    found = await platform.dead_letters.action(tenant.id, _action_id(request))
    return json_reply(await _action(found, platform))


async def abort(request: Request) -> Response:
    platform, tenant = await _asked(request)
    found = await platform.dead_letters.abort(tenant.id, _action_id(request))
    return json_reply(await _action(found, platform))


async def _dry_run(platform: Platform, tenant: Tenant, which: DeadFilter) -> Response:
    matched = await platform.dead_letters.count(tenant.id, which)
    return json_reply(Matched(matched=matched, is_exact=matched < COUNT_MAX))


async def _accepted(action: Action, platform: Platform) -> Response:
    reply = json_reply(await _action(action, platform), 202)
    reply.headers["location"] = f"/v1/dead-letters/actions/{action.id}"
    return reply


# -- words ---------------------------------------------------------------------------------------


async def _asked(request: Request) -> tuple[Platform, Tenant]:
    platform: Platform = request.app.state.platform
    return platform, await tenant_of(request.scope, platform.directory)


async def _wanted(request: Request, platform: Platform, tenant: Tenant) -> DeadFilter:
    query = request.query_params
    return DeadFilter(
        before=filters.moment(query.get("until"), "until", filters.HIGHEST_JOB_ID),
        since=filters.moment(query.get("since"), "since", LOWEST_JOB_ID),
        pool=filters.pool(query.get("pool"), platform.directory.pools),
        fingerprint=filters.fingerprint(query.get("fingerprint")),
        type=await filters.job_type(query.get("type"), platform.directory, tenant.id),
    )


def _body_max(platform: Platform) -> int:
    return platform.settings.inline_bytes_max + ROOM_BYTES


async def _payload(given: Raw, platform: Platform, tenant: Tenant) -> bytes | None:
    """What is long is looked at in the lane, as of new jobs."""
    text = bytes(given)
    if text == b"null":
        return None
    check_payload(text, platform.settings.inline_bytes_max)
    look = partial(check_carefully, text, "/payload")
    if len(text) <= CAREFUL_BYTES_MAX:
        look()
    else:
        await platform.heavy.run(tenant.id, look, len(text))
    return text


def _action_id(request: Request) -> str:
    try:
        return str(uuid.UUID(request.path_params["id"]))
    except ValueError:
        raise NotFound("There is no such action.") from None


async def _action(action: Action, platform: Platform) -> ActionView:
    names = platform.directory
    return ActionView(
        id=action.id,
        kind=action.kind,
        state=action.state,
        type=None if action.type is None else await names.type_name(action.type),
        pool=None if action.pool is None else names.pools.by_number[action.pool].name,
        fingerprint=None if action.fingerprint is None else as_text(action.fingerprint),
        per_second=action.per_second,
        matched=action.matched,
        done=action.done,
        created_at=action.created_at,
        finished_at=action.finished_at,
        error=action.error,
    )


async def _group(cause: Cause, platform: Platform) -> FailureGroup:
    return FailureGroup(
        fingerprint=as_text(cause.fingerprint),
        type=await platform.directory.type_name(cause.type),
        count=cause.matched,
        count_is_exact=cause.matched < COUNT_EACH_MAX,
        last_job=cause.id,
        last_died_at=cause.finished_at,
        error=None if cause.error is None else Raw(cause.error),
    )
