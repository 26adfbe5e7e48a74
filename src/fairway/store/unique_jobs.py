"""Which job holds a key that its tenant wants to be unique. Written only by jobs that want that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.unique import WHEN_FINAL, Held, UniqueClaim, UniqueName, Waits, gone_before
from fairway.core.unix_time import from_unix_ms, to_unix_ms
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, execute, fetch
from fairway.store.sql import load

_SQL = load("unique_jobs.sql")
_REMOVALS = load("distributed/removals.sql")


class LockedJob(NamedTuple):
    """A job that waits, and does so until the end of this transaction."""

    key: StreamKey
    waits: Waits


async def claim_unique(
    connection: Connection, shard: ShardId, claims: Sequence[UniqueClaim]
) -> dict[UniqueName, Held]:
    """Take the names that nobody holds; answers who holds the others. None may stand twice here."""
    claims = sorted(claims)  # in one order for all: groups must not deadlock
    rows = [(*claim[:4], _within(claim)) for claim in claims]
    wanted = columns(rows, "tenants", "digests", "jobs", "states", "withins")
    gone = {"ends": WHEN_FINAL, "gone_before": gone_before(claims)}
    if getattr(connection, "placement", None) is not None:
        await execute(connection, _REMOVALS["remove_unheld"], shard=shard, **gone, **wanted)
    won = await fetch(connection, _SQL["claim_unique"], shard=shard, **gone, **wanted)
    ours = {(row["tenant"], row["digest"]) for row in won}
    lost = [claim for claim in claims if claim.name not in ours]
    if not lost:
        return {}
    asked = columns(lost, "tenants", "digests")
    found = await fetch(connection, _SQL["read_unique"], shard=shard, **asked)
    return {
        (row["tenant"], row["digest"]): Held(
            JobId(row["job"]),
            row["states"],
            None if row["since"] is None else to_unix_ms(row["since"]),
        )
        for row in found
    }


async def lock_waiting(
    connection: Connection, shard: ShardId, keys: Iterable[tuple[TenantId, JobId]]
) -> dict[JobId, LockedJob]:
    """Those of these jobs that wait; nobody lets one of them go on before this is over."""
    asked = columns(sorted(keys), "tenants", "ids")
    rows = await fetch(connection, _SQL["lock_waiting"], shard=shard, **asked)
    return {
        JobId(row["id"]): LockedJob(
            StreamKey._make(tuple(row)[4:]), Waits(row["is_due"], row["in_flow"], row["has_run"])
        )
        for row in rows
    }


async def hand_over_unique(
    connection: Connection,
    shard: ShardId,
    claims: Iterable[UniqueClaim],
    since_ms: Mapping[JobId, int],
) -> None:
    """Names that `claim_unique` has looked at go to these jobs."""
    rows = [
        (
            *claim[:4],
            _within(claim),
            from_unix_ms(since_ms[claim.job]) if claim.job in since_ms else None,
        )
        for claim in sorted(claims)
    ]
    wanted = columns(rows, "tenants", "digests", "jobs", "states", "withins", "sinces")
    await execute(connection, _SQL["hand_over_unique"], shard=shard, **wanted)


async def forget_unique(connection: Connection, shard: ShardId, limit: int) -> int:
    """Remove names past their time; answers how many."""
    return await execute(connection, _SQL["forget_unique"], shard=shard, limit=limit)


def _within(claim: UniqueClaim) -> timedelta:
    return timedelta(milliseconds=claim.within_ms)
