"""Lets names of job types go that nobody uses any more, and says early when room grows short.

    used ──a day without a job, schedule, pause or worker──▶ let go ──a week──▶ gone

Whether a tenant still has jobs of a type is found by a walk over its jobs, newest first, a page at
a time with rests between, and then over those that came meanwhile: only for tenants with names of
their own that were not seen lately. A name that was let go counts no more and is forgotten by every
server within seconds; whoever names it again has it back, with its number, and a worker that runs
it is asked to. So a job that was on its way meanwhile, with the number that its server knew, is a
job as any other; and before a name goes for good the walk is made again.

Servers follow names by the date of their last change, some seconds back. So what lets one go waits
for nobody's row, and is committed at once.

Names of the house need no row at a tenant that uses them, so they lapse first, when no shared
worker has run them for a month: from then on who uses them is counted. They go when every job from
before that is gone. What an operator registered by hand stays.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from fairway.core.ids import (
    FIRST_SHARD,
    LOWEST_JOB_ID,
    ShardId,
    TenantId,
    TypeId,
    lowest_id_at,
    unix_ms_of,
)
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.loops import Effort, in_slices, pause
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry import type_names as bounds
from fairway.services.registry.type_names import TypeNames
from fairway.store import history
from fairway.store.connections.database import Connection, Database
from fairway.store.registry import type_names as store
from fairway.store.registry.type_names import Ages, Stale
from fairway.store.schema import partition_retirement, partitions

log = logger("job types")

REST_SECONDS = 60.0
BUSY_SECONDS = 1.0  # to the next round while a walk is under way
ALARM_SHARE = 80  # per cent of a bound
ALARM_US = 3_600_000_000  # said again while it lasts
AGES = Ages(unused=timedelta(days=1), kept=timedelta(days=7))
RENEW_US = 600_000_000  # far less than a name may be unused
UNSAID = timedelta(days=30)  # by a shared worker
CLOCKS_APART = timedelta(hours=1)  # of servers that date jobs
LATE_MS = 10_000  # from a job's date to its row, mostly
TENANTS_AT_ONCE = 50
NAMES_AT_ONCE = 500
JOBS_AT_ONCE = 1_000
PARTS_PER_ROUND = 20
NAMES_LOGGED = 10
ALL_IDS = history.IdRange(LOWEST_JOB_ID, "ffffffff-ffff-ffff-ffff-ffffffffffff")


class NameWalk:
    """Over the jobs of one tenant, until all its names are found in use or no job is left.

    One of more than a page takes its time: what came since it began is looked at in the end.
    """

    def __init__(self, shard: ShardId, tenant: TenantId, names: Collection[Stale]) -> None:
        self.shard, self.tenant = shard, tenant
        self.names = {one.type: one for one in names}
        self.used: set[TypeId] = set()
        self.ids = ALL_IDS
        self.newest = ""  # when it began, if it takes more than a page
        self.is_over = False

    def saw(self, part: history.TypesSeen, asked: int) -> None:
        self.used |= part.types & self.names.keys()
        is_end = part.jobs < asked
        looked_twice = self.ids.since != LOWEST_JOB_ID
        if len(self.used) == len(self.names):
            self.is_over = True
        elif not is_end and part.first and part.last:
            self.newest = self.newest or part.first
            self.ids = self.ids._replace(before=part.last)
        elif self.newest and not looked_twice:
            self.ids = ALL_IDS._replace(since=lowest_id_at(unix_ms_of(self.newest) - LATE_MS))
        else:
            self.is_over = True

    def unused(self, *, is_let_go: bool) -> list[TypeId]:
        rest = (one for one in self.names.values() if one.type not in self.used)
        return [one.type for one in rest if one.is_let_go == is_let_go]


class TypeNameExpiry:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        names: TypeNames,
        metrics: Metrics,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._names = names
        self._metrics = metrics
        self._tenant_shards = tenant_shards
        self._walk: NameWalk | None = None
        self._after = TenantId(0)  # the tenant that was looked at last
        self._after_type = TypeId(0)
        self._renew_due_us = 0
        self._alarmed_us: dict[str, int] = {}

    async def run_once(self, now_us: int) -> float:
        self._measure(now_us)
        if now_us >= self._renew_due_us:
            await self._renew()
            self._renew_due_us = now_us + RENEW_US
        if self._dispatcher.is_open(FIRST_SHARD):
            await self._look_at_types()
        return BUSY_SECONDS if await self._look_at_tenants() else REST_SECONDS

    # -- how full it is ------------------------------------------------------------------------

    def _measure(self, now_us: int) -> None:
        shared, of_tenants = len(self._names.shared), self._names.tenants_count
        for kind, count, most in (
            ("shared", shared, bounds.SHARED_NAMES_MAX),
            ("tenants", of_tenants, bounds.TENANTS_NAMES_MAX),
        ):
            self._metrics.job_types.labels(kind).set(count)
            self._metrics.job_types_max.labels(kind).set(most)
            if count * 100 < most * ALARM_SHARE:
                self._alarmed_us.pop(kind, None)
            elif now_us - self._alarmed_us.get(kind, now_us - ALARM_US) >= ALARM_US:
                self._alarmed_us[kind] = now_us
                log.warning("names of job types grow short", kind=kind, count=count, most=most)

    # -- what is in use ------------------------------------------------------------------------

    async def _renew(self) -> None:
        """A worker says its types once and may run for months: while it is there, they stay."""
        shared: set[TypeId] = set()
        own: set[tuple[TenantId, TypeId]] = set()
        async for part in in_slices(self._dispatcher.all_sessions()):
            for session in part:
                if session.tenant is None:
                    shared |= session.types
                else:
                    own.update((session.tenant, one) for one in session.types)
        if not shared and not own:
            return
        async with self._database.background() as connection:
            await store.renew_shared(connection, shared)
            await store.renew_own(connection, own)

    # -- tenants' names ------------------------------------------------------------------------

    async def _look_at_tenants(self) -> bool:
        """Some parts of walks; answers whether there is more to do at once."""
        for _ in range(PARTS_PER_ROUND):
            if self._tenant_shards.any_moving:  # that a name is not found says nothing then
                self._walk = None
                return False
            effort = Effort()
            if self._walk is None:
                self._walk = await self._next_walk()
            if self._walk is None:
                return False
            async with self._database.background() as connection:
                await self._step(connection, self._walk)
            await pause(effort.rest_seconds(0))  # the store has others to serve
        return True

    async def _next_walk(self) -> NameWalk | None:
        async with self._database.background() as connection:
            found = await store.stale_tenants(connection, self._after, AGES, TENANTS_AT_ONCE)
            for tenant in found:
                self._after = tenant
                shard = self._tenant_shards.of(tenant)
                if not self._dispatcher.is_open(shard):
                    continue  # its owner looks
                names = await store.stale_names(connection, shard, tenant, AGES, NAMES_AT_ONCE)
                if names:
                    return NameWalk(shard, tenant, names)
        if len(found) < TENANTS_AT_ONCE:
            self._after = TenantId(0)  # all were looked at: begin anew with the next round
        return None

    async def _step(self, connection: Connection, walk: NameWalk) -> None:
        part = await history.types_of_jobs(
            connection, walk.shard, walk.tenant, walk.ids, JOBS_AT_ONCE
        )
        walk.saw(part, JOBS_AT_ONCE)
        if walk.is_over:
            self._walk = None
            await self._settle(connection, walk)

    async def _settle(self, connection: Connection, walk: NameWalk) -> None:
        fresh, old = walk.unused(is_let_go=False), walk.unused(is_let_go=True)
        if walk.used:
            await store.keep_names(connection, walk.tenant, walk.used)
        if not (fresh or old):
            return
        async with connection.transaction():
            if not await partition_retirement.is_settled(connection):
                return  # jobs are on their way between partitions: another time
            if old:
                await store.drop_names(connection, walk.tenant, old, AGES.kept)
            if fresh:  # last, so that it is committed at once
                count = await store.let_go_names(connection, walk.tenant, fresh, AGES.unused)
                log.info("job types that a tenant does not use", tenant=walk.tenant, count=count)

    # -- names that are nobody's ---------------------------------------------------------------

    async def _look_at_types(self) -> None:
        """Each change is a transaction of its own: to look may take long.

        Jobs of what is found here are in no dated partition, so that none may come from one.
        """
        async with self._database.background() as connection:
            lapsed = await store.lapse_shared(connection, UNSAID)
            _tell("job types that no shared worker has run for long", lapsed)
            kept_since = await _oldest_job(connection)
            loose = await self._loose(connection, kept_since)
            fresh = [one.type for one in loose if not one.is_let_go]
            old = [one.type for one in loose if one.is_let_go]
            if fresh:
                let_go = await store.let_go_types(connection, fresh, kept_since)
                _tell("job types let go", let_go)
            if old:
                _tell("job types removed", await store.drop_types(connection, old, AGES.kept))

    async def _loose(self, connection: Connection, kept_since: datetime) -> list[Stale]:
        """The next types that neither anybody names nor anything refers to."""
        async with connection.transaction():
            if not await partition_retirement.is_settled(connection):
                return []
            loose = await store.loose_types(
                connection, self._after_type, kept_since, AGES, NAMES_AT_ONCE
            )
            self._after_type = loose[-1].type if len(loose) == NAMES_AT_ONCE else TypeId(0)
            if not loose:
                return []
            used = await store.referred_types(connection, [one.type for one in loose])
        return [one for one in loose if one.type not in used]


async def _oldest_job(connection: Connection) -> datetime:
    """Every job in a dated partition is younger; those that outlived theirs are looked through."""
    oldest = (await partitions.existing(connection))[0]
    return oldest.begins - CLOCKS_APART


def _tell(event: str, names: list[str]) -> None:
    if names:
        log.info(event, count=len(names), types=names[:NAMES_LOGGED])
