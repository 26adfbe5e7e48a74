"""For operators: the shards, and how they become more. Tenants are moved by nobody here."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.decoding import decoded, json_reply
from fairway.core.audit import Actor
from fairway.core.ownership.shard_sight import ShardSight
from fairway.services.platform import Platform
from fairway.services.registry import shard_count
from fairway.wire.operators.shards import ShardList, ShardSplit, ShardsSplit, ShardView

_SHARD = {"shard": 0, "owner": "server-1", "term": 3, "is_open": True, "tenants": 12, "queued": 87}


@Endpoint(
    "GET /v1/shards",
    keys=("operator",),
    reply=Reply(200, "The shards.", ShardList, {"count": 1, "shards": [_SHARD]}),
    problems=parts.QUICK,
)
async def list_shards(request: Request, platform: Platform) -> Response:
    """List the shards

    Which server owns each, how often it changed hands, and what is in it.
    """
    found = await shard_count.list_shards(platform.database)
    return json_reply(ShardList(count=len(found), shards=list(map(_view, found))))


@Endpoint(
    "POST /v1/shards/split",
    keys=("operator",),
    permission="admin",
    body=ShardSplit,
    body_example={"to": 64},
    reply=Reply(200, "How many there were, and are.", ShardsSplit, {"before": 16, "count": 64}),
    problems=("CONFLICT", *parts.QUICK),
)
async def split_shards(request: Request, platform: Platform, actor: Actor) -> Response:
    """Make the shards more

    While everything runs: servers take the new ones within a second or two and share all of them
    evenly. Tenants that are made from now on are spread over all; those that are there stay in
    their shard, with all of their jobs. Shards never become fewer, and at most 256 more at a time.
    Every server must be of a build that knows this call.
    """
    wanted = await decoded(request, ShardSplit)
    before = await shard_count.grow(platform.database, platform.audit_log, wanted.to, actor)
    platform.wakeups.of("ownership")()
    return json_reply(ShardsSplit(before=before, count=wanted.to))


def _view(one: ShardSight) -> ShardView:
    return ShardView(
        shard=one.shard,
        owner=one.owner if one.has_owner else None,
        term=one.term,
        is_open=one.is_open,
        tenants=one.tenants,
        queued=one.queued,
    )
