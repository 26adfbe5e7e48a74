"""For operators: the shards, how they become more, and tenants that move between them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.decoding import decoded, json_reply
from fairway.core.audit import Actor
from fairway.core.ids import ShardId
from fairway.core.ownership.shard_sight import ShardSight
from fairway.core.ownership.tenant_move import MoveSight
from fairway.services.platform import Platform
from fairway.services.registry import shard_count, tenant_moves
from fairway.services.registry.tenant_moves import Wanted
from fairway.wire.operators.shards import (
    MoveCancel,
    MoveView,
    ShardList,
    ShardSplit,
    ShardsSplit,
    ShardView,
    TenantMove,
)

_MOVE = {
    "tenant": "acme",
    "from_shard": 3,
    "to_shard": 63,
    "state": "draining",
    "asked_at": "2026-01-31T12:00:00Z",
    "wait_seconds": 60,
    "finished_at": None,
    "rows_moved": 0,
    "note": "",
}
_SHARD = {"shard": 0, "owner": "server-1", "term": 3, "is_open": True, "tenants": 12, "queued": 87}
_SHARDS = {"count": 1, "tenants": 12, "shards": [_SHARD], "moves": [_MOVE]}


@Endpoint(
    "GET /v1/shards",
    keys=("operator",),
    reply=Reply(200, "The shards.", ShardList, _SHARDS),
    problems=parts.QUICK,
)
async def list_shards(request: Request, platform: Platform) -> Response:
    """List the shards

    Which server owns each, how often it changed hands, and what is in it; and moves of tenants.
    """
    found = await shard_count.list_shards(platform.database)
    moves = await tenant_moves.list_moves(platform.database)
    views = list(map(_view, found)), list(map(_move_view, moves))
    tenants = sum(one.firsts for one in found)
    return json_reply(ShardList(count=len(found), tenants=tenants, shards=views[0], moves=views[1]))


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


@Endpoint(
    "POST /v1/shards/move",
    keys=("operator",),
    permission="admin",
    body=TenantMove,
    body_example={"tenant": "acme", "to": 63},
    reply=Reply(202, "The move has begun.", MoveView, _MOVE),
    problems=("NOT_FOUND", "CONFLICT", *parts.QUICK),
)
async def move_tenant(request: Request, platform: Platform, actor: Actor) -> Response:
    """Move a tenant to another shard

    With all that is its own, while everything runs, to a shard without tenants. The tenant itself
    stands still meanwhile: its keys hear 503 `TENANT_MOVING`, its runs end, and nothing of it
    starts. If they have not ended within `wait_seconds` the move is called off, and all is as
    before. Its jobs keep their ids. One tenant moves at a time. See how far it is, and which runs
    it waits for, with `GET /v1/shards`.
    """
    said = await decoded(request, TenantMove)
    wanted = Wanted(said.tenant, ShardId(said.to), said.wait_seconds)
    move = await tenant_moves.ask(platform.database, platform.audit_log, wanted, actor)
    await platform.directory.refresh()
    platform.wakeups.of("tenant moves")()
    return json_reply(_move_view(move), 202)


@Endpoint(
    "POST /v1/shards/move/cancel",
    keys=("operator",),
    permission="admin",
    body=MoveCancel,
    body_example={"tenant": "acme"},
    reply=Reply(202, "It ends.", MoveView, _MOVE | {"state": "returning"}),
    problems=("CONFLICT", *parts.QUICK),
)
async def cancel_move(request: Request, platform: Platform, actor: Actor) -> Response:
    """End the move of a tenant

    At once while it drains. If rows were moved already they go back, in as long as they took; the
    tenant stands still until then, and goes on in the shard that it was in.
    """
    said = await decoded(request, MoveCancel)
    move = await tenant_moves.cancel(platform.database, platform.audit_log, said.tenant, actor)
    await platform.directory.refresh()
    platform.wakeups.of("tenant moves")()
    return json_reply(_move_view(move), 202)


def _move_view(one: MoveSight) -> MoveView:
    return MoveView(
        tenant=one.name,
        from_shard=one.from_shard,
        to_shard=one.to_shard,
        state=one.state,
        asked_at=one.asked_at,
        wait_seconds=one.wait_seconds,
        finished_at=one.finished_at,
        rows_moved=one.rows_moved,
        note=one.note,
    )


def _view(one: ShardSight) -> ShardView:
    return ShardView(
        shard=one.shard,
        owner=one.owner if one.has_owner else None,
        term=one.term,
        is_open=one.is_open,
        tenants=one.tenants,
        queued=one.queued,
    )
