"""Which checkpoints there are: rows that refer to objects. The objects themselves are elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import Epoch, JobId, ShardId, TenantId
from fairway.core.object_storage.object_names import ObjectFacts
from fairway.core.run.lease import LeaseProof
from fairway.store.arrays import columns
from fairway.store.connections.database import (
    Connection,
    Record,
    fetch,
    fetch_value,
    fetch_values,
    is_found,
)
from fairway.store.sql import load

_SQL = load("checkpoints.sql")

NEWEST_EPOCH = (1 << 63) - 1  # before it is every epoch there can be


class Saved(NamedTuple):
    """A checkpoint that can be referred to."""

    epoch: Epoch
    number: int
    facts: ObjectFacts
    saved_at: datetime


async def save_checkpoint(
    connection: Connection, shard: ShardId, proof: LeaseProof, number: int, facts: ObjectFacts
) -> datetime | None:
    """When it was saved; None when the lease is not in force."""
    saved_at: datetime | None = await fetch_value(
        connection,
        _SQL["save_checkpoint"],
        shard=shard,
        number=number,
        object=facts.name,
        size_bytes=facts.size_bytes,
        digest=facts.sha256,
        **proof._asdict(),
    )
    return saved_at


async def is_lease_in_force(connection: Connection, shard: ShardId, proof: LeaseProof) -> bool:
    return await is_found(connection, _SQL["is_lease_in_force"], shard=shard, **proof._asdict())


async def is_checkpoint_saved(
    connection: Connection, shard: ShardId, proof: LeaseProof, number: int, object_name: str
) -> bool:
    return await is_found(
        connection,
        _SQL["is_checkpoint_saved"],
        shard=shard,
        number=number,
        object=object_name,
        **proof._asdict(),
    )


async def newest_checkpoints(
    connection: Connection,
    shard: ShardId,
    tenant: TenantId,
    job: JobId,
    *,
    before_epoch: Epoch,
    limit: int,
) -> list[Saved]:
    rows = await fetch(
        connection,
        _SQL["newest_checkpoints"],
        shard=shard,
        tenant=tenant,
        job=job,
        before_epoch=before_epoch,
        limit=limit,
    )
    return [_saved(row) for row in rows]


async def newest_of_each(
    connection: Connection, shard: ShardId, wanted: Sequence[tuple[TenantId, JobId]]
) -> dict[tuple[TenantId, JobId], Saved]:
    """(tenant, job) → its newest checkpoint, for those that have one."""
    if not wanted:
        return {}
    asked = columns(wanted, "tenants", "jobs")
    rows = await fetch(connection, _SQL["newest_of_each"], shard=shard, **asked)
    return {(row["tenant"], row["job"]): _saved(row) for row in rows}


def _saved(row: Record) -> Saved:
    facts = ObjectFacts(row["object"], row["size_bytes"], row["sha256"])
    return Saved(row["epoch"], row["number"], facts, row["saved_at"])


async def drop_older_checkpoints(
    connection: Connection, shard: ShardId, tenant: TenantId, job: JobId, keep: int
) -> list[str]:
    """The objects that may go."""
    return await fetch_values(
        connection, _SQL["drop_older_checkpoints"], shard=shard, tenant=tenant, job=job, keep=keep
    )


async def jobs_with_checkpoints(
    connection: Connection, shard: ShardId, asked: Sequence[tuple[TenantId, str]]
) -> set[str]:
    wanted = columns(asked, "tenants", "jobs")
    return set(await fetch_values(connection, _SQL["jobs_with_checkpoints"], shard=shard, **wanted))


async def drop_finished_checkpoints(
    connection: Connection, shard: ShardId, limit: int
) -> list[str]:
    """The objects that may go, so many at most."""
    return await fetch_values(
        connection, _SQL["drop_finished_checkpoints"], shard=shard, limit=limit
    )
