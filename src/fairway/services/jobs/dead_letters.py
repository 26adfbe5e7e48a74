"""What people do with dead letters: list, group, replay and discard one.

One is done at once, by the owner of its shard; many are a bulk action (`bulk_actions.py`). Nothing
is counted without a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairway.core.errors import NotFound, Unavailable
from fairway.core.failure.dead_letter import DeadFilter, DeathCause
from fairway.core.ids import JobId, ShardId, TenantId, Term, TypeId
from fairway.core.job import JobRecord, QueuedJob
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.run.run_note import RunNote, note_text
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.flow_news import FlowNews
from fairway.services.jobs.watchers import Watchers
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import dead_letters as store
from fairway.store.connections.database import Connection, Database
from fairway.store.dead_letters import Replay
from fairway.store.flow_locks import Wait

COUNT_EACH_MAX = 100_000  # of one group or type
GROUPS_MAX = 200


class Groups(NamedTuple):
    causes: list[DeathCause]  # largest first
    by_type: dict[TypeId, int]


class DeadLetters:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        watchers: Watchers,
        store_clock: StoreClock,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._watchers = watchers
        self._flow_news = FlowNews(dispatcher, watchers)
        self._store_clock = store_clock
        self._tenant_shards = tenant_shards

    def _shard(self, tenant: TenantId) -> ShardId:
        return self._tenant_shards.of(tenant)

    # -- look --------------------------------------------------------------------------------

    async def page(self, tenant: TenantId, wanted: DeadFilter, limit: int) -> list[JobRecord]:
        async with told_if_away, self._database.slow(tenant) as connection:
            return await store.list_dead(connection, self._shard(tenant), tenant, wanted, limit)

    async def groups(self, tenant: TenantId) -> Groups:
        shard, bounds = self._shard(tenant), {"limit": GROUPS_MAX, "count_max": COUNT_EACH_MAX}
        async with told_if_away, self._database.slow(tenant) as connection:
            causes = await store.causes(connection, shard, tenant, **bounds)
            by_type = await store.counts_by_type(connection, shard, tenant, **bounds)
        return Groups(sorted(causes, key=lambda cause: -cause.matched), by_type)

    # -- one ---------------------------------------------------------------------------------

    async def replay_one(self, tenant: TenantId, job: JobId, payload: bytes | None) -> None:
        """Back to the backlog with fresh counters. Only the owner of the job does this."""
        if not await self.replay_these(tenant, [job], payload):
            raise _no_letter(job)

    async def replay_these(
        self, tenant: TenantId, ids: Sequence[JobId], payload: bytes | None = None
    ) -> int:
        """Those that are dead letters, of a page of jobs of one shard; answers how many were."""
        shard, term = self._shard(tenant), self._term(tenant)
        wanted = Replay(tenant, ids, payload, self.replay_note())
        self._dispatcher.inserting(ids)
        try:
            async with told_if_away, self._database.quick(tenant) as connection:
                self._tenant_shards.still_takes(tenant, shard)  # its flow may be gone already
                jobs = await self.bring_back(connection, shard, term, wanted)
            self._dispatcher.arrived([shard], jobs)
        finally:
            self._dispatcher.inserted(ids)
        self._watchers.notify(job.id for job in jobs)
        return len(jobs)

    async def bring_back(
        self,
        connection: Connection,
        shard: ShardId,
        term: Term,
        wanted: Replay,
        wait: Wait = Wait.USUAL,
    ) -> list[QueuedJob]:
        """Those that are dead letters, of these; `wait` is for the lock of the tenant's flows."""
        jobs: list[QueuedJob] = []

        async def replay(ids: Sequence[JobId], *, in_flow: bool) -> set[str]:
            asked = wanted._replace(ids=ids)
            found = await store.replay(connection, shard, term, asked, in_flow=in_flow)
            jobs.extend(found)
            return {job.id for job in found}

        keys = [(wanted.tenant, JobId(job)) for job in wanted.ids]
        await self._flow_news.change(connection, shard, keys, replay, wait)
        return jobs

    async def discard_one(self, tenant: TenantId, job: JobId) -> None:
        async with told_if_away, self._database.quick(tenant) as connection:
            term = self._term(tenant)
            found = await store.discard(connection, self._shard(tenant), term, tenant, [job])
        if not found:
            raise _no_letter(job)

    def replay_note(self) -> bytes:
        """What a job's history says of a replay."""
        return note_text(RunNote(0, 0, "replayed", self._store_clock.now()))

    def _term(self, tenant: TenantId) -> Term:
        term = self._dispatcher.term_of(self._shard(tenant))
        if term is None:
            raise Unavailable(code="NOT_OWNER")
        return term


def _no_letter(job: JobId) -> NotFound:
    return NotFound(f"There is no dead letter {job}: it never died, or was replayed or discarded.")
