"""Acts on many jobs: begun, looked at and aborted here; worked off by `bulk_runner.py`.

Nothing is counted without a bound, and a tenant has so many under way at most: the rest of it is
the owner's loop, which takes all tenants in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.bulk import BulkAct, BulkAction, BulkFilter
from fairway.core.errors import Conflict, NotFound
from fairway.core.ids import ShardId, TenantId, lowest_id_at, shard_for_tenant
from fairway.runtime.random_ids import session_key
from fairway.services.registry.audit_log import USUAL_LOG, AuditLog
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import bulk_actions as store
from fairway.store import dead_letters, history
from fairway.store.bulk_actions import NewAction
from fairway.store.connections.database import Connection, Database

COUNT_DEAD_MAX = 1_000_000  # of one question; beyond it there are "at least" so many
COUNT_LIVE_MAX = 100_000
SHOWN = 50
RUNNING_MAX = 10  # of one tenant
CLOCKS_APART_MS = 1000  # ids that other servers made just now may be a little ahead


class Count(NamedTuple):
    matched: int
    is_exact: bool


class Pace(NamedTuple):
    """How it is done, besides to which."""

    per_second: int
    payload: bytes | None = None  # in place of the jobs' own, of a replay


class BulkActions:
    def __init__(
        self,
        database: Database,
        store_clock: StoreClock,
        *,
        shard_count: int,
        on_begun: Callable[[], None],
        audit_log: AuditLog = USUAL_LOG,
    ) -> None:
        self._database = database
        self._store_clock = store_clock
        self._shard_count = shard_count
        self._on_begun = on_begun
        self._audit_log = audit_log

    def _shard(self, tenant: TenantId) -> ShardId:
        return shard_for_tenant(tenant, self._shard_count)

    async def count(self, tenant: TenantId, act: BulkAct, wanted: BulkFilter) -> Count:
        """How many match now; changes nothing."""
        async with told_if_away, self._database.slow(tenant) as connection:
            most = COUNT_LIVE_MAX if act == "cancel" else COUNT_DEAD_MAX
            matched = await self._counted(connection, tenant, act, wanted, most)
        return Count(matched, matched < most)

    async def _counted(
        self, connection: Connection, tenant: TenantId, act: BulkAct, wanted: BulkFilter, most: int
    ) -> int:
        shard = self._shard(tenant)
        if act == "cancel":
            return await history.count_live(connection, shard, tenant, wanted.live(most))
        return await dead_letters.count_dead(connection, shard, tenant, wanted.dead, most)

    async def begin(
        self,
        tenant: TenantId,
        act: BulkAct,
        wanted: BulkFilter,
        terms: Pace,
        actor: Actor = PLATFORM,
    ) -> BulkAction:
        """Write it down; the owner's loop takes it from there. What comes later is not meant."""
        last = lowest_id_at(self._store_clock.unix_ms() + CLOCKS_APART_MS)
        wanted = wanted._replace(before=min(wanted.before, last))
        shard, matched = self._shard(tenant), (await self.count(tenant, act, wanted)).matched
        new = NewAction(
            str(UUID(session_key())), act, wanted, terms.payload, terms.per_second, matched
        )
        async with (
            told_if_away,
            self._database.quick(tenant) as connection,
            connection.transaction(),
        ):
            if await store.count_running(connection, shard, tenant) >= RUNNING_MAX:
                raise Conflict(
                    f"{RUNNING_MAX} bulk actions run already: wait for one, or abort one."
                )
            await store.begin(connection, shard, tenant, new)
            said = Act(f"bulk_{act}", new.id, tenant, after=_fields(new))
            await self._audit_log.add(connection, actor, said)
        self._on_begun()
        return await self.read(tenant, new.id)

    async def read(self, tenant: TenantId, action: str) -> BulkAction:
        async with told_if_away, self._database.quick(tenant) as connection:
            found = await store.read(connection, self._shard(tenant), tenant, action)
        if found is None:
            raise NotFound(f"There is no bulk action {action[:64]}.")
        return found

    async def latest(self, tenant: TenantId) -> list[BulkAction]:
        async with told_if_away, self._database.quick(tenant) as connection:
            return await store.latest(connection, self._shard(tenant), tenant, SHOWN)

    async def abort(self, tenant: TenantId, action: str, actor: Actor = PLATFORM) -> BulkAction:
        """What is done stays done; no further batch begins."""
        shard = self._shard(tenant)
        async with (
            told_if_away,
            self._database.quick(tenant) as connection,
            connection.transaction(),
        ):
            was_running = await store.abort(connection, shard, tenant, action)
            if was_running:
                sides = {"state": "running"}, {"state": "aborted"}
                said = Act("abort_bulk_action", action, tenant, *sides)
                await self._audit_log.add(connection, actor, said)
        found = await self.read(tenant, action)
        if not was_running:
            raise Conflict(f"The bulk action has ended already: it is {found.state}.")
        return found


def _fields(new: NewAction) -> dict[str, Any]:
    """For the audit: which jobs, without what is put in place of their arguments."""
    said = new.wanted._asdict() | {"matched": new.matched, "per_second": new.per_second}
    said["other_payload"] = new.payload is not None
    return {name: value for name, value in said.items() if value is not None}
