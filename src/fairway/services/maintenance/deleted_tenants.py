"""What is left of deleted tenants goes, in short steps; then, when their time is over, their names.

The owner of a tenant's shard cancels what waits there, and removes schedules, what was committed
with transactions and what is held for another region, a page of each tenant in turn: however much
one leaves behind, nobody waits for it. History goes with its retention. A tenant whose time is over
is forgotten once none of its jobs is live: a job without its tenant would be held by nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from fairway.core.audit import PLATFORM, Act
from fairway.core.ids import HIGHEST_JOB_ID, LOWEST_JOB_ID, ShardId, TenantId
from fairway.core.job import JobFilter
from fairway.core.lifecycle import LIVE, State
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.retention import may_forget
from fairway.core.tenant import Tenant, has_lapsed
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.control import Control
from fairway.services.registry.audit_log import USUAL_LOG
from fairway.services.store_clock import StoreClock
from fairway.store import history
from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.flow_locks import Wait
from fairway.store.registry import tenant_states as store

log = logger("deleted tenants")

TENANTS_PER_ROUND = 20
JOBS_AT_ONCE = 500
ROWS_AT_ONCE = 500
BUSY_SECONDS = 0.2
REST_SECONDS = 5.0
AGAIN_US = 60_000_000  # a run that ended since may have put its job back, or started others

WAITING = [State.SCHEDULED.value, State.QUEUED.value]
ALL = [state.value for state in LIVE]


def _some(states: list[int], before: str, limit: int) -> JobFilter:
    return JobFilter(before, LOWEST_JOB_ID, states, None, None, limit)


class DeletedTenants:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        control: Control,
        store_clock: StoreClock,
        *,
        deleted: Callable[[], list[Tenant]],
        forget: Callable[[TenantId], None],
        kept: timedelta,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._control = control
        self._store_clock = store_clock
        self._deleted = deleted
        self._forget = forget  # nothing is left of it, and nothing need hold it
        self._kept = kept
        self._tenant_shards = tenant_shards
        self._empty_until_us: dict[TenantId, int] = {}
        self._cursors: dict[TenantId, str] = {}  # how far the walk over its jobs has come

    async def run_once(self, now_us: int) -> float:
        deleted = {one.id: one for one in self._deleted()}
        known = self._empty_until_us.items()
        self._empty_until_us = {one: until_us for one, until_us in known if one in deleted}
        self._cursors = {one: cursor for one, cursor in self._cursors.items() if one in deleted}
        due = [one for one in self._at_home(deleted) if self._empty_until_us.get(one, 0) <= now_us]
        for tenant in due[:TENANTS_PER_ROUND]:
            if await self._is_done_for_now(deleted[tenant]):
                self._empty_until_us[tenant] = now_us + AGAIN_US
        return BUSY_SECONDS if due else REST_SECONDS

    def _at_home(self, tenants: Iterable[TenantId]) -> list[TenantId]:
        """Those whose jobs are in a shard that is open here, and stay there."""
        is_moving, is_open = self._tenant_shards.is_moving, self._dispatcher.is_open
        return [one for one in tenants if is_open(self._home(one)) and not is_moving(one)]

    def _home(self, tenant: TenantId) -> ShardId:
        return self._tenant_shards.of(tenant)

    async def _is_done_for_now(self, tenant: Tenant) -> bool:
        """What goes wrong with one is its own: it is looked at again later, after the others."""
        try:
            is_empty = await self._is_empty_after_a_page(tenant.id)
            if is_empty and may_forget(self._store_clock.skew_seconds):
                await self._forget_if_lapsed(tenant)
        except DISCONNECTED:
            raise
        except Exception as error:
            log.warning("left for later", tenant=tenant.name, error=repr(error))
            return True
        return is_empty

    async def _is_empty_after_a_page(self, tenant: TenantId) -> bool:
        shard, page = self._home(tenant), list[history.LiveJob]()
        wanted = _some(WAITING, self._cursors.get(tenant, HIGHEST_JOB_ID), JOBS_AT_ONCE)
        with self._control.unheard.watching(shard, tenant, page):
            async with self._database.background() as connection, connection.transaction():
                if not await store.hold_deleted(connection, tenant):
                    return False  # it was brought back: the directory hears of it in a moment
                part = await history.live_jobs(connection, shard, tenant, wanted)
                rows = await store.remove_schedules(connection, shard, tenant, ROWS_AT_ONCE)
                rows += await store.remove_waiting(connection, shard, tenant, ROWS_AT_ONCE)
                rows += await store.remove_held(connection, shard, tenant, ROWS_AT_ONCE)
                rows += await store.remove_deliveries(connection, shard, tenant, ROWS_AT_ONCE)
                page.extend(part.jobs)
                if page:
                    ending = await self._control.cancel_within(
                        connection, shard, tenant, page, Wait.NOT
                    )
        if page:
            await self._control.settle(tenant, ending)
        self._cursors[tenant] = part.cursor or HIGHEST_JOB_ID
        return part.cursor is None and not (page or rows)

    async def _has_live_jobs(self, tenant: TenantId) -> bool:
        """However many have ended, a connection is held for one part of them at a time."""
        before: str | None = HIGHEST_JOB_ID
        while before is not None:
            async with self._database.background() as connection:
                wanted = _some(ALL, before, 1)
                part = await history.live_jobs(connection, self._home(tenant), tenant, wanted)
            if part.jobs:
                return True
            before = part.cursor
        return False

    async def _forget_if_lapsed(self, tenant: Tenant) -> None:
        if not has_lapsed(tenant.state_since, self._store_clock.now(), self._kept):
            return
        if await self._has_live_jobs(tenant.id):
            return
        async with self._database.background() as connection, connection.transaction():
            if not await store.forget_tenant(
                connection, self._home(tenant.id), tenant.id, self._kept
            ):
                return
            act = Act("forget_tenant", tenant.name, before={"number": tenant.id})
            await USUAL_LOG.add(connection, PLATFORM, act)
        self._forget(tenant.id)
        log.info("forgotten", tenant=tenant.name, number=tenant.id)
