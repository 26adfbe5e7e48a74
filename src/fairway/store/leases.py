"""Leases and worker sessions as the store sees them: written, found again, given up.

Every statement that changes a job checks the owner's term in itself, so an owner that was
replaced can write nothing, however late its statement arrives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.ids import Epoch, JobId, ShardId, TenantId, Term
from fairway.core.job import QueuedJob
from fairway.core.run.lease import StoredLease
from fairway.store.arrays import columns
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_as,
    fetch_value,
    fetch_values,
)
from fairway.store.connections.shard_terms import guard
from fairway.store.sql import load

_SQL = load("leases.sql")


class LeaseRow(NamedTuple):
    shard: ShardId
    tenant: TenantId
    job: JobId
    epoch: Epoch
    session: str
    token: str
    started_at: datetime | None = None  # when it was granted; now unless told otherwise


class NamedJob(NamedTuple):
    """A job that a worker names, and where its row is."""

    shard: ShardId
    tenant: TenantId
    job: str


class HeldJob(NamedTuple):
    """A job that somebody says is leased, as its row tells."""

    job: QueuedJob
    stored: StoredLease
    running_seconds: float


class RunningJob(NamedTuple):
    """A job with a written lease: what it is, who holds it, and since when."""

    job: QueuedJob
    session: str
    token: str
    running_seconds: float


class SessionRow(NamedTuple):
    """A worker's session, and whose it is."""

    session: str
    worker: str
    tenant: TenantId | None = (
        None  # whose own worker; None with an opener: it runs every tenant's jobs
    )
    opener: str | None = None  # the id of the API key that opened it; None: nobody knows


class Origin(NamedTuple):
    """Whose a session is, as an earlier owner wrote it down."""

    worker: str
    tenant: TenantId | None
    opener: str
    is_revoked: bool  # the key is not valid any more


async def write_leases(
    connection: Connection, terms: Mapping[ShardId, Term], leases: Sequence[LeaseRow]
) -> set[str]:
    """Answers the ids whose lease was written; the others are no longer free to run."""
    # Rows are locked in one order by all: batches must not deadlock.
    names = ("shards", "tenants", "ids", "epochs", "sessions", "tokens", "started_ats")
    rows = columns(sorted(leases), *names)
    return set(await fetch_values(connection, _SQL["write_leases"], **guard(terms), **rows))


async def unlocked(connection: Connection, jobs: Sequence[NamedJob]) -> set[str]:
    """The ids of those whose rows nobody holds; their shards are such as one statement may name."""
    named = columns(sorted(jobs), "shards", "tenants", "ids")
    return set(await fetch_values(connection, _SQL["unlocked"], **named))


async def read_running(
    connection: Connection, shard: ShardId, after: str, limit: int
) -> list[RunningJob]:
    """The written leases after this job, by id; the jobs come without payloads."""
    rows = await fetch(connection, _SQL["read_running"], shard=shard, after=after, limit=limit)
    running = []
    for *job, session, token, seconds in rows:
        session, token = session.replace("-", ""), token.replace("-", "")
        running.append(RunningJob(QueuedJob(*job), session, token, seconds))
    return running


async def read_held(
    connection: Connection,
    wanted: Sequence[NamedJob],
    *,
    with_payloads: bool = False,
) -> dict[str, HeldJob]:
    """Those that there are, by job. Their shards are such as one statement may name."""
    rows = await fetch(
        connection,
        _SQL["read_held"],
        with_payloads=with_payloads,
        **columns(wanted, "shards", "tenants", "ids"),
    )
    held: dict[str, HeldJob] = {}
    for *row, state, token, seconds in rows:
        job = QueuedJob(*row)
        token = token and token.replace("-", "")
        held[job.id] = HeldJob(job, StoredLease(state, job.epoch, token), seconds)
    return held


async def see_sessions(
    connection: Connection, terms: Mapping[ShardId, Term], sessions: Sequence[SessionRow]
) -> bool:
    """These were heard by the server that owns these shards: their leases live on.

    False, and nothing is written, where it owns none of them any more.
    """
    # In one order, as leases are: several write them at once.
    rows = columns(sorted(sessions), "sessions", "workers", "tenants", "openers")
    seen: int = await fetch_value(connection, _SQL["see_sessions"], **guard(terms), **rows)
    return seen > 0


async def whose_sessions(
    connection: Connection, shard: ShardId, sessions: Collection[str]
) -> dict[str, Origin]:
    """Of those whose opener was written down."""
    rows = await fetch(connection, _SQL["whose_sessions"], shard=shard, sessions=list(sessions))
    return {session: Origin(*origin) for session, *origin in rows}


async def silent_sessions(
    connection: Connection, terms: Mapping[ShardId, Term], silence_seconds: float
) -> dict[str, float]:
    """Sessions that the owner of these shards has not heard for longer than this, and for how long,
    by the database's clock."""
    silence = timedelta(seconds=silence_seconds)
    rows = await fetch(connection, _SQL["silent_sessions"], **guard(terms), silence=silence)
    return dict(map(tuple, rows))


class LiveSession(NamedTuple):
    """One that may hold leases which nobody wrote."""

    session: str
    tenant: TenantId | None = None  # whose jobs alone it runs; None: anybody's, or not known


async def live_sessions(
    connection: Connection, shard: ShardId, last_owner: str, silence_seconds: float
) -> set[LiveSession]:
    """Of the shard, or of others that its last owner had."""
    silence = timedelta(seconds=silence_seconds)
    asked = {"shard": shard, "last_owner": last_owner, "silence": silence}
    return set(await fetch_as(LiveSession, connection, _SQL["live_sessions"], **asked))


async def forget_sessions(
    connection: Connection, terms: Mapping[ShardId, Term], sessions: Sequence[str]
) -> None:
    """Of the rows that the owner of these shards wrote."""
    await execute(connection, _SQL["forget_sessions"], **guard(terms), sessions=list(sessions))
