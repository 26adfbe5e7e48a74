"""Writes accepted jobs: one statement for everyone who arrived together, idempotently where asked.

COPY beats INSERT … SELECT FROM unnest by a quarter for a hundred rows and is routed by key on a
distributed database; for a few rows its second round trip costs more than it saves. Without keys a
batch is a single statement; with keys a few jobs are one statement, too, and many are one short
transaction: each round trip is a turn of an event loop that others use as well. Jobs that somebody
wants to hear of and that have no more to them are one statement with their events.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from fairway.core.ids import JobId, ShardId, TenantId, shard_of, shards_named
from fairway.core.job import NO_MARKS, JobMarks, QueuedJob
from fairway.core.lifecycle import State
from fairway.core.unix_time import from_unix_ms
from fairway.store import arrays
from fairway.store.connections.database import Connection, execute, fetch
from fairway.store.sql import load, of_rows

_SQL = load("submissions.sql")
_REMOVALS = load("distributed/removals.sql")

FEW_JOBS = 16  # up to here an INSERT is as cheap as COPY, and one round trip shorter
FEW_JOBS_IN_PARTS = 100  # on a distributed store, where COPY commits in two phases
FEW_ROWS_IN_PARTS = 24  # there up to here as rows of values: such a text is planned once
FEW_KEYED_JOBS = 64  # up to here one statement with their keys is cheaper than a transaction of two
KEY_LIFE = timedelta(hours=24)

#: Of a job, as its columns and its fields are called.
_OF_JOB = ("id", "tenant", "type", "pool", "priority", "lane", "timeout_ms", "payload")
_COLUMNS = ("shard", "state", *_OF_JOB)
_RARE = ("execute_at", "not_after", "on_late", "limits", "trace")
_values_of = attrgetter(*_OF_JOB)


class KeyClaim(NamedTuple):
    """A wish to be the one job of an Idempotency-Key."""

    tenant: TenantId
    key: str
    body_hash: bytes
    job: JobId


class KeyHolder(NamedTuple):
    """Who has the key already: the job it made, and the hash of the body that made it."""

    body_hash: bytes
    job: JobId


class NotAllWritten(RuntimeError):
    """Of a group that was written outside of a transaction some are there, and others are not."""


async def insert_jobs(
    connection: Connection,
    shard: ShardId | None,
    jobs: Sequence[QueuedJob],
    scheduled: Container[str] | None = None,
    marks: Mapping[str, JobMarks] | None = None,
    *,
    traced: bool = False,
) -> None:
    """Write a group at once. `scheduled` names those not due yet; None: no job has times or limits.

    Here and below `shard` is that of all; None: each is of the shard that its id names.
    `marks` are those of the few jobs that have any; `traced`: some belong to a trace.
    """
    if marks and scheduled is None and all(mark.is_for_events for mark in marks.values()):
        marked = ["f" if job.id in marks else "NULL" for job in jobs]
        values = _columns(shard, jobs) | {"marks": arrays.ids(marked), "traces": _traces(jobs)}
        await execute(connection, _SQL["insert_marked_jobs"], **values)
        return
    if scheduled is not None or marks:
        await _insert_with_more(connection, shard, jobs, scheduled or (), marks or {})
        return
    if traced:
        await _insert_traced(connection, shard, jobs)
        return
    if len(jobs) == 1 or (
        len(jobs) <= FEW_ROWS_IN_PARTS and getattr(connection, "placement", None) is not None
    ):
        await _insert_values(connection, shard, jobs)
        return
    if len(jobs) <= _few_jobs(connection):
        written = await execute(connection, _SQL["insert_jobs"], **_columns(shard, jobs))
        _all_written(written, jobs)
        return
    await _copy_plain(connection, shard, jobs)


async def _insert_values(
    connection: Connection, shard: ShardId | None, jobs: Sequence[QueuedJob]
) -> None:
    row = _SQL["insert_job"]
    if len(jobs) == 1:
        await execute(connection, row, **_row(shard, jobs[0]))
        return
    bound = [value for job in jobs for value in row.bind(**_row(shard, job))]
    await connection.execute(of_rows(row, len(jobs)), *bound)


def _row(shard: ShardId | None, job: QueuedJob) -> dict[str, Any]:
    return {
        "shard": shard_of(job.id) if shard is None else shard,
        "id": job.id,
        "tenant": job.tenant,
        "type": job.type,
        "pool": job.pool,
        "priority": job.priority,
        "lane": job.lane,
        "state": State.QUEUED.value,
        "timeout_ms": job.timeout_ms,
        "payload": job.payload,
    }


async def _copy_plain(
    connection: Connection, shard: ShardId | None, jobs: Sequence[QueuedJob]
) -> None:
    queued = State.QUEUED.value
    await connection.copy_records_to_table(
        "jobs",
        columns=_COLUMNS,
        records=[
            (
                at,
                queued,
                job.id,
                job.tenant,
                job.type,
                job.pool,
                job.priority,
                job.lane,
                job.timeout_ms,
                job.payload,
            )
            for at, job in zip(_shards(shard, jobs), jobs, strict=True)
        ],
    )


async def _insert_traced(
    connection: Connection, shard: ShardId | None, jobs: Sequence[QueuedJob]
) -> None:
    if len(jobs) <= _few_jobs(connection):
        values = _columns(shard, jobs) | {"traces": _traces(jobs)}
        _all_written(await execute(connection, _SQL["insert_traced_jobs"], **values), jobs)
        return
    queued = State.QUEUED.value
    await connection.copy_records_to_table(
        "jobs",
        columns=(*_COLUMNS, "trace"),
        records=[
            (
                at,
                queued,
                job.id,
                job.tenant,
                job.type,
                job.pool,
                job.priority,
                job.lane,
                job.timeout_ms,
                job.payload,
                job.trace,
            )
            for at, job in zip(_shards(shard, jobs), jobs, strict=True)
        ],
    )


def _all_written(written: int, jobs: Sequence[QueuedJob]) -> None:
    """On a distributed store rows are joined with their shards: one without a row would be lost."""
    if written != len(jobs):
        raise NotAllWritten(f"{written} of {len(jobs)} jobs were written: a shard has no row")


def _few_jobs(connection: Connection) -> int:
    return FEW_JOBS if getattr(connection, "placement", None) is None else FEW_JOBS_IN_PARTS


def _traces(jobs: Sequence[QueuedJob]) -> list[bytes | None]:
    return [job.trace for job in jobs]


def _shards(shard: ShardId | None, jobs: Sequence[QueuedJob]) -> list[ShardId]:
    if shard is not None:
        return [shard] * len(jobs)
    return shards_named([job.id for job in jobs])


def _columns(shard: ShardId | None, jobs: Sequence[QueuedJob]) -> dict[str, Any]:
    shards = _shards(shard, jobs)
    return {
        "state": State.QUEUED.value,
        "owned": [shard] if shard is not None else list(set(shards)),
        "shards": arrays.numbers(shards),
        "ids": arrays.ids([job.id for job in jobs]),
        "tenants": arrays.numbers([job.tenant for job in jobs]),
        "types": arrays.numbers([job.type for job in jobs]),
        "pools": arrays.numbers([job.pool for job in jobs]),
        "priorities": arrays.numbers([job.priority for job in jobs]),
        "lanes": arrays.numbers([job.lane for job in jobs]),
        "timeouts_ms": arrays.numbers([job.timeout_ms for job in jobs]),
        "payloads": [job.payload for job in jobs],
    }


async def insert_nothing(connection: Connection, lock_seconds: float) -> None:
    """Find out whether jobs could be written now; the store's own error says why not."""
    async with connection.transaction():
        patience = f"{lock_seconds * 1000:.0f}ms"
        await connection.execute("SELECT set_config('lock_timeout', $1, true)", patience)
        await execute(connection, _SQL["insert_nothing"], shard=0)


async def _insert_with_more(
    connection: Connection,
    shard: ShardId | None,
    jobs: Sequence[QueuedJob],
    scheduled: Container[str],
    marks: Mapping[str, JobMarks],
) -> None:
    """With times, limits and traces; and with marks, where any job has some."""
    records = []
    for at, job in zip(_shards(shard, jobs), jobs, strict=True):
        state = State.SCHEDULED if job.id in scheduled else State.QUEUED
        due_ms, last_ms, on_late = job.timing or (None, None, None)
        rare = (_moment(due_ms), _moment(last_ms), on_late, job.limits, job.trace)
        more = marks.get(job.id, NO_MARKS) if marks else ()
        records.append((at, state.value, *_values_of(job), *rare, *more))
    columns = _COLUMNS + _RARE + (JobMarks._fields if marks else ())
    await connection.copy_records_to_table("jobs", columns=columns, records=records)


def _moment(unix_ms: int | None) -> datetime | None:
    return None if unix_ms is None else from_unix_ms(unix_ms)


async def claim_and_insert(
    connection: Connection,
    shard: ShardId | None,
    claims: Sequence[KeyClaim],
    claimed: Sequence[tuple[QueuedJob, JobId | None]],
    *,
    traced: bool = False,
) -> dict[tuple[TenantId, str], KeyHolder]:
    """Write a few jobs that are due, but none whose key is taken; answers who holds those keys.

    With each job comes the one whose claim must be won for it; None: it has no key.
    """
    if getattr(connection, "placement", None) is not None:
        return await _claim_then_insert(connection, shard, claims, claimed, traced=traced)
    jobs = [job for job, _ in claimed]
    values = {**_wanted(shard, claims), **_columns(shard, jobs)}
    values["claimed_by"] = arrays.ids([claim or "NULL" for _, claim in claimed])
    if traced:
        values["traces"] = _traces(jobs)
        won = await fetch(connection, _SQL["claim_and_insert_traced"], **values)
    else:
        won = await fetch(connection, _SQL["claim_and_insert"], **values)
    return await _read_holders(connection, shard, claims, won)


async def _claim_then_insert(
    connection: Connection,
    shard: ShardId | None,
    claims: Sequence[KeyClaim],
    claimed: Sequence[tuple[QueuedJob, JobId | None]],
    *,
    traced: bool,
) -> dict[tuple[TenantId, str], KeyHolder]:
    """The same on a distributed store, whose planner takes no two inserts in one statement."""
    async with connection.transaction():
        taken = await claim_keys(connection, shard, claims)
        if jobs := with_won_keys(claims, claimed, taken):
            await insert_jobs(connection, shard, jobs, traced=traced)
    return taken


def with_won_keys(
    claims: Sequence[KeyClaim],
    claimed: Sequence[tuple[QueuedJob, JobId | None]],
    taken: Container[tuple[TenantId, str]],
) -> list[QueuedJob]:
    """Those without a key, and those that wait for a claim that was won. Of several with one key
    only the first has a claim here: the others were not lost, and are not written either."""
    won = {claim.job for claim in claims if (claim.tenant, claim.key) not in taken}
    return [job for job, claim in claimed if claim is None or claim in won]


async def claim_keys(
    connection: Connection, shard: ShardId | None, claims: Sequence[KeyClaim]
) -> dict[tuple[TenantId, str], KeyHolder]:
    """Take the keys that are free; answers the holders of those that were not."""
    wanted = _wanted(shard, claims)
    if getattr(connection, "placement", None) is not None:
        await execute(connection, _REMOVALS["remove_lapsed_keys"], **wanted)
    won = await fetch(connection, _SQL["claim_keys"], **wanted)
    return await _read_holders(connection, shard, claims, won)


def _wanted(shard: ShardId | None, claims: Sequence[KeyClaim]) -> dict[str, Any]:
    claims = sorted(claims)  # in one order for all: batches with the same keys must not deadlock
    rows: dict[str, Any] = arrays.columns(claims, "key_tenants", "keys", "body_hashes", "jobs")
    return rows | {"keep": KEY_LIFE, "key_shards": _key_shards(shard, claims)}


def _key_shards(shard: ShardId | None, claims: Sequence[KeyClaim]) -> list[ShardId]:
    return [shard_of(claim.job) if shard is None else shard for claim in claims]


async def _read_holders(
    connection: Connection, shard: ShardId | None, claims: Sequence[KeyClaim], won: Sequence[Any]
) -> dict[tuple[TenantId, str], KeyHolder]:
    """Who has the keys that were not won; one whose day ends right now has nobody."""
    ours = {(row["tenant"], row["key"]) for row in won}
    lost = [claim for claim in claims if (claim.tenant, claim.key) not in ours]
    if not lost:
        return {}
    asked = arrays.columns(lost, "tenants", "keys")
    shards = _key_shards(shard, lost)
    rows = await fetch(connection, _SQL["read_keys"], shards=shards, **asked)
    return {
        (row["tenant"], row["key"]): KeyHolder(row["body_hash"], JobId(row["job"])) for row in rows
    }


async def release_keys(connection: Connection, shard: ShardId, claims: Sequence[KeyClaim]) -> None:
    """Keys that were taken in this transaction for jobs that are not written after all."""
    rows = [(claim.tenant, claim.key, claim.job) for claim in claims]
    asked = arrays.columns(rows, "tenants", "keys", "jobs")
    await execute(connection, _SQL["release_keys"], shard=shard, **asked)


async def forget_keys(connection: Connection, shard: ShardId, limit: int) -> int:
    """Remove keys past their day; answers how many."""
    return await execute(connection, _SQL["forget_keys"], shard=shard, limit=limit)
