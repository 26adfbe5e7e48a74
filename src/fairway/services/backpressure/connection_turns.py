"""Turns at the hot connections, for what requests ask of single jobs: few at a time, in turn.

The hot connections are the job path's: submissions, outcomes, leases. Who cancels or moves a job,
and a worker that names leases which the memory does not know, needs one too, and may ask a
thousand times at once: the statements then stand at the lock of one row, each with a connection,
and nobody's jobs get in. So tenants have two connections for this, each tenant one for each kind of
question, and its next one waits behind its own. Pages of jobs, which take longer, have one of the
two at most. Shared workers have turns of their own: they all call at once when an owner is new.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fairway.core.ids import ShardId, TenantId
from fairway.services.backpressure.owner_slots import OwnerSlots
from fairway.store.connections.database import Connection, Database

TENANTS_MAX = 2  # of the hot connections, for all tenants
PAGES_MAX = 1  # of these
SHARED_WORKERS_MAX = 2
#: Of the time that somebody waits for the store, for a turn; the rest is for the statement.
TURN_PART = 2 / 3


class HotTurns:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._wait_seconds = wait = database.wait_seconds * TURN_PART
        self._tenants = OwnerSlots(
            "changes of jobs and look-ups of leases are under way",
            per_owner=1,
            in_all=TENANTS_MAX,
            wait_seconds=wait,
        )
        self._pages = OwnerSlots(
            "pages of jobs are being cancelled", per_owner=1, in_all=PAGES_MAX, wait_seconds=wait
        )
        self._shared_workers = OwnerSlots(
            "workers' leases are being looked up",
            per_owner=1,
            in_all=SHARED_WORKERS_MAX,
            wait_seconds=wait,
        )

    def change(self, tenant: TenantId) -> AbstractAsyncContextManager[Connection]:
        """For one job that a tenant wants changed."""
        return self._turn(self._tenants, ("change", tenant), self._ends_at())

    @asynccontextmanager
    async def page(self, tenant: TenantId) -> AsyncIterator[Connection]:
        """For a page of jobs; it waits behind other pages first, where no single job waits."""
        ends_at = self._ends_at()
        async with (
            self._pages.held(tenant),
            self._turn(self._tenants, ("page", tenant), ends_at) as connection,
        ):
            yield connection

    def leases(
        self, tenant: TenantId | None, session: str, shard: ShardId
    ) -> AbstractAsyncContextManager[Connection]:
        """For leases that a worker names: one of a tenant's own (all together), or a shared one.
        They are of this shard, and of those that lie with it."""
        if tenant is None:
            return self._turn(self._shared_workers, session, self._ends_at(), shard)
        return self._turn(self._tenants, ("leases", tenant), self._ends_at(), shard)

    def together(self, shard: ShardId) -> int | None:
        """As `Database.together`: what one statement may name."""
        return self._database.together(shard)

    @asynccontextmanager
    async def _turn(
        self,
        slots: OwnerSlots,
        owner: Hashable,
        ends_at: float,
        shard: ShardId | None = None,
    ) -> AsyncIterator[Connection]:
        """A place by then at the latest, and a connection for what is left of the whole time."""
        time = asyncio.get_running_loop().time
        async with slots.held(owner, wait_seconds=max(ends_at - time(), 0.0)):
            left_seconds = ends_at - time() + self._database.wait_seconds - self._wait_seconds
            async with self._database.hot(left_seconds, shard) as connection:
                yield connection

    def _ends_at(self) -> float:
        """When somebody who asks now has waited long enough for a turn."""
        return asyncio.get_running_loop().time() + self._wait_seconds
