"""`POST /v1/jobs/cancel` and `GET /v1/usage`: many jobs at once, by the one filter grammar."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.asgi import read_body
from fairway.api.http.decoding import BODY_BYTES_MAX, decoded, json_reply
from fairway.api.relay import RelayedReply
from fairway.core.errors import InvalidRequest
from fairway.core.ids import LOWEST_JOB_ID, TenantId, shard_for_tenant
from fairway.core.job import JobFilter
from fairway.core.lifecycle import LIVE
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.registry.type_names import NO_TYPE
from fairway.wire.bulk import CancelledMany, CancelMany, PoolUsage, Usage

PAGE = 1000
COUNT_MAX = 100_000
FILTERS = filters.named("state", "type", "pool", "tag", "since", "until", "cursor")
NARROWING = {"state", "type", "pool", "tag", "since", "until"}  # a cursor is a place, not a wish
MOMENTS = filters.named("since", "until")


@Endpoint(
    "POST /v1/jobs/cancel",
    keys=("tenant",),
    parameters=FILTERS,
    body=CancelMany,
    body_example={"dry_run": True},
    reply=Reply(
        200,
        "What became of this page of them.",
        CancelledMany,
        {
            "matched": 1000,
            "cancelled": 990,
            "asked_to_stop": 10,
            "next_cursor": "AZgKXnwbcACAAASisbPU5Q",
        },
    ),
    problems=("INVALID_CURSOR", "UNKNOWN_POOL", "NOT_OWNER", *parts.SLOW),
)
async def cancel_jobs(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Cancel many jobs

    Every job that has not ended and matches the filters, a thousand a call, newest first: go on
    with `next_cursor` until it is null. Those that wait are cancelled at once; those that run are
    asked to stop. Without a filter it must be said that `all` are meant. With `dry_run` nothing is
    cancelled and `matched` counts up to 100 000.
    """
    shard = shard_for_tenant(tenant.id, platform.cluster.shard_count)
    if request.app.state.relay.is_elsewhere(shard):
        body = await read_body(request.scope, request.receive, BODY_BYTES_MAX)
        return RelayedReply(request.app.state.relay, body, shard)
    filters.check_names(request.query_params, FILTERS)
    wanted = await decoded(request, CancelMany)
    which = await _filter(request, platform, tenant.id)
    if not (wanted.all or wanted.dry_run or set(request.query_params) & NARROWING):
        raise InvalidRequest(
            "No filter is given, so this would cancel every job: name a state, a type, a pool or a"
            " time, or set all to true.",
            field="/all",
        )
    if which.type == NO_TYPE:
        return json_reply(CancelledMany(matched=0, cancelled=0, asked_to_stop=0))
    if wanted.dry_run:
        most = which._replace(limit=COUNT_MAX)
        matched = await platform.control.count_live(tenant.id, shard, most)
        return json_reply(CancelledMany(matched=matched, cancelled=0, asked_to_stop=0))
    done = await platform.control.cancel_all(tenant.id, shard, which)
    return json_reply(
        CancelledMany(
            matched=done.matched,
            cancelled=done.cancelled,
            asked_to_stop=done.asked,
            next_cursor=None if done.last is None else filters.cursor_of(done.last),
        )
    )


async def _filter(request: Request, platform: Platform, tenant: TenantId) -> JobFilter:
    query = request.query_params
    until = filters.moment(query.get("until"), "until", filters.HIGHEST_JOB_ID)
    cursor = query.get("cursor")
    return JobFilter(
        before=min(until, filters.place_of(cursor)) if cursor else until,
        since=filters.moment(query.get("since"), "since", LOWEST_JOB_ID),
        states=_live_states(query.get("state")),
        pool=filters.pool(query.get("pool"), platform.directory.pools),
        limit=PAGE,
        type=await filters.job_type(query.get("type"), platform.directory, tenant),
        tag=filters.tag(query.get("tag")),
    )


def _live_states(text: str | None) -> list[int]:
    live = [state.value for state in LIVE]
    asked = filters.states(text)
    if asked is not None and not set(asked) <= set(live):
        raise InvalidRequest(
            "Only jobs that have not ended can be cancelled: scheduled, queued, running.",
            field="state",
        )
    return live if asked is None else asked


@Endpoint(
    "GET /v1/usage",
    keys=("tenant",),
    parameters=MOMENTS,
    reply=Reply(
        200,
        "Slot-time by pool.",
        Usage,
        {
            "pools": [
                {
                    "pool": "short",
                    "jobs": 120_000,
                    "billable_slot_seconds": 5400.25,
                    "unbilled_slot_seconds": 3.5,
                }
            ]
        },
    ),
    problems=("INVALID_REQUEST", *parts.SLOW),
)
async def get_usage(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """What your jobs used

    Slot-seconds of the jobs that were submitted in some time, by pool, over all their runs. Runs
    that the platform cut short (a worker died, a deploy) are not billed.
    """
    query = request.query_params
    filters.check_names(query, MOMENTS)
    since = filters.moment(query.get("since"), "since", LOWEST_JOB_ID)
    before = filters.moment(query.get("until"), "until", filters.HIGHEST_JOB_ID)
    found = await platform.job_lookup.slot_time(tenant.id, since, before)
    pools = [
        PoolUsage(
            pool=platform.directory.pools.by_number[one.pool].name,
            jobs=one.jobs,
            billable_slot_seconds=one.billed_us / 1e6,
            unbilled_slot_seconds=one.unbilled_us / 1e6,
        )
        for one in found
    ]
    return json_reply(Usage(pools=pools))
