"""Lets flows in: their jobs and their counters are written together, or neither is.

What starts at once is a submission like any other, by the tenant's rate and depth. What waits for
others is there as well, scheduled for no time. A large group comes in pages: it is open until the
last of them, and a page that is sent again finds its jobs where they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from fairway.core.errors import Conflict, InvalidRequest, NotFound, Unavailable
from fairway.core.flows import (
    FLOWS_OF_A_JOB_MAX,
    GROUP_MAX,
    FlowTally,
    Kind,
    Needs,
    Step,
    member_ids,
    step_of,
    tally_of,
)
from fairway.core.ids import NO_EPOCH, JobId, ShardId, TenantId, TypeId
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.tenant import Tenant, several_shards
from fairway.services.backpressure.connection_turns import HotTurns
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.tenant_parts import TenantParts
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.submit.hints import Hints
from fairway.services.submit.submission import Submissions
from fairway.services.submit.submission_group import NewJob, heard_of, oldest_by_stream
from fairway.services.transient_errors import told_if_away
from fairway.store import flows as store
from fairway.store import submissions
from fairway.store.connections.database import Connection
from fairway.store.flow_locks import lock_tenant
from fairway.store.flows import FlowEffects, NewFlow, NewMember
from fairway.store.submissions import KeyClaim


class WantedFlow(NamedTuple):
    """A flow as the edge understood it."""

    kind: Kind
    jobs: Sequence[NewJob]
    arguments: Sequence[str | None] = ()  # of a chain: which takes the result of the job before
    callback: NewJob | None = None
    needs: Needs = Needs.SUCCEEDED
    after: Sequence[JobId] = ()
    is_open: bool = False

    @property
    def job_count(self) -> int:
        return len(self.jobs) + (self.callback is not None)

    def heard_of(self, tenant: Tenant) -> WantedFlow:
        """The same; marked, if its tenant wants to hear what becomes of its jobs."""
        last = None if self.callback is None else heard_of(tenant, [self.callback])[0]
        return self._replace(jobs=heard_of(tenant, self.jobs), callback=last)


class MadeFlow(NamedTuple):
    id: str
    jobs: list[JobId]
    callback: JobId | None
    replayed: bool = False


class FlowPlan(NamedTuple):
    """All that is written of a new flow, but for whom it waits."""

    id: str
    members: list[NewMember]
    flows: list[NewFlow]
    starters: list[JobId]  # those that wait for `after`, if there is any
    entry: str  # the id of the flow that counts `after`
    callback: JobId | None


class FlowPage(NamedTuple):
    """More members of a group that is open."""

    start: int
    jobs: Sequence[NewJob]
    is_last: bool


class FlowIntake:
    def __init__(
        self,
        turns: HotTurns,
        directory: Directory,
        dispatcher: Dispatcher,
        submissions: Submissions,
        hints: Hints,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._turns = turns
        self._directory = directory
        self._dispatcher = dispatcher
        self._submissions = submissions
        self._hints = hints
        self._tenant_shards = tenant_shards

    async def create(
        self,
        tenant: Tenant,
        wanted: WantedFlow,
        key: tuple[str, bytes] | None,
        *,
        is_admitted: bool = False,
    ) -> MadeFlow:
        """`key` is an Idempotency-Key and the hash of the body that came with it."""
        if not is_admitted:
            self._submissions.admit(tenant, wanted.job_count)
        _refuse_other_shards(tenant, wanted.after, self._directory.parts)
        wanted = wanted.heard_of(tenant)
        callback = [] if wanted.callback is None else [wanted.callback]
        names = [new.type for new in (*wanted.jobs, *callback)]
        types = await self._directory.names.know(tenant.id, names)
        shard = self._tenant_shards.taking(tenant.id)
        ids = self._submissions.ids.make(shard, len(wanted.jobs) + 3 if wanted.arguments else 3)
        plan = plan_of(tenant.id, wanted, types, ids)
        async with told_if_away, self._turn(tenant.id) as connection:
            self._tenant_shards.still_takes(tenant.id, shard)
            holder = await _claimed(connection, shard, tenant.id, plan.id, key)
            if holder is not None:
                return await _made_before(connection, shard, tenant.id, holder, len(wanted.jobs))
            members = await self._write(connection, shard, tenant.id, plan, wanted)
        self._announce(shard, [one.job for one in members if not one.waits])
        jobs = member_ids(plan.id, len(wanted.jobs))
        return MadeFlow(plan.id, jobs, plan.callback)

    async def _write(
        self,
        connection: Connection,
        shard: ShardId,
        tenant: TenantId,
        plan: FlowPlan,
        wanted: WantedFlow,
    ) -> list[NewMember]:
        members = plan.members
        if wanted.after:
            await lock_tenant(connection, shard, tenant)
            entry = await _entry(connection, shard, tenant, plan, wanted)
            if entry is not None:
                await store.add(connection, shard, tenant, [entry])
                held = set(plan.starters)
                members = [one._replace(waits=one.waits or one.job.id in held) for one in members]
        await store.add(connection, shard, tenant, plan.flows)
        await store.insert(connection, shard, members)
        return members

    async def add_page(
        self, tenant: Tenant, flow: str, page: FlowPage, *, is_admitted: bool = False
    ) -> list[JobId]:
        """More members; with the last page the group is whole."""
        if not is_admitted:
            self._submissions.admit(tenant, len(page.jobs))
        page = page._replace(jobs=heard_of(tenant, page.jobs))
        names = [new.type for new in page.jobs]
        types = await self._directory.names.know(tenant.id, names) if names else {}
        shard, effects = self._tenant_shards.taking(tenant.id), FlowEffects()
        ids = member_ids(flow, len(page.jobs), page.start)
        jobs = [queued(tenant.id, id_, new, types) for id_, new in zip(ids, page.jobs, strict=True)]
        async with told_if_away, self._turn(tenant.id) as connection:
            self._tenant_shards.still_takes(tenant.id, shard)
            await lock_tenant(connection, shard, tenant.id)
            size = await store.lock(connection, shard, tenant.id, flow)
            if is_there(size, flow, page):
                return ids
            members = page.start + len(jobs)
            await store.grow(connection, shard, tenant.id, flow, (members, not page.is_last))
            pairs = zip(jobs, page.jobs, strict=True)
            more = [NewMember(job, [flow], marks=new.marks) for job, new in pairs]
            await store.insert(connection, shard, more)
            if page.is_last:
                whole = await store.read(connection, shard, tenant.id, flow)
                assert whole is not None
                await store.settle_waiting(connection, shard, whole, effects)
        self._announce(shard, jobs, effects)
        return ids

    @asynccontextmanager
    async def _turn(self, tenant: TenantId) -> AsyncIterator[Connection]:
        """One at a time of a tenant's: no number of flows takes the connections of others."""
        async with self._turns.change(tenant) as connection, connection.transaction():
            yield connection

    def _announce(
        self, shard: ShardId, jobs: list[QueuedJob], effects: FlowEffects | None = None
    ) -> None:
        """The owner reads them from the store: it may have done so already."""
        firsts = oldest_by_stream(jobs)
        for key, first in (effects.firsts if effects else {}).items():
            firsts[key] = min(firsts.get(key, first), first)
        if self._dispatcher.owns(shard):
            self._dispatcher.hinted(shard, firsts)
        elif firsts:
            self._hints.add(shard, firsts)


def plan_of(
    tenant: TenantId, wanted: WantedFlow, types: Mapping[str, TypeId], fresh: Sequence[JobId]
) -> FlowPlan:
    """A flow for the whole; in a chain a link from each job to the next."""
    whole, entry, after_all, *links = fresh
    ids = member_ids(whole, len(wanted.jobs))
    jobs = [queued(tenant, id_, new, types) for id_, new in zip(ids, wanted.jobs, strict=True)]
    is_chain = wanted.kind is Kind.CHAIN
    members = []
    for n, (job, new) in enumerate(zip(jobs, wanted.jobs, strict=True)):
        counted_by = [whole, links[n]] if is_chain and n < len(jobs) - 1 else [whole]
        members.append(NewMember(job, counted_by, is_chain and n > 0, new.marks))
    flows = [
        NewFlow(
            links[n], Kind.LINK, Needs.SUCCEEDED, False, FlowTally(1), [after], before, argument
        )
        for n, (before, after, argument) in enumerate(
            zip(ids, ids[1:], wanted.arguments[1:], strict=False)
        )
        if is_chain
    ]
    callback = None
    if wanted.callback is not None:
        callback = after_all
        last = queued(tenant, callback, wanted.callback, types)
        members.append(NewMember(last, (), True, wanted.callback.marks))
    waiting = [] if callback is None else [callback]
    flows.append(
        NewFlow(whole, wanted.kind, wanted.needs, wanted.is_open, FlowTally(len(jobs)), waiting)
    )
    starters = ids[:1] if is_chain else ids
    return FlowPlan(whole, members, flows, starters, entry, callback)


def queued(tenant: TenantId, job: JobId, new: NewJob, types: Mapping[str, TypeId]) -> QueuedJob:
    return QueuedJob(
        job,
        tenant,
        new.pool,
        types[new.type],
        new.priority,
        new.lane,
        NO_EPOCH,
        0,
        0,
        new.timeout_ms,
        new.payload,
        limits=new.limits,
        trace=new.trace,
    )


def _refuse_other_shards(tenant: Tenant, after: Sequence[JobId], parts: TenantParts) -> None:
    """Ends are counted in the transaction that writes them, so what is waited for is beside it."""
    for job in after if tenant.parts else ():
        if parts.with_job(tenant, job).id != tenant.id:
            raise several_shards(
                f"Job {job} is in another shard of your tenant than its flows, so none can wait for"
                " it: submit both as one chain or group."
            )


async def _entry(
    connection: Connection, shard: ShardId, tenant: TenantId, plan: FlowPlan, wanted: WantedFlow
) -> NewFlow | None:
    """What counts the jobs that these wait for; None when nothing is left to wait for."""
    found = await store.lock_needed(connection, shard, tenant, wanted.after)
    known = {one.id for one in found}
    for place, job in enumerate(wanted.after):
        if job not in known:
            raise NotFound(f"There is no job {job}.", field=f"/after/{place}")
    tally = tally_of([one.state for one in found])
    step = step_of(wanted.needs, tally, is_open=False)
    if step is Step.GIVE_UP:
        raise Conflict("A job in `after` was cancelled or has expired: it will never succeed.")
    if step is Step.RELEASE:
        return None
    undecided = [one for one in found if not State(one.state).is_final or one.state == State.DEAD]
    if any(one.flows >= FLOWS_OF_A_JOB_MAX for one in undecided):
        raise Conflict(f"A job in `after` is waited for by {FLOWS_OF_A_JOB_MAX} flows already.")
    await store.join(connection, shard, tenant, plan.entry, [one.id for one in undecided])
    return NewFlow(plan.entry, Kind.LINK, wanted.needs, False, tally, plan.starters)


async def _claimed(
    connection: Connection,
    shard: ShardId,
    tenant: TenantId,
    flow: JobId | str,
    key: tuple[str, bytes] | None,
) -> str | None:
    """The flow that was made with this key before."""
    if key is None:
        return None
    name, body_hash = f"flow\x1f{key[0]}", key[1]  # no character that a key can hold
    claim = KeyClaim(tenant, name, body_hash, JobId(flow))
    taken = await submissions.claim_keys(connection, shard, [claim])
    holder = taken.get((tenant, name))
    if holder is None:
        return None
    if holder.body_hash != body_hash:
        raise InvalidRequest(
            "This Idempotency-Key was used with another body; use a new key for a new flow.",
            code="IDEMPOTENCY_KEY_REUSED",
        )
    return holder.job


async def _made_before(
    connection: Connection, shard: ShardId, tenant: TenantId, flow: str, count: int
) -> MadeFlow:
    """With the jobs of its first page, as it was answered then."""
    found = await store.read(connection, shard, tenant, flow)
    if found is None:
        raise Unavailable()
    callback = found.waiting[0] if found.waiting else None
    return MadeFlow(flow, member_ids(flow, count), callback, replayed=True)


def is_there(size: tuple[int, bool] | None, flow: str, page: FlowPage) -> bool:
    """Whether this page came before; refused when it is not the one that comes next."""
    if size is None:
        raise NotFound(f"There is no flow {flow}.")
    members, is_open = size
    stop = page.start + len(page.jobs)
    if stop <= members and (page.jobs or not is_open):
        return True
    if not is_open:
        raise Conflict("The flow is complete: no more jobs can be added to it.")
    if page.start != members:
        raise Conflict(f"The flow has {members} jobs: its next page starts there.", field="/start")
    if stop > GROUP_MAX:
        raise InvalidRequest(f"A group has at most {GROUP_MAX} jobs.", field="/jobs")
    return False
