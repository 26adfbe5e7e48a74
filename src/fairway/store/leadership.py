"""Who owns which shard, and under which term. A row, never a lock: rows survive their holders.

The database's clock decides when a term has run out; unless it was set back after an owner died,
then those who wait find by their own clocks that nobody renews it (`core/overlong_terms.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from fairway.core.ids import ShardId, Term
from fairway.store.connections.database import Connection, fetch, fetch_value
from fairway.store.sql import load

_SQL = load("leadership.sql")


#: Where servers hear that a shard was taken or let go.
CHANNEL = "fairway_owners"


class Claim(NamedTuple):
    term: Term
    was_handed_over: bool  # the last owner wrote down every lease before it went


class Owner(NamedTuple):
    shard: ShardId
    term: Term
    owner: str
    owner_url: str


async def claim_shards(
    connection: Connection,
    owner: str,
    owner_url: str,
    term_seconds: float,
    held: Collection[ShardId] = (),
    unrenewed: Mapping[ShardId, datetime] = MappingProxyType({}),
) -> dict[ShardId, Claim]:
    """Take what is free and not held by the caller.

    `unrenewed` are shards whose terms still end when they did long ago, and when that is.
    """
    rows = await fetch(
        connection,
        _SQL["claim_shards"],
        owner=owner,
        owner_url=owner_url,
        held=list(held),
        unrenewed=list(unrenewed),
        ends=list(unrenewed.values()),
        term_time=timedelta(seconds=term_seconds),
        channel=CHANNEL,
    )
    return {row["shard"]: Claim(row["term"], row["was_handed_over"]) for row in rows}


async def unowned_shards(connection: Connection) -> list[ShardId]:
    """Shards without an owner, be it that somebody stands in for one."""
    return [row["shard"] for row in await fetch(connection, _SQL["unowned_shards"])]


async def stand_in(
    connection: Connection,
    owner: str,
    owner_url: str,
    term_seconds: float,
    wanted: Collection[ShardId],
) -> dict[ShardId, Term]:
    """Take those that nobody has, in degraded mode: an owner takes them from us at any time."""
    rows = await fetch(
        connection,
        _SQL["stand_in"],
        owner=owner,
        owner_url=owner_url,
        wanted=list(wanted),
        term_time=timedelta(seconds=term_seconds),
        channel=CHANNEL,
    )
    return {row["shard"]: row["term"] for row in rows}


async def renew_shards(
    connection: Connection, held: dict[ShardId, Term], term_seconds: float
) -> dict[ShardId, Term]:
    """Extend what is still ours; what does not come back is another's."""
    rows = await fetch(
        connection,
        _SQL["renew_shards"],
        shards=list(held),
        terms=list(held.values()),
        term_time=timedelta(seconds=term_seconds),
    )
    return {row["shard"]: row["term"] for row in rows}


async def release_shards(
    connection: Connection, held: Mapping[ShardId, Term], *, written: Collection[ShardId] = ()
) -> None:
    """Of those in `written`, every lease is on disk, and every end that was reported."""
    await fetch(
        connection,
        _SQL["release_shards"],
        shards=list(held),
        terms=list(held.values()),
        all_written=[shard in written for shard in held],
        channel=CHANNEL,
    )


async def read_owners(connection: Connection) -> dict[ShardId, Owner]:
    return {row["shard"]: Owner(*row) for row in await fetch(connection, _SQL["read_owners"])}


async def overlong_terms(connection: Connection, far_seconds: float) -> dict[ShardId, datetime]:
    """Shard → when its term ends, of terms that last longer than this."""
    far_time = timedelta(seconds=far_seconds)
    rows = await fetch(connection, _SQL["overlong_terms"], far_time=far_time)
    return {row["shard"]: row["expires_at"] for row in rows}


async def database_now(connection: Connection) -> datetime:
    now: datetime = await fetch_value(connection, _SQL["database_now"])
    return now
