"""`GET /v1/jobs`: a tenant's jobs by filter, newest first, page by page."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, ReplyHeader
from fairway.api.http.decoding import json_reply
from fairway.api.http.page_streams import PageReply
from fairway.api.jobs import views
from fairway.api.jobs.jobs import job_id
from fairway.core.ids import LOWEST_JOB_ID, TenantId
from fairway.core.job import JobFilter
from fairway.core.tenant import Tenant
from fairway.runtime.loops import WorkInParts
from fairway.services.jobs.lookup import JobSight, is_cut
from fairway.services.platform import Platform
from fairway.services.registry.type_names import NO_TYPE
from fairway.wire import messages

OF_CHILDREN = filters.named("limit", "cursor")


@Endpoint(
    "GET /v1/jobs",
    keys=("tenant",),
    parameters=filters.FILTERS,
    reply=Reply(
        200,
        "A page of jobs.",
        messages.JobList,
        {"jobs": [parts.LISTED_EXAMPLE], "next_cursor": "AZgKXnwbcACAAASisbPU5Q"},
        headers=(
            ReplyHeader(
                "Link",
                'The next page, as `rel="next"`. Absent on the last page.',
                '</v1/jobs?cursor=AZgKXnwbcACAAASisbPU5Q>; rel="next"',
            ),
        ),
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", "UNKNOWN_POOL", *parts.SLOW),
)
async def list_jobs(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """List jobs

    Newest first, without payloads. Pages stay where they are while new jobs come in: follow
    `next_cursor`, or the `Link` header, until it is null.
    """
    wanted = await _filter(request, platform, tenant.id)
    if wanted.type == NO_TYPE:
        return await page(request, [], wanted.limit)

    async def look() -> Response:
        sights = await platform.job_lookup.jobs(tenant.id, wanted._replace(limit=wanted.limit + 1))
        return await page(request, sights, wanted.limit)

    return PageReply(request.app.state.pages, tenant.id, look)


@Endpoint(
    "GET /v1/jobs/{id}/children",
    keys=("tenant",),
    parameters=(parts.JOB_PATH, *OF_CHILDREN),
    reply=Reply(
        200,
        "A page of jobs.",
        messages.JobList,
        {"jobs": [parts.LISTED_EXAMPLE | {"parent_id": parts.JOB_ID}], "next_cursor": None},
    ),
    problems=("NOT_FOUND", "INVALID_REQUEST", "INVALID_CURSOR", *parts.QUICK),
)
async def list_children(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """List what a job started

    The jobs that its run started by succeeding, newest first, without payloads. Follow
    `next_cursor` until it is null.
    """
    parent, query = job_id(request.path_params["id"]), request.query_params
    filters.check_names(query, OF_CHILDREN)
    cursor, limit = query.get("cursor"), filters.limit(query.get("limit"))
    before = filters.place_of(cursor) if cursor else filters.HIGHEST_JOB_ID

    async def look() -> Response:
        found = await platform.families.children(tenant.id, parent, before, limit)
        jobs = [
            await views.job_view(sight, platform.directory, whole=False) for sight in found.sights
        ]
        after = None if found.last is None else filters.cursor_of(found.last)
        return json_reply(messages.JobList(jobs=jobs, next_cursor=after))

    return PageReply(request.app.state.pages, tenant.id, look)


async def page(request: Request, sights: list[JobSight], limit: int) -> Response:
    """So many of the jobs, and where to go on if there are more."""
    shown = sights[:limit]
    directory = request.app.state.platform.directory
    jobs, work = [], WorkInParts()
    for sight in shown:
        jobs.append(await views.job_view(sight, directory, whole=False))
        await work.let_others()
    is_more = len(sights) > limit or is_cut([sight.record for sight in shown])
    next_cursor = filters.cursor_of(shown[-1].record.id) if is_more else None
    headers = {}
    if next_cursor:
        query = urlencode(dict(request.query_params) | {"cursor": next_cursor})
        headers["link"] = f'<{request.scope["path"]}?{query}>; rel="next"'
    body = messages.encode(messages.JobList(jobs=jobs, next_cursor=next_cursor))
    return Response(body, media_type="application/json", headers=headers)


async def _filter(request: Request, platform: Platform, tenant: TenantId) -> JobFilter:
    query = request.query_params
    filters.check_names(query, filters.FILTERS)
    until = filters.moment(query.get("until"), "until", filters.HIGHEST_JOB_ID)
    cursor = query.get("cursor")
    return JobFilter(
        before=min(until, filters.place_of(cursor)) if cursor else until,
        since=filters.moment(query.get("since"), "since", LOWEST_JOB_ID),
        states=filters.states(query.get("state")),
        pool=filters.pool(query.get("pool"), platform.directory.pools),
        limit=filters.limit(query.get("limit")),
        type=await filters.job_type(query.get("type"), platform.directory, tenant),
        tag=filters.tag(query.get("tag")),
    )
