"""Pools and job types as data: read from the store, registered by workers and by operators.

The hot path asks by dictionary only: which pool a new job goes to, and whether its payload has a
schema. A type that nobody registered is as good as any: its jobs wait until somebody runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Protocol

from fairway.core.audit import Act, Actor, AuditEntry, AuditFilter
from fairway.core.errors import Conflict, NotFound
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.job_type import JobType, TypeFacts
from fairway.core.pools import SHORT, Pool
from fairway.runtime.loops import WorkInParts
from fairway.services.registry.audit_log import USUAL_LOG, AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.registry.type_names import NO_TYPE
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.registry import audit, job_types
from fairway.store.registry import pools as pool_store
from fairway.store.registry.tenants import store_now

REFRESH_SECONDS = 2.0
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class TypeListener(Protocol):
    """Whoever measures runs of job types."""

    def learn(self, job_type: JobType) -> None: ...

    def forget(self, type_id: TypeId) -> None: ...


class Registry:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        listener: TypeListener,
        *,
        on_unsaid: Callable[[set[TypeId]], None],
        on_forgotten: Callable[[TypeId], None],
        audit_log: AuditLog = USUAL_LOG,
    ) -> None:
        self.audit_log = audit_log
        self._database = database
        self.directory = directory
        self.pools = directory.pools
        self._listener = listener
        self._on_unsaid = on_unsaid  # types that workers must name anew
        self._on_forgotten = on_forgotten  # nobody uses it any more
        self.types: dict[TypeId, JobType] = {}
        self.schemas: dict[str, bytes] = {}  # job type → JSON Schema of its payload
        self._declared: dict[str, PoolId] = {}  # job type → pool it was registered with
        self._measured: dict[str, PoolId] = {}  # job type → pool that the clock says
        self._of_duration: frozenset[PoolId] = frozenset()
        self._changed_since = LONG_AGO
        self._one_reads = asyncio.Lock()

    # -- the hot path --------------------------------------------------------------------------

    def pool_for(self, type_name: str, pool_name: str | None) -> PoolId:
        """Where a new job goes: as it asks, else as its type says; the clock beats both."""
        if pool_name is None:
            pool = self._declared.get(type_name, SHORT.number)
        else:
            pool = self.pools.named(pool_name, "/pool").number
        if self._measured and pool in self._of_duration:
            return self._measured.get(type_name, pool)
        return pool

    def warm_types(self, types: Iterable[TypeId], warm_keys: Iterable[str]) -> frozenset[TypeId]:
        """Those of these types for which a worker with such keys is warm."""
        keys = set(warm_keys)
        known = (self.types[one] for one in types if one in self.types) if keys else ()
        return frozenset(one.id for one in known if one.facts.warm_key in keys)

    # -- what changed ------------------------------------------------------------------------

    async def run_once(self, now_us: int) -> float:
        async with self._one_reads:  # what was read first must not be learnt last
            await self._read_changes()
        return REFRESH_SECONDS

    async def _read_changes(self) -> None:
        async with self._database.background() as connection:
            now, since = await store_now(connection), self._changed_since
            pools = await pool_store.all_pools(connection)
            changed = await job_types.changed_types(connection, since)
        self._learn_pools(pools)
        work = WorkInParts()  # a tenant may bring a thousand names at a time
        unsaid = set()
        for job_type in changed:
            if self._is_unsaid(job_type):
                unsaid.add(job_type.id)
            self._learn(job_type)
            await work.let_others()
        self._changed_since = now  # only now: what a broken connection hid is asked for again
        if unsaid:
            self._on_unsaid(unsaid)

    def _learn_pools(self, pools: list[Pool]) -> None:
        known = self.pools.by_name
        if any(known.get(pool.name) != pool for pool in pools) or not self._of_duration:
            self.pools.learn(pools)
            self._of_duration = frozenset(pool.number for pool in self.pools.of_duration())
            self.directory.tell_all()  # a pool is shared out by terms once it is known

    def _is_unsaid(self, job_type: JobType) -> bool:
        """Whether those that said it no longer count as having done so.

        Changes are read again for some seconds: what is forgotten already is no news, and nobody
        need say hello for it once more.
        """
        names = self.directory.names
        has_lapsed = job_type.name in names.shared and not job_type.is_shared
        is_known = names.ids.get(job_type.name) == job_type.id
        return (job_type.is_let_go and is_known) or has_lapsed

    def _learn(self, job_type: JobType) -> None:
        before = self.types.get(job_type.id)
        if before == job_type:
            return
        self.directory.names.learn(job_type, before)
        if job_type.is_let_go:
            self._forget(job_type)
            return
        self.types[job_type.id] = job_type
        name, facts = job_type.name, job_type.facts
        for book, value in (
            (self._declared, facts.pool),
            (self._measured, job_type.measured_pool),
        ):
            if value is None:
                book.pop(name, None)
            else:
                book[name] = value
        if facts.schema is None:
            self.schemas.pop(name, None)
        else:
            self.schemas[name] = facts.schema
        self._listener.learn(job_type)

    def _forget(self, job_type: JobType) -> None:
        if self.types.pop(job_type.id, None) is not None:
            self._declared.pop(job_type.name, None)
            self._measured.pop(job_type.name, None)
            self.schemas.pop(job_type.name, None)
            self._listener.forget(job_type.id)
            self._on_forgotten(job_type.id)

    # -- registration ------------------------------------------------------------------------

    async def register(self, wanted: Iterable[tuple[TypeId, TypeFacts]]) -> None:
        """What a worker says of the types it runs; writes only what is news."""
        news = [(type_id, facts) for type_id, facts in wanted if not self._is_known(type_id, facts)]
        if not news:
            return
        async with told_if_away, self._database.people() as connection:
            for type_id, facts in news:
                await job_types.register_type(connection, type_id, facts)
        await self.run_once(0)

    def _is_known(self, type_id: TypeId, facts: TypeFacts) -> bool:
        known = self.types.get(type_id)
        return known is not None and known.is_registered and known.facts == facts

    async def put_type(self, name: str, facts: TypeFacts, actor: Actor) -> JobType:
        """An operator registers a type, or changes it."""
        type_id = (await self.directory.know_types([name]))[name]
        await self.run_once(0)  # what it was until now, on other servers too
        known = self.types.get(type_id)
        before = self._fields(known.facts) if known is not None and known.is_registered else {}
        async with told_if_away, self._database.people() as connection, connection.transaction():
            await job_types.register_type(connection, type_id, facts, by_hand=True)
            act = Act("put_job_type", name, before=before, after=self._fields(facts))
            await self.audit_log.add(connection, actor, act)
        await self.run_once(0)
        return self.types[type_id]

    async def take_back_type(self, name: str, actor: Actor) -> None:
        """An operator unsays what was put by hand; jobs keep their type until they are gone."""
        found = await self.type_named(name)
        async with told_if_away, self._database.people() as connection, connection.transaction():
            if not await job_types.take_back_type(connection, found.id):
                raise Conflict(
                    f"The job type {name[:128]!r} was not registered by hand: workers or jobs name"
                    " it, and it goes by itself when nobody does any more."
                )
            act = Act("delete_job_type", name, before=self._fields(found.facts))
            await self.audit_log.add(connection, actor, act)
        await self.run_once(0)

    def _fields(self, facts: TypeFacts) -> dict[str, Any]:
        """What was said of it, for the audit."""
        pool = None if facts.pool is None else self.pools.by_number[facts.pool].name
        schema = None if facts.schema is None else facts.schema.decode("utf-8", "replace")
        said = facts._asdict() | {"pool": pool, "schema": schema}
        return {name: value for name, value in said.items() if value not in (None, "")}

    async def type_named(self, name: str) -> JobType:
        if self.directory.type_ids.get(name, NO_TYPE) not in self.types:
            await self.run_once(0)  # made a moment ago
        found = self.types.get(self.directory.type_ids.get(name, NO_TYPE))
        if found is None:
            raise NotFound(f"There is no job type {name[:128]!r}.")
        return found

    async def put_pool(self, pool: Pool, actor: Actor) -> Pool:
        """An operator adds a pool, or changes one."""
        async with told_if_away, self._database.people() as connection, connection.transaction():
            known = {one.name: one for one in await pool_store.all_pools(connection)}
            while not await pool_store.put_pool(connection, pool):
                continue  # another pool was made at the same moment and took the number
            before = asdict(known[pool.name]) if pool.name in known else {}
            after = asdict(pool) | {"number": before.get("number", pool.number)}
            await self.audit_log.add(
                connection, actor, Act("put_pool", pool.name, before=before, after=after)
            )
        await self.run_once(0)
        return self.pools.by_name[pool.name]

    async def note(self, actor: Actor, act: Act) -> None:
        """What an operator is about to do that changes no row."""
        async with told_if_away, self._database.people() as connection:
            await self.audit_log.add(connection, actor, act)

    async def audit(self, asker: TenantId | None, wanted: AuditFilter) -> list[AuditEntry]:
        """Of everybody; or of what was done to the things of the tenant that asks."""
        async with told_if_away, self._database.asked(asker) as connection:
            if asker is None:
                return await audit.list_audit(connection, wanted)
            return await audit.audit_of(connection, asker, wanted)
