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
from fairway.core.failure.fingerprint import as_text
from fairway.core.ids import (
    HIGHEST_JOB_ID,
    LOWEST_JOB_ID,
    ShardId,
    TenantId,
    TypeId,
    lowest_id_at,
    unix_ms_of,
)
from fairway.core.lifecycle import State
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.unix_time import from_unix_ms
from fairway.runtime.random_ids import session_key
from fairway.services.registry.audit_log import USUAL_LOG, AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.registry.type_names import NO_TYPE
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
        directory: Directory,
        store_clock: StoreClock,
        *,
        tenant_shards: TenantShards,
        on_begun: Callable[[], None],
        audit_log: AuditLog = USUAL_LOG,
    ) -> None:
        self._database = database
        self._directory = directory
        self._store_clock = store_clock
        self._tenant_shards = tenant_shards
        self._on_begun = on_begun
        self._audit_log = audit_log

    def _shard(self, tenant: TenantId) -> ShardId:
        return self._tenant_shards.of(tenant)

    async def count(self, tenant: TenantId, act: BulkAct, wanted: BulkFilter) -> Count:
        """How many match now; changes nothing."""
        async with told_if_away, self._database.slow(tenant) as connection:
            return await self._counted(connection, tenant, act, wanted)

    async def _counted(
        self, connection: Connection, tenant: TenantId, act: BulkAct, wanted: BulkFilter
    ) -> Count:
        shard = self._shard(tenant)
        if act == "cancel":
            live = wanted.live(COUNT_LIVE_MAX)
            return Count(*await history.count_live(connection, shard, tenant, live))
        most = COUNT_DEAD_MAX
        matched = await dead_letters.count_dead(connection, shard, tenant, wanted.dead, most)
        return Count(matched, matched < most)

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
        said = Act(f"bulk_{act}", new.id, tenant, after=await self._fields(new))
        async with (
            told_if_away,
            self._database.quick(tenant) as connection,
            connection.transaction(),
        ):
            self._tenant_shards.still_takes(tenant, shard)
            if await store.count_running(connection, shard, tenant) >= RUNNING_MAX:
                raise Conflict(
                    f"{RUNNING_MAX} bulk actions run already: wait for one, or abort one."
                )
            await store.begin(connection, shard, tenant, new)
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
            self._tenant_shards.still_takes(tenant, shard)
            was_running = await store.abort(connection, shard, tenant, action)
            if was_running:
                sides = {"state": "running"}, {"state": "aborted"}
                said = Act("abort_bulk_action", action, tenant, *sides)
                await self._audit_log.add(connection, actor, said)
        found = await self.read(tenant, action)
        if not was_running:
            raise Conflict(f"The bulk action has ended already: it is {found.state}.")
        return found

    async def told(self, wanted: BulkFilter) -> dict[str, str | None]:
        """A filter as people say it: by names, labels and moments; None did not narrow."""
        pool, states, cause = wanted.pool, wanted.states, wanted.fingerprint
        return {
            "state": None if states is None else ",".join(State(one).label for one in states),
            "type": await self._type(wanted.type),
            "pool": None if pool is None else self._directory.pools.by_number[pool].name,
            "tag": wanted.tag,
            "fingerprint": None if cause is None else as_text(cause),
            "since": _moment(wanted.since),
            "until": _moment(wanted.before),
        }

    async def _type(self, number: TypeId | None) -> str | None:
        if number == NO_TYPE:
            return "(no job has it)"
        return None if number is None else await self._directory.type_name(number)

    async def _fields(self, new: NewAction) -> dict[str, Any]:
        """For the audit: which jobs, without what is put in place of their arguments."""
        said: dict[str, Any] = {**await self.told(new.wanted)}
        said |= {"matched": new.matched, "per_second": new.per_second}
        said["other_payload"] = new.payload is not None
        return {name: value for name, value in said.items() if value is not None}


def _moment(bound: str) -> str | None:
    """A bound on ids as the moment it stands for; None: none was said."""
    if bound in (LOWEST_JOB_ID, HIGHEST_JOB_ID):
        return None
    return from_unix_ms(unix_ms_of(bound)).isoformat().replace("+00:00", "Z")
