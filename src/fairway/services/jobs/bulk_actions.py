"""Acts on many jobs: begun, looked at and aborted here; worked off by `bulk_runner.py`.

Nothing is counted without a bound, and a tenant has so many under way at most: the rest of it is
the owner's loop, which takes all tenants in turn. One of a tenant in several shards is a row in
each part (`also`), under one id, written in one transaction: each owner does its own part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.bulk import BulkAct, BulkAction, BulkFilter, as_one
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
from fairway.core.ownership.tenant_parts import portion
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
from fairway.store.connections.query_slots import SlowUse

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
        *,
        also: Sequence[TenantId] = (),
    ) -> BulkAction:
        """Write it down; the owner's loop takes it from there. What comes later is not meant."""
        last = lowest_id_at(self._store_clock.unix_ms() + CLOCKS_APART_MS)
        wanted = wanted._replace(before=min(wanted.before, last))
        parts, number = (tenant, *also), str(UUID(session_key()))
        new: list[NewAction] = []
        for place, one in enumerate(parts):
            pace = max(portion(terms.per_second, place, len(parts)), 1)
            matched = (await self.count(one, act, wanted)).matched
            new.append(NewAction(number, act, wanted, terms.payload, pace, matched))
        said = Act(f"bulk_{act}", number, tenant, after=await self._fields(new))
        async with told_if_away, self._asked(parts) as connection, connection.transaction():
            for one, action in zip(parts, new, strict=True):
                shard = self._shard(one)
                self._tenant_shards.still_takes(one, shard)
                if await store.count_running(connection, shard, one) >= RUNNING_MAX:
                    raise Conflict(
                        f"{RUNNING_MAX} bulk actions run already: wait for one, or abort one."
                    )
                await store.begin(connection, shard, one, action)
            await self._audit_log.add(connection, actor, said)
        self._on_begun()
        return await self.read(tenant, number, also=also)

    def _asked(self, parts: Sequence[TenantId]) -> SlowUse:
        """For rows of several parts in one transaction: a connection of a tenant's own sees one."""
        database = self._database
        return database.quick(parts[0]) if len(parts) == 1 else database.writing(parts[0])

    async def read(
        self, tenant: TenantId, action: str, *, also: Sequence[TenantId] = ()
    ) -> BulkAction:
        found: list[BulkAction] = []
        for one in (tenant, *also):
            async with told_if_away, self._database.quick(one) as connection:
                known = await store.read(connection, self._shard(one), one, action)
            found += () if known is None else (known,)
        if not found:
            raise NotFound(f"There is no bulk action {action[:64]}.")
        return as_one(found)

    async def latest(self, tenant: TenantId, *, also: Sequence[TenantId] = ()) -> list[BulkAction]:
        found: dict[str, list[BulkAction]] = {}
        for one in (tenant, *also):
            async with told_if_away, self._database.quick(one) as connection:
                for action in await store.latest(connection, self._shard(one), one, SHOWN):
                    found.setdefault(action.id, []).append(action)
        told = map(as_one, found.values())
        return sorted(told, key=lambda one: one.created_at, reverse=True)[:SHOWN]

    async def abort(
        self,
        tenant: TenantId,
        action: str,
        actor: Actor = PLATFORM,
        *,
        also: Sequence[TenantId] = (),
    ) -> BulkAction:
        """What is done stays done; no further batch begins."""
        parts, was_running = (tenant, *also), False
        async with told_if_away, self._asked(parts) as connection, connection.transaction():
            for one in parts:
                shard = self._shard(one)
                self._tenant_shards.still_takes(one, shard)
                was_running |= await store.abort(connection, shard, one, action)
            if was_running:
                sides = {"state": "running"}, {"state": "aborted"}
                said = Act("abort_bulk_action", action, tenant, *sides)
                await self._audit_log.add(connection, actor, said)
        found = await self.read(tenant, action, also=also)
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

    async def _fields(self, new: Sequence[NewAction]) -> dict[str, Any]:
        """For the audit: which jobs, without what is put in place of their arguments."""
        said: dict[str, Any] = {**await self.told(new[0].wanted)}
        said["matched"] = sum(one.matched for one in new)
        said["per_second"] = sum(one.per_second for one in new)
        said["other_payload"] = new[0].payload is not None
        return {name: value for name, value in said.items() if value is not None}


def _moment(bound: str) -> str | None:
    """A bound on ids as the moment it stands for; None: none was said."""
    if bound in (LOWEST_JOB_ID, HIGHEST_JOB_ID):
        return None
    return from_unix_ms(unix_ms_of(bound)).isoformat().replace("+00:00", "Z")
