"""Which job holds a key that its tenant wants to be unique. Written only by jobs that want that."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from fairway.core.ids import JobId, ShardId
from fairway.core.unique import WHEN_FINAL, UniqueClaim, UniqueName, gone_before
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, execute, fetch
from fairway.store.sql import load

_SQL = load("unique_jobs.sql")


async def claim_unique(
    connection: Connection, shard: ShardId, claims: Sequence[UniqueClaim]
) -> dict[UniqueName, JobId]:
    """Take the names that nobody holds; answers who holds each. None may stand twice here."""
    rows = [
        (*claim[:4], timedelta(milliseconds=claim.within_ms))
        for claim in sorted(claims)  # in one order for all: groups must not deadlock
    ]
    wanted = columns(rows, "tenants", "digests", "jobs", "states", "withins")
    won = await fetch(
        connection, _SQL["claim_unique"], shard=shard, ends=WHEN_FINAL,
        gone_before=gone_before(claims), **wanted,
    )  # fmt: skip
    holders = {(row["tenant"], row["digest"]): JobId(row["job"]) for row in won}
    lost = [claim for claim in claims if claim.name not in holders]
    if lost:
        asked = columns(lost, "tenants", "digests")
        found = await fetch(connection, _SQL["read_unique"], shard=shard, **asked)
        holders |= {(row["tenant"], row["digest"]): JobId(row["job"]) for row in found}
    return holders


async def forget_unique(connection: Connection, shard: ShardId, limit: int) -> int:
    """Remove names past their time; answers how many."""
    return await execute(connection, _SQL["forget_unique"], shard=shard, limit=limit)
