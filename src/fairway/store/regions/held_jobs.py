"""What waits in this store for a home in another region: written, handed over, found by id.

A row is one call's jobs, one unfinished job of a tenant that moved away, or one of its schedules.
Nothing here is in the backlog: what is held is never dispatched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairway.core.ids import LOWEST_JOB_ID, JobId, ShardId, TenantId, Term, lowest_of_moment
from fairway.core.object_storage.reference import MARK
from fairway.core.regions.held import HeldCall, HeldKind, SentTo
from fairway.store.connections.database import (
    Connection,
    Record,
    execute,
    fetch,
    fetch_as,
    fetch_value,
    fetch_values,
    is_found,
)
from fairway.store.sql import load

_SQL = load("held_jobs.sql")
BYTES_AT_ONCE = 4 << 20  # of what is read to be sent, but for a single row


class HeldRow(NamedTuple):
    id: JobId
    kind: int
    jobs: int
    body: bytes
    offered_to: str | None
    offered_under: Sequence[int]  # a `HomeVersion`


class FoundHeld(NamedTuple):
    id: JobId
    kind: int
    jobs: int
    told: str | None
    size_bytes: int


class HeldCount(NamedTuple):
    """Of one tenant, and sent to one region, or to none yet."""

    tenant: TenantId
    offered_to: str | None
    jobs: int
    bytes: int


async def hold(connection: Connection, call: HeldCall) -> bool:
    """Whether it is there by this: another row may have its id, of one of its jobs."""
    return await execute(connection, _SQL["hold_call"], **call._asdict()) > 0


async def hold_jobs(
    connection: Connection, shard: ShardId, term: Term, tenant: TenantId, ids: Sequence[JobId]
) -> set[str] | None:
    """Those that left the jobs, and wait to be handed over. None: none did, for a call that brought
    one of them came to wait here at this moment."""
    asked = {"tenants": [tenant] * len(ids), "ids": ids}
    mark = {"mark": MARK, "mark_bytes": len(MARK)}
    try:
        async with connection.transaction():
            rows = await fetch(
                connection, _SQL["hold_jobs"], shard=shard, term=term, **asked, **mark
            )
            _check_held(rows)
    except _CameMeanwhile:
        return None
    return {row["id"] for row in rows}


class _CameMeanwhile(Exception):  # undoes what was written, no mistake
    """A row of the same id was written by somebody who had begun before."""


def _check_held(rows: Sequence[Record]) -> None:
    if not all(row["is_held"] for row in rows):
        raise _CameMeanwhile


async def hold_schedules(
    connection: Connection, shard: ShardId, term: Term, tenant: TenantId, limit: int
) -> int:
    asked = {"shard": shard, "term": term, "tenant": tenant, "limit": limit}
    return await execute(connection, _SQL["hold_schedules"], **asked)


async def tenants_with_rows(
    connection: Connection, shard: ShardId, tenants: Sequence[TenantId]
) -> set[TenantId]:
    asked = {"shard": shard, "tenants": tenants}
    return set(await fetch_values(connection, _SQL["tenants_with_rows"], **asked))


async def shards_with_held(connection: Connection, shards: Sequence[ShardId]) -> list[ShardId]:
    return await fetch_values(connection, _SQL["shards_with_held"], shards=shards)


async def tenants_with_held(
    connection: Connection, shard: ShardId, after: TenantId, limit: int
) -> list[TenantId]:
    asked = {"shard": shard, "after": after, "limit": limit}
    return await fetch_values(connection, _SQL["tenants_with_held"], **asked)


async def held_of(
    connection: Connection,
    home: SentTo,
    limit: int,
    after: str = LOWEST_JOB_ID,
) -> list[HeldRow]:
    """What may be sent to this home; at least one row, if there is any."""
    asked = {**home._asdict(), "limit": limit, "after": after}
    return await fetch_as(HeldRow, connection, _SQL["held_of"], **asked, bytes_max=BYTES_AT_ONCE)


async def doubtful_of(
    connection: Connection, home: SentTo, but: Sequence[str], limit: int
) -> list[HeldRow]:
    """What was sent elsewhere, or under an older home than this; not to one of those regions."""
    asked = {**home._asdict(), "but": but, "limit": limit}
    return await fetch_as(HeldRow, connection, _SQL["doubtful_of"], **asked)


async def offer(connection: Connection, to: SentTo, ids: Sequence[str]) -> set[str]:
    """Those that may be sent there: the others are gone, or another may have them."""
    return set(await fetch_values(connection, _SQL["offer_held"], **to._asdict(), ids=ids))


async def withdraw(connection: Connection, to: SentTo, ids: Sequence[str]) -> None:
    """Nobody has what was sent there."""
    await execute(connection, _SQL["withdraw_held"], **to._asdict(), ids=ids)


async def handed_over(connection: Connection, to: SentTo, ids: Sequence[str]) -> int:
    """That region has them: they are held no longer. How many of them were its own until now."""
    asked = {**to._asdict(), "ids": ids}
    gone = await execute(connection, _SQL["handed_over"], **asked)
    return gone + await execute(connection, _SQL["left_for_good"], **asked)


async def tell(connection: Connection, to: SentTo, id_: str, told: str) -> bool:
    """What became of it in that region, for whoever asks; whether it was still there to tell."""
    told_of = await execute(connection, _SQL["tell_held"], **to._asdict(), id=id_, told=told)
    return told_of > 0


async def is_any_held(
    connection: Connection, shard: ShardId, tenant: TenantId, ids: Sequence[str]
) -> bool:
    """Whether one of these jobs begins a call that waits here."""
    asked = {"shard": shard, "tenant": tenant, "ids": ids}
    return await is_found(connection, _SQL["still_held"], **asked)


async def arrived(
    connection: Connection, shard: ShardId, tenant: TenantId, ids: Sequence[str]
) -> None:
    """These came from the region that they had been sent to: what was held of them is done with."""
    await execute(connection, _SQL["arrived_jobs"], shard=shard, tenant=tenant, ids=ids)


async def pass_key_on(
    connection: Connection, shard: ShardId, tenant: TenantId, key: str, jobs: tuple[str, str]
) -> None:
    """From the first of the jobs to the second, which it turned out to be."""
    asked = {"shard": shard, "tenant": tenant, "key": key, "id": jobs[0], "became": jobs[1]}
    await execute(connection, _SQL["pass_key_on"], **asked)


async def find(
    connection: Connection, shard: ShardId, tenant: TenantId, job: JobId
) -> list[FoundHeld]:
    """The calls that may have brought this job."""
    asked = {"shard": shard, "tenant": tenant, "id": job, "lowest": lowest_of_moment(job)}
    return await fetch_as(FoundHeld, connection, _SQL["find_held"], **asked)


async def find_many(
    connection: Connection, shard: ShardId, tenant: TenantId, jobs: Sequence[JobId]
) -> list[tuple[JobId, FoundHeld]]:
    """As `find`, of those that wait here: each job with a call that it may have come with."""
    asked = {"shard": shard, "tenant": tenant, "ids": jobs}
    lowest = [lowest_of_moment(job) for job in jobs]
    rows = await fetch(connection, _SQL["find_many_held"], **asked, lowest=lowest)
    return [(job, FoundHeld(*found)) for job, *found in rows]


async def body_of(
    connection: Connection, shard: ShardId, tenant: TenantId, call: JobId, jobs: int
) -> bytes | None:
    """What was handed in with this call of so many jobs; None: it waits here no more, as one."""
    asked = {"shard": shard, "tenant": tenant, "id": call, "jobs": jobs}
    body: bytes | None = await fetch_value(connection, _SQL["body_of_held"], **asked)
    return body


async def counts(connection: Connection, shards: Sequence[ShardId]) -> list[HeldCount]:
    return await fetch_as(HeldCount, connection, _SQL["count_held"], shards=shards)


async def forget_told(connection: Connection, shards: Sequence[ShardId], days: int) -> int:
    return await execute(connection, _SQL["forget_told"], shards=shards, days=days)


async def known_jobs(
    connection: Connection,
    shard: ShardId,
    tenant: TenantId,
    ids: Sequence[str],
    *,
    but_offered_to: str | None,
) -> set[str]:
    asked = {"shard": shard, "tenant": tenant, "ids": ids, "but_offered_to": but_offered_to}
    return set(await fetch_values(connection, _SQL["known_jobs"], **asked))


async def insert_moved(
    connection: Connection, kind: HeldKind, shard: ShardId, tenant: TenantId, rows: Sequence[str]
) -> None:
    """Rows of another region's store, as JSON; those that are here stay as they are."""
    asked = {"shard": shard, "tenant": tenant, "rows": f"[{','.join(rows)}]"}
    if kind is HeldKind.JOB:
        await execute(connection, _SQL["insert_moved_jobs"], **asked)
    else:
        await execute(connection, _SQL["insert_moved_schedules"], **asked)
