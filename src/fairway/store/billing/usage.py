"""Usage by the hour: rolled up from the log that ends of runs leave, and read from both at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.billing.usage import Used
from fairway.core.ids import JobId, PoolId, ShardId, TenantId, TypeId
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch_as,
    fetch_value,
    fetch_values,
)
from fairway.store.history import IdRange
from fairway.store.sql import load

_SQL = load("usage.sql")


class UsageQuestion(NamedTuple):
    """Whose usage, of which hours; summed by the periods that begin at `cuts`."""

    shard: ShardId
    tenant: TenantId
    since: datetime
    before: datetime
    cuts: Sequence[datetime]
    by_pool: bool
    by_type: bool
    limit: int  # of lines


class EndedJob(NamedTuple):
    """A job with what its runs left of themselves."""

    id: JobId
    pool: PoolId
    type: TypeId
    state: int
    finished_at: datetime | None
    ran_us: int | None
    history: Sequence[bytes] | None


async def begin_billing(connection: Connection, shards: Sequence[ShardId]) -> None:
    """Open the books of those of these shards that have none."""
    await execute(connection, _SQL["begin_billing"], shards=shards)


async def roll_up(
    connection: Connection, shards: Sequence[ShardId], limit: int, ids: Sequence[int] | None = None
) -> int:
    """Book about so many lines of each shard's log by the hour, in whole rows, or these rows.

    Answers how many lines there were, of the shard with the most.
    """
    given = {"shards": list(shards), "limit": limit, "ids": ids}
    return int(await fetch_value(connection, _SQL["roll_up"], **given))


async def next_to_book(connection: Connection, shard: ShardId, limit: int) -> list[int]:
    """The rows that `roll_up` would take."""
    return await fetch_values(connection, _SQL["next_to_book"], shard=shard, limit=limit)


async def set_aside(
    connection: Connection, shard: ShardId, reasons: Mapping[int, str], most: int
) -> int:
    """Leave these rows out from now on, with why; answers how many: none over so many in all."""
    ids, texts = list(reasons), list(reasons.values())
    return await execute(
        connection, _SQL["set_aside"], shard=shard, ids=ids, reasons=texts, most=most
    )


async def try_again(connection: Connection, shards: Sequence[ShardId]) -> int:
    """Book what was set aside once more; answers how many rows that are."""
    return await execute(connection, _SQL["try_again"], shards=shards)


async def read_usage(connection: Connection, asked: UsageQuestion) -> list[Used]:
    return await fetch_as(Used, connection, _SQL["read_usage"], **asked._asdict())


async def forget_usage(connection: Connection, before: datetime, limit: int) -> int:
    """Remove hours past their time; answers how many lines."""
    return await execute(connection, _SQL["forget_usage"], before=before, limit=limit)


async def jobs_of_attempts(
    connection: Connection, shard: ShardId, tenant: TenantId, ids: IdRange, limit: int
) -> list[EndedJob]:
    """The next jobs of a tenant, newest first: so many at most, at least one if there is one."""
    return await fetch_as(
        EndedJob,
        connection,
        _SQL["jobs_of_attempts"],
        shard=shard,
        tenant=tenant,
        limit=limit,
        **ids._asdict(),
    )
