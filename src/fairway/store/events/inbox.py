"""From the inbox to the logs: events get their positions, under the term of the shard's owner."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from fairway.core.ids import ShardId, TenantId, Term
from fairway.store.connections.database import Connection, fetch_as, fetch_value, fetch_values
from fairway.store.events.log import CHUNK_EVENTS_MAX
from fairway.store.sql import load

_SQL = load("inbox.sql")


class Moved(NamedTuple):
    """What came to the end of a tenant's log."""

    tenant: TenantId
    first_position: int
    last_position: int


async def tenants_with_news(
    connection: Connection, shard: ShardId, after: TenantId, limit: int
) -> list[TenantId]:
    return await fetch_values(
        connection, _SQL["tenants_with_news"], shard=shard, after=after, limit=limit
    )


async def move_events(
    connection: Connection, shard: ShardId, term: Term, tenants: Sequence[TenantId], each: int
) -> list[Moved]:
    """At most so many of each; nothing for one who is not the owner any more."""
    values = {"shard": shard, "term": term, "each": min(each, CHUNK_EVENTS_MAX)}
    move = partial(fetch_as, Moved, connection, _SQL["move_events"], **values)
    moved = await move(tenants=sorted(tenants))
    others = sorted({*tenants} - {one.tenant for one in moved})
    if others and await begin_logs(connection, shard, term, others):
        moved += await move(tenants=others)
    return moved


async def begin_logs(
    connection: Connection, shard: ShardId, term: Term, tenants: Sequence[TenantId]
) -> int:
    """For those that have none; answers how many those were."""
    count: int = await fetch_value(
        connection, _SQL["begin_logs"], shard=shard, term=term, tenants=tenants
    )
    return count
