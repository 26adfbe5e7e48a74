"""The runs behind a line of usage, as long as their jobs are there.

Jobs lie by when they were made, not by when they ended: a page may be empty with others behind it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.billing.attempts import RunEnd, ends_of
from fairway.core.ids import (
    LOWEST_JOB_ID,
    JobId,
    PoolId,
    TenantId,
    TypeId,
    lowest_id_at,
)
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.unix_time import to_unix_ms
from fairway.services.transient_errors import told_if_away
from fairway.store.billing import usage as store
from fairway.store.connections.database import Database
from fairway.store.connections.query_slots import SlowUse
from fairway.store.connections.row_security import UseAs
from fairway.store.history import IdRange

JOBS_AT_ONCE = 200
PAGES_MAX = 5  # looked at for one answer
ATTEMPTS_MAX = 500  # after which an answer ends; one job may bring fifty more


class AttemptFilter(NamedTuple):
    tenant: TenantId
    since: datetime
    before: datetime
    pool: PoolId | None
    type: TypeId | None
    cursor: str | None  # the last job that was looked at


class Attempt(NamedTuple):
    job: JobId
    pool: PoolId
    type: TypeId
    end: RunEnd


class AttemptPage(NamedTuple):
    attempts: list[Attempt]
    last: str | None  # the job to go on after; None: there are no more


class Attempts:
    def __init__(self, database: Database, tenant_shards: TenantShards) -> None:
        self._database = database
        self._tenant_shards = tenant_shards

    async def page(self, wanted: AttemptFilter, asker: TenantId | None) -> AttemptPage:
        """Newest job first."""
        newest = lowest_id_at(max(to_unix_ms(wanted.before), 0))  # made later, it ended later
        before = newest if wanted.cursor is None else min(newest, wanted.cursor)
        shard = self._tenant_shards.of(wanted.tenant)
        found: list[Attempt] = []
        for _ in range(PAGES_MAX):
            async with told_if_away, self._asked(asker) as connection:
                ids = IdRange(LOWEST_JOB_ID, before)
                jobs = await store.jobs_of_attempts(
                    connection, shard, wanted.tenant, ids, JOBS_AT_ONCE
                )
            if not jobs:
                return AttemptPage(found, None)
            before = jobs[-1].id
            for job in jobs:
                found += _matching(job, wanted)
            if len(found) >= ATTEMPTS_MAX:
                break
        return AttemptPage(found, before)

    def _asked(self, asker: TenantId | None) -> UseAs | SlowUse:
        return self._database.asked(None) if asker is None else self._database.slow(asker)


def _matching(job: store.EndedJob, wanted: AttemptFilter) -> list[Attempt]:
    if wanted.pool not in (None, job.pool) or wanted.type not in (None, job.type):
        return []
    ends = ends_of(job.state, job.finished_at, job.ran_us, job.history or ())
    return [
        Attempt(job.id, job.pool, job.type, end)
        for end in ends
        if wanted.since <= end.ended_at < wanted.before
    ]
