"""`/v1/dead-letters…`: look at dead letters, replay or discard one or many. One filter grammar."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.asgi import read_body
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.http.page_streams import PageReply
from fairway.api.jobs import views
from fairway.api.jobs.jobs import job_id
from fairway.api.jobs.listing import page
from fairway.api.payloads.body_cost import CAREFUL_BYTES_MAX
from fairway.api.relay import RelayedReply
from fairway.core.errors import NotFound
from fairway.core.failure.dead_letter import DeadFilter, DeathCause
from fairway.core.failure.fingerprint import as_text
from fairway.core.ids import LOWEST_JOB_ID
from fairway.core.tenant import Tenant
from fairway.services.jobs.dead_letters import COUNT_EACH_MAX
from fairway.services.jobs.lookup import JobSight
from fairway.services.platform import Platform
from fairway.wire.dead_letters import (
    FailureGroup,
    FailureGroups,
    ReplayOne,
    TypeCount,
)
from fairway.wire.messages import JobList, JobView
from fairway.wire.payload import check_carefully, check_payload

ROOM_BYTES = 4096  # for what a body holds beside its payload


_FINGERPRINT = "5f0c1e8a9b7d4c6e"
_ERROR = {
    "failure": "app_error",
    "reason": "attempts_exhausted",
    "type": "SMTPServerDisconnected",
    "message": "Connection unexpectedly closed",
    "stack": '  File "shop/mail.py", line 20, in deliver',
}
_DEAD: dict[str, Any] = parts.JOB_EXAMPLE | {
    "state": "dead",
    "attempts": 5,
    "deliveries": 5,
    "result": None,
    "error": _ERROR,
    "failures": {"app_error": 5},
    "fingerprint": _FINGERPRINT,
    "history": [
        {
            "delivery": 5,
            "attempt": 5,
            "outcome": "failed",
            "ended_at": "2026-01-31T12:00:00.168Z",
            "ran_seconds": 0.042,
            "worker": "worker-1",
            "build": "r42",
            "reason": "attempts_exhausted",
            "error": _ERROR,
        }
    ],
}
_LISTED = {name: value for name, value in _DEAD.items() if name not in ("payload", "history")}
_CAUSE = query("fingerprint", "A cause, from the groups.", _FINGERPRINT)
NARROWING = (*filters.named("type", "pool", "tag"), _CAUSE, *filters.named("since", "until"))
FILTERS = (*NARROWING, *filters.named("limit", "cursor"))


@Endpoint(
    "GET /v1/dead-letters",
    keys=("tenant",),
    parameters=FILTERS,
    reply=Reply(200, "A page of dead letters.", JobList, {"jobs": [_LISTED], "next_cursor": None}),
    problems=("INVALID_REQUEST", "UNKNOWN_POOL", "INVALID_CURSOR", *parts.SLOW),
)
async def list_dead_letters(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """List dead letters

    Jobs that ended without success and that nobody replayed or discarded yet, newest job first,
    without payloads. They are kept for seven days.
    """
    query = request.query_params
    filters.check_names(query, FILTERS)
    limit = filters.limit(query.get("limit"))
    wanted = await wanted_filter(request, platform, tenant)
    if cursor := query.get("cursor"):
        wanted = wanted._replace(before=min(wanted.before, filters.place_of(cursor)))

    async def look() -> Response:
        found = await platform.dead_letters.page(tenant.id, wanted, limit + 1)
        return await page(request, [JobSight(record) for record in found], limit)

    return PageReply(request.app.state.pages, tenant.id, look)


@Endpoint(
    "GET /v1/dead-letters/groups",
    keys=("tenant",),
    reply=Reply(
        200,
        "The groups, and counts by job type.",
        FailureGroups,
        {
            "groups": [
                {
                    "fingerprint": _FINGERPRINT,
                    "type": "email.send",
                    "count": 4200,
                    "count_is_exact": True,
                    "last_job": parts.JOB_ID,
                    "last_died_at": "2026-01-31T12:00:00.168Z",
                    "error": _ERROR,
                }
            ],
            "types": [{"type": "email.send", "count": 4200, "count_is_exact": True}],
        },
    ),
    problems=parts.SLOW,
)
async def group_dead_letters(platform: Platform, tenant: Tenant) -> Response:
    """Group dead letters by cause

    Job type, error type, message without what differs from job to job, and innermost frame make a
    fingerprint; dead letters with the same one most likely died of the same thing.
    """
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


@Endpoint(
    "GET /v1/dead-letters/{id}",
    keys=("tenant",),
    parameters=(parts.JOB_PATH,),
    reply=Reply(200, "The dead letter.", JobView, _DEAD),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def get_dead_letter(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Get a dead letter

    The job with its payload and the history of its runs.
    """
    job = job_id(request.path_params["id"])
    sight = await platform.job_lookup.job(tenant.id, job)
    if sight.record.fingerprint is None:
        raise NotFound(f"The job {job} is no dead letter.")
    return json_reply(await views.job_view(sight, platform.directory))


# -- one -----------------------------------------------------------------------------------------


@Endpoint(
    "POST /v1/dead-letters/{id}/replay",
    keys=("tenant",),
    parameters=(parts.JOB_PATH,),
    body=ReplayOne,
    body_example={"payload": {"to": "ada@example.com", "template": "welcome"}},
    reply=Reply(202, "The job waits again.", JobView, parts.QUEUED_EXAMPLE),
    problems=("TOO_MANY_WAITING", "NOT_FOUND", "NOT_OWNER", *parts.QUICK),
)
async def replay_dead_letter(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Replay a dead letter

    The same job, with the same id, goes back to the queue with fresh counters.
    """
    job, counted = job_id(request.path_params["id"]), (platform.bodies.requests, tenant.id)
    if request.app.state.relay.is_elsewhere(platform.tenant_shards.of(tenant.id)):
        body = await read_body(
            request.scope, request.receive, body_bytes_max(platform), counted=counted
        )
        return RelayedReply(request.app.state.relay, body, platform.tenant_shards.of(tenant.id))
    wanted = await decoded(
        request, ReplayOne, body_bytes_max(platform), if_empty=b"{}", counted=counted
    )
    payload = await given_payload(wanted.payload, platform, tenant)
    await platform.dead_letters.replay_one(tenant.id, job, payload)
    sight = await platform.job_lookup.job(tenant.id, job)
    return json_reply(await views.job_view(sight, platform.directory), 202)


@Endpoint(
    "DELETE /v1/dead-letters/{id}",
    keys=("tenant",),
    parameters=(parts.JOB_PATH,),
    reply=Reply(204, "It is off the list."),
    problems=("NOT_FOUND", "NOT_OWNER", *parts.QUICK),
)
async def discard_dead_letter(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Discard a dead letter

    Takes it off the list. The job stays dead, and visible by its id, until its retention ends.
    """
    job = job_id(request.path_params["id"])
    if request.app.state.relay.is_elsewhere(platform.tenant_shards.of(tenant.id)):
        return RelayedReply(request.app.state.relay, b"", platform.tenant_shards.of(tenant.id))
    await platform.dead_letters.discard_one(tenant.id, job)
    return Response(status_code=204)


# -- words ---------------------------------------------------------------------------------------


async def wanted_filter(request: Request, platform: Platform, tenant: Tenant) -> DeadFilter:
    query = request.query_params
    return DeadFilter(
        before=filters.moment(query.get("until"), "until", filters.HIGHEST_JOB_ID),
        since=filters.moment(query.get("since"), "since", LOWEST_JOB_ID),
        pool=filters.pool(query.get("pool"), platform.directory.pools),
        fingerprint=filters.fingerprint(query.get("fingerprint")),
        tag=filters.tag(query.get("tag")),
        type=await filters.job_type(query.get("type"), platform.directory, tenant.id),
    )


def body_bytes_max(platform: Platform) -> int:
    return platform.settings.inline_bytes_max + ROOM_BYTES


async def given_payload(given: Raw, platform: Platform, tenant: Tenant) -> bytes | None:
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


async def _group(cause: DeathCause, platform: Platform) -> FailureGroup:
    return FailureGroup(
        fingerprint=as_text(cause.fingerprint),
        type=await platform.directory.type_name(cause.type),
        count=cause.matched,
        count_is_exact=cause.matched < COUNT_EACH_MAX,
        last_job=cause.id,
        last_died_at=cause.finished_at,
        error=None if cause.error is None else Raw(cause.error),
    )
