"""Takes unfinished jobs and schedules of tenants that are at home elsewhere out of the backlog.

They become held ones in the same statement, and are handed over like any others. What runs ends
here, and if it is to run again it is handed over then. Members of flows stay and end here, and so
do jobs whose payloads are in this region's object storage: they may go on when nothing else runs
here that might come back to the backlog, as a run does whose worker died with the region. Only the
owner of a shard does this, after nothing of the tenant was started for a moment: what ended then is
on disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from fairway.core.ids import HIGHEST_JOB_ID, LOWEST_JOB_ID, ShardId, TenantId, Term
from fairway.core.job import JobFilter
from fairway.core.lifecycle import State
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.homes import Home
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.watchers import Watchers
from fairway.services.regions.home_table import HomeTable
from fairway.store import history
from fairway.store.connections.database import Database
from fairway.store.regions import held_jobs as store
from fairway.store.regions import regions
from fairway.store.webhooks.deliveries import hold_term

log = logger("regions")

JOBS_AT_ONCE = 500
SCHEDULES_AT_ONCE = 100
TENANTS_LOOKED_AT = 500  # at once, whether they have anything here
TENANTS_PER_ROUND = 50
BUSY_SECONDS = 0.05
REST_SECONDS = 1.0
SETTLE_US = 2_000_000  # ends of runs are on disk by then
AGAIN_US = 60_000_000  # a run that ended since may have put its job back
RUNS_US = 1_000_000  # until it is looked again whether what runs here has ended
UNFINISHED = [State.SCHEDULED.value, State.QUEUED.value, State.RUNNING.value]


class Moving:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        watchers: Watchers,
        homes: HomeTable,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._watchers = watchers
        self._homes = homes
        self._tenant_shards = tenant_shards
        self._due_us: dict[TenantId, int] = {}  # those that are away → when to look
        self._away_at: dict[TenantId, Home | None] = {}
        self._changes_known = 0  # of homes
        self._cursors: dict[TenantId, str] = {}
        self._walked_under: dict[TenantId, Term] = {}  # of its shard, from the first page on
        self._running: set[TenantId] = set()  # something of theirs was seen to run, in this walk
        self._settling: set[TenantId] = set()  # or waited for a call that brought it to be settled

    async def run_once(self, now_us: int) -> float:
        self._know(now_us)
        due = [one for one, at_us in self._due_us.items() if at_us <= now_us and self._is_ours(one)]
        looked_at = due[:TENANTS_LOOKED_AT]
        self._begin_anew_under_other_terms(looked_at)
        with_rows = await self._with_rows(looked_at)
        empty = {tenant for tenant in looked_at if tenant not in with_rows}
        for tenant in [one for one in looked_at if one in with_rows][:TENANTS_PER_ROUND]:
            if await self._is_empty_after_a_page(tenant):
                empty.add(tenant)
        await self._note_handed_over(empty - self._settling)  # what is settled leaves then
        for tenant in empty:
            if tenant in self._running | self._settling:
                self._running.discard(tenant)
                self._settling.discard(tenant)
                self._due_us[tenant] = now_us + RUNS_US
            else:
                self._homes.emptied(tenant, self._away_at[tenant])
                self._due_us[tenant] = now_us + AGAIN_US
        return BUSY_SECONDS if with_rows or len(due) > len(looked_at) else REST_SECONDS

    def _know(self, now_us: int) -> None:
        """A tenant whose home changed is looked through anew, also if it was away before."""
        if self._homes.changes == self._changes_known:
            return
        before, due_us, self._changes_known = self._away_at, self._due_us, self._homes.changes
        self._away_at = self._homes.away()
        same = {one for one, home in self._away_at.items() if before.get(one, home) == home}
        first_us = now_us + SETTLE_US
        self._due_us = {
            one: due_us.get(one, first_us) if one in same else first_us for one in self._away_at
        }
        self._cursors = {one: at for one, at in self._cursors.items() if one in same}
        self._running &= same
        self._settling &= same
        self._walked_under = {one: at for one, at in self._walked_under.items() if one in same}

    def _begin_anew_under_other_terms(self, tenants: Iterable[TenantId]) -> None:
        """What was passed over under a term that had run out was not taken out."""
        for tenant in tenants:
            term = self._dispatcher.term_of(self._shard(tenant))
            if term is not None and self._walked_under.get(tenant) != term:
                self._walked_under[tenant] = term
                self._cursors.pop(tenant, None)

    async def _note_handed_over(self, tenants: Iterable[TenantId]) -> None:
        """Under the homes that were known when they were looked through from the beginning. Of
        shards that are still ours: under an old term nothing leaves the jobs."""
        homes = {one: home for one in tenants if (home := self._away_at[one]) is not None}
        if not homes:
            return
        walked = {(self._shard(one), self._walked_under[one]) for one in homes}
        async with self._database.background() as connection:
            in_force = {one for one in walked if await hold_term(connection, *one) is not None}
            ours = {
                one: home
                for one, home in homes.items()
                if (self._shard(one), self._walked_under[one]) in in_force
            }
            await regions.note_handed_over(connection, ours)

    def _is_ours(self, tenant: TenantId) -> bool:
        return self._dispatcher.is_open(self._shard(tenant))

    def _shard(self, tenant: TenantId) -> ShardId:
        return self._tenant_shards.of(tenant)

    async def _with_rows(self, due: list[TenantId]) -> set[TenantId]:
        """Those that have anything here: most tenants of other regions never had."""
        found: set[TenantId] = set()
        by_shard = sorted((self._shard(tenant), tenant) for tenant in due)
        for shard, pairs in groupby(by_shard, key=itemgetter(0)):
            asked = [tenant for _, tenant in pairs]
            async with self._database.background() as connection:
                found |= await store.tenants_with_rows(connection, shard, asked)
        return found

    async def _is_empty_after_a_page(self, tenant: TenantId) -> bool:
        shard, before = self._shard(tenant), self._cursors.get(tenant, HIGHEST_JOB_ID)
        term = self._dispatcher.term_of(shard)
        if term is None or term != self._walked_under.get(tenant):
            return False
        wanted = JobFilter(before, LOWEST_JOB_ID, UNFINISHED, None, None, JOBS_AT_ONCE)
        async with self._database.background() as connection:
            schedules = await store.hold_schedules(
                connection, shard, term, tenant, SCHEDULES_AT_ONCE
            )
            part = await history.live_jobs(connection, shard, tenant, wanted)
            # A row shows as waiting what ran and ended, until its end is on disk.
            page = [job for job in part.jobs if not self._dispatcher.is_underway(job.id)]
            if len(page) < len(part.jobs):
                self._running.add(tenant)
            gone = set[str]()
            if page:
                ids = [job.id for job in page]
                # A call that this region hands over to itself. Asked before: what is settled in
                # between leaves with the others, and after it would be left for nobody to look at.
                if await store.is_any_held(connection, shard, tenant, ids):
                    self._settling.add(tenant)
                left = await store.hold_jobs(connection, shard, term, tenant, ids)
                if left is None:
                    self._settling.add(tenant)
                gone = left or gone
        if gone:
            self._dispatcher.cancelled([(job.id, job.key) for job in page if job.id in gone])
            self._watchers.notify(gone)
            log.info("jobs leave for their home", tenant=tenant, jobs=len(gone))
        self._cursors[tenant] = part.cursor or HIGHEST_JOB_ID
        return part.cursor is None and not (gone or schedules)
