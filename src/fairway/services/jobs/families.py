"""A job and what came of it: the jobs that its run started, and those that theirs did.

Where a job's children are follows from its own row, so they are read by key. A walk over a family
is bounded, in jobs and in time: a job may start others for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairway.core.errors import Conflict
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.job import JobRecord
from fairway.core.lifecycle import LIVE, State
from fairway.core.run.follow_up_ids import follow_up_ids
from fairway.services.jobs.control import Control
from fairway.services.jobs.lookup import JobLookup, JobSight, is_cut
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import history
from fairway.store.connections.database import Database
from fairway.store.history import Relative

FAMILY_MAX = 10_000  # jobs that one call cancels
FAMILY_SECONDS_MAX = 10.0
PAGE = 500


class ChildrenPage(NamedTuple):
    sights: list[JobSight]
    last: JobId | None  # where the next page begins; None: there is none


class Families:
    def __init__(
        self,
        database: Database,
        job_lookup: JobLookup,
        control: Control,
        store_clock: StoreClock,
    ) -> None:
        self._database = database
        self._job_lookup = job_lookup
        self._control = control
        self._store_clock = store_clock

    async def children(self, tenant: TenantId, job: JobId, before: str, limit: int) -> ChildrenPage:
        """A page of those that a job's run started, the newest first."""
        parent = (await self._job_lookup.job(tenant, job)).record
        ids = [child for child in reversed(children_ids(parent)) if child < before]
        some = ids[:limit]
        if not some:
            return ChildrenPage([], None)
        async with told_if_away, self._database.quick(tenant) as connection:
            records = await history.list_children(
                connection, self._job_lookup.shard_of(tenant), tenant, some
            )
        last = records[-1].id if is_cut(records) else some[-1] if len(ids) > limit else None
        return ChildrenPage(await self._job_lookup.with_runs(tenant, records), last)

    async def cancel(self, tenant: TenantId, job: JobId) -> JobSight:
        """Cancel a job, and whatever came of it: what waits at once, what runs is asked to stop."""
        sight = await self._cancel_first(tenant, job)
        shard = self._job_lookup.shard_of(tenant)
        ends_us = self._store_clock.now_us() + FAMILY_SECONDS_MAX * 1e6
        level, seen = [relative_of(sight.record)], 0
        while level:
            seen += sum(one.children or 0 for one in level)
            if seen > FAMILY_MAX or self._store_clock.now_us() > ends_us:
                raise _too_large()
            ids = [child for one in level for child in children_ids(one)]
            level = await self._cancel_level(tenant, shard, ids)
        return sight

    async def _cancel_first(self, tenant: TenantId, job: JobId) -> JobSight:
        sight = await self._job_lookup.job(tenant, job)
        if not State(sight.record.state).is_final:
            try:
                return await self._control.cancel(tenant, job)
            except Conflict:  # it ended meanwhile
                sight = await self._job_lookup.job(tenant, job)
        return sight

    async def _cancel_level(
        self, tenant: TenantId, shard: ShardId, ids: Sequence[JobId]
    ) -> list[Relative]:
        """Answers those that have started others."""
        parents: list[Relative] = []
        for start in range(0, len(ids), PAGE):
            async with told_if_away, self._database.quick(tenant) as connection:
                found = await history.read_relatives(
                    connection, shard, tenant, ids[start : start + PAGE]
                )
            live = [one.live for one in found if State(one.state) in LIVE]
            if live:
                await self._control.cancel_these(tenant, shard, live)
            parents += [one for one in found if one.children]
        return parents


def relative_of(record: JobRecord) -> Relative:
    return Relative(
        record.id,
        record.tenant,
        record.pool,
        record.type,
        record.priority,
        record.lane,
        record.state,
        record.epoch,
        record.children,
        record.children_ms,
    )


def children_ids(job: JobRecord | Relative) -> list[JobId]:
    """Of a job that succeeded: its row says under which lease."""
    if not job.children or job.children_ms is None:
        return []
    return follow_up_ids(job.id, job.epoch, job.children_ms, job.children)


def _too_large() -> Conflict:
    return Conflict(
        f"More than {FAMILY_MAX} jobs came of this one, or they are so many generations that it"
        " takes too long; those that were found are cancelled. Cancel the rest by type and time:"
        " POST /v1/bulk-actions."
    )
