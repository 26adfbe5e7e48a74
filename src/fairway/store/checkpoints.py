"""Which checkpoints there are: rows that refer to objects. The objects themselves are elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import JobId
from fairway.core.object_storage.object_names import ObjectFacts
from fairway.core.run.lease import LeaseProof
from fairway.store.connections.database import Connection, Record, fetch, fetch_row
from fairway.store.sql import load

_SQL = load("checkpoints.sql")

NEWEST_EPOCH = (1 << 63) - 1  # before it is every epoch there can be


class Saved(NamedTuple):
    """A checkpoint that can be referred to."""

    epoch: int
    number: int
    facts: ObjectFacts
    saved_at: datetime


async def save_checkpoint(
    connection: Connection, shard: int, proof: LeaseProof, number: int, facts: ObjectFacts
) -> datetime | None:
    """When it was saved; None when the lease is not in force."""
    row = await fetch_row(
        connection,
        _SQL["save_checkpoint"],
        shard=shard,
        tenant=proof.tenant,
        job=proof.job,
        epoch=proof.epoch,
        token=proof.token,
        number=number,
        object=facts.name,
        size_bytes=facts.size_bytes,
        digest=facts.sha256,
    )
    return row["saved_at"] if row else None


async def is_lease_in_force(connection: Connection, shard: int, proof: LeaseProof) -> bool:
    row = await fetch_row(
        connection,
        _SQL["is_lease_in_force"],
        shard=shard,
        tenant=proof.tenant,
        job=proof.job,
        epoch=proof.epoch,
        token=proof.token,
    )
    return row is not None


async def is_checkpoint_saved(
    connection: Connection, shard: int, proof: LeaseProof, number: int, object_name: str
) -> bool:
    row = await fetch_row(
        connection,
        _SQL["is_checkpoint_saved"],
        shard=shard,
        tenant=proof.tenant,
        job=proof.job,
        epoch=proof.epoch,
        number=number,
        object=object_name,
    )
    return row is not None


async def newest_checkpoints(
    connection: Connection, shard: int, tenant: int, job: JobId, *, before_epoch: int, limit: int
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
    connection: Connection, shard: int, wanted: Sequence[tuple[int, JobId]]
) -> dict[tuple[int, JobId], Saved]:
    """(tenant, job) → its newest checkpoint, for those that have one."""
    if not wanted:
        return {}
    rows = await fetch(
        connection,
        _SQL["newest_of_each"],
        shard=shard,
        tenants=[tenant for tenant, _ in wanted],
        jobs=[job for _, job in wanted],
    )
    return {(row["tenant"], row["job"]): _saved(row) for row in rows}


def _saved(row: Record) -> Saved:
    facts = ObjectFacts(row["object"], row["size_bytes"], row["sha256"])
    return Saved(row["epoch"], row["number"], facts, row["saved_at"])


async def drop_older_checkpoints(
    connection: Connection, shard: int, tenant: int, job: JobId, keep: int
) -> list[str]:
    """The objects that may go."""
    rows = await fetch(
        connection, _SQL["drop_older_checkpoints"], shard=shard, tenant=tenant, job=job, keep=keep
    )
    return [row["object"] for row in rows]


async def jobs_with_checkpoints(
    connection: Connection, shard: int, asked: Sequence[tuple[int, str]]
) -> set[str]:
    rows = await fetch(
        connection,
        _SQL["jobs_with_checkpoints"],
        shard=shard,
        tenants=[tenant for tenant, _ in asked],
        jobs=[job for _, job in asked],
    )
    return {row["job"] for row in rows}


async def drop_finished_checkpoints(connection: Connection, shard: int, limit: int) -> list[str]:
    """The objects that may go, so many at most."""
    rows = await fetch(connection, _SQL["drop_finished_checkpoints"], shard=shard, limit=limit)
    return [row["object"] for row in rows]
