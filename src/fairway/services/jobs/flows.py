"""What people ask of a flow: where it stands, to cancel it, to replay what failed in it.

Its jobs follow from its id, so they are read by key, page by page; who waits for it is in its row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from fairway.core.errors import NotFound
from fairway.core.flows import Kind, member_ids, members_before
from fairway.core.ids import JobId, TenantId
from fairway.core.lifecycle import LIVE, State
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.services.jobs.control import Control
from fairway.services.jobs.dead_letters import DeadLetters
from fairway.services.jobs.families import ChildrenPage
from fairway.services.jobs.lookup import JobLookup, is_cut
from fairway.services.transient_errors import told_if_away
from fairway.store import flows as store
from fairway.store import history
from fairway.store.connections.database import Database
from fairway.store.flows import FlowRecord as FlowRecord

PAGE = 500
LOOK_MAX = 500  # flows that are looked at for one page of those that match


class FlowFilter(NamedTuple):
    """What to list; ids are bounds in time (`since` ≤ id < `before`)."""

    before: str
    since: str
    limit: int
    states: Collection[str] | None = None  # as `label_of` says them; None: all
    kinds: Collection[Kind] | None = None

    @property
    def narrows(self) -> bool:
        return self.states is not None or self.kinds is not None

    def has(self, flow: FlowRecord) -> bool:
        is_of_kind = self.kinds is None or flow.kind in self.kinds
        return is_of_kind and (self.states is None or flow.label in self.states)


class FlowsFound(NamedTuple):
    flows: list[FlowRecord]
    last: str | None  # the next page is of what is older than this; None: there is no more


class Flows:
    def __init__(
        self,
        database: Database,
        job_lookup: JobLookup,
        control: Control,
        dead_letters: DeadLetters,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._tenant_shards = tenant_shards
        self._database = database
        self._job_lookup = job_lookup
        self._control = control
        self._dead_letters = dead_letters

    async def look(self, tenant: TenantId, flow: JobId) -> FlowRecord:
        shard = self._tenant_shards.of(tenant)
        async with told_if_away, self._database.quick(tenant) as connection:
            found = await store.read(connection, shard, tenant, flow)
        if found is None:
            self._tenant_shards.still_takes(tenant, shard)  # who waited while it moved asks again
        if found is None or found.kind == Kind.LINK:
            raise NotFound(f"There is no flow {flow}.")
        return found

    async def page(self, tenant: TenantId, wanted: FlowFilter) -> FlowsFound:
        """The newest that match. Of few among many a page may be short, and yet not the last."""
        shard, span = self._tenant_shards.of(tenant), (wanted.since, wanted.before)
        count = LOOK_MAX if wanted.narrows else wanted.limit + 1
        database = self._database
        asked = database.slow(tenant) if wanted.narrows else database.quick(tenant)
        async with told_if_away, asked as connection:
            seen = await store.list_flows(connection, shard, tenant, span, count)
        return found_in(seen, wanted, is_all=len(seen) < count)

    async def error_of(self, tenant: TenantId, flow: FlowRecord) -> bytes | None:
        """Why the last of its jobs that did not succeed did not."""
        if flow.last_failed is None:
            return None
        try:
            return (await self._job_lookup.job(tenant, flow.last_failed)).record.error
        except NotFound:  # its retention is over
            return None

    async def jobs(self, tenant: TenantId, flow: JobId, after: str, limit: int) -> ChildrenPage:
        """A page of its jobs, the newest first."""
        found = await self.look(tenant, flow)
        before = members_before(flow, found.members, JobId(after))
        first = max(before - limit, 0)
        some = member_ids(flow, before - first, first)
        if not some:
            return ChildrenPage([], None)
        async with told_if_away, self._database.quick(tenant) as connection:
            shard = self._tenant_shards.of(tenant)
            records = await history.list_children(connection, shard, tenant, some)
        last = records[-1].id if is_cut(records) else some[0] if first else None
        return ChildrenPage(await self._job_lookup.with_runs(tenant, records), last)

    async def cancel(self, tenant: TenantId, flow: JobId) -> FlowRecord:
        """What waits is cancelled, what runs is asked to stop; who waits for the flow goes first,
        so that nothing starts because the rest has ended."""
        found, shard = await self.look(tenant, flow), self._tenant_shards.of(tenant)
        async with told_if_away, self._database.quick(tenant) as connection:
            await store.close(connection, shard, tenant, flow)
        for page in _pages(found):
            async with told_if_away, self._database.quick(tenant) as connection:
                jobs = await history.read_relatives(connection, shard, tenant, page)
            live = [one.live for one in jobs if State(one.state) in LIVE]
            if live:
                await self._control.cancel_these(tenant, shard, live)
        return await self.look(tenant, flow)

    async def replay(self, tenant: TenantId, flow: JobId) -> int:
        """Its dead letters, back to the queue; answers how many there were."""
        found = await self.look(tenant, flow)
        count = 0
        for page in _pages(found):
            count += await self._dead_letters.replay_these(tenant, page)
        return count


def found_in(seen: Sequence[FlowRecord], wanted: FlowFilter, *, is_all: bool) -> FlowsFound:
    """A page of those that were looked at, and where the next goes on; `is_all`: none is older."""
    matching = [one for one in seen if wanted.has(one)]
    if len(matching) > wanted.limit:
        page = matching[: wanted.limit]
        return FlowsFound(page, page[-1].id)
    return FlowsFound(matching, None if is_all else seen[-1].id)


def _pages(flow: FlowRecord) -> Iterator[list[JobId]]:
    """Who waits for it, then its own jobs."""
    if flow.waiting:
        yield list(flow.waiting)
    for start in range(0, flow.members, PAGE):
        yield member_ids(flow.id, min(PAGE, flow.members - start), start)
