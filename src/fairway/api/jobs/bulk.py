"""`POST /v1/jobs/cancel` and `GET /v1/usage`: many jobs at once, by the one filter grammar."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.auth import tenant_of
from fairway.api.http.asgi import read_body
from fairway.api.http.decoding import BODY_BYTES_MAX, decoded, json_reply
from fairway.api.relay import RelayedReply
from fairway.core.errors import InvalidRequest
from fairway.core.ids import LOWEST_JOB_ID, shard_for_tenant
from fairway.core.job import JobFilter
from fairway.core.lifecycle import LIVE
from fairway.services.platform import Platform
from fairway.services.registry.type_names import NO_TYPE
from fairway.wire.many import CancelledMany, CancelMany, PoolUsage, Usage

PAGE = 1000
COUNT_MAX = 100_000
FILTERS = ("state", "type", "pool", "since", "until", "cursor")


async def cancel_many(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    shard = shard_for_tenant(tenant.id, platform.cluster.shard_count)
    if request.app.state.relay.is_elsewhere(shard):
        body = await read_body(request.scope, request.receive, BODY_BYTES_MAX)
        return RelayedReply(request.app.state.relay, body, shard)
    filters.check_names(request.query_params, FILTERS)
    wanted = await decoded(request, CancelMany)
    which = await _filter(request, platform, tenant.id)
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


async def _filter(request: Request, platform: Platform, tenant: int) -> JobFilter:
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


async def usage(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    query = request.query_params
    filters.check_names(query, ("since", "until"))
    since = filters.moment(query.get("since"), "since", LOWEST_JOB_ID)
    before = filters.moment(query.get("until"), "until", filters.HIGHEST_JOB_ID)
    found = await platform.insight.slot_time(tenant.id, since, before)
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
