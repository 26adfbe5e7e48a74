"""Flows in the store: ends of members are counted in the transaction that writes them.

Whoever ends jobs that are in a flow, or brings one back, does it within `counting`: it looks at the
members before and after, adds the difference to their flows, once a flow, and starts or gives up
those that wait for one. One at a time counts in a tenant's flows, so this takes the tenant's lock;
what is in no flow is written without it, by statements that leave members alone (`in_flow`). A job
that is in a flow stays in it: who found it there need not look again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from fairway.core.backlog.streams import StreamKey
from fairway.core.flows import (
    CANCELLED,
    FORGOTTEN,
    NEVER,
    TOO_LARGE,
    Change,
    FlowTally,
    Kind,
    MemberSeen,
    Needs,
    Step,
    changes_of,
    label_of,
    step_of,
    with_argument,
)
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.job import NO_MARKS, JobMarks, QueuedJob
from fairway.core.lifecycle import State
from fairway.core.object_storage.reference import referred
from fairway.store import arrays
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_as,
    fetch_row,
    fetch_value,
)
from fairway.store.flow_locks import FlowsBusy, Wait, locked
from fairway.store.sql import load

_SQL = load("flows.sql")

STEPS_MAX = 20  # of flows that follow from flows, in one transaction; of some four statements each

Key = tuple[TenantId, JobId]


class FlowRecord(NamedTuple):
    """A flow as it stands."""

    id: str
    tenant: TenantId
    kind: int
    needs: int
    is_open: bool
    members: int
    succeeded: int
    failed: int
    cancelled: int
    waiting: Sequence[JobId]
    source: JobId | None
    argument: str | None
    last_failed: JobId | None
    created_at: datetime
    finished_at: datetime | None

    @property
    def tally(self) -> FlowTally:
        return FlowTally(self.members, self.succeeded, self.failed, self.cancelled)

    @property
    def label(self) -> str:
        return label_of(Kind(self.kind), self.tally, is_open=self.is_open)

    @property
    def step(self) -> Step:
        return step_of(Needs(self.needs), self.tally, is_open=self.is_open)


class NewFlow(NamedTuple):
    id: str
    kind: Kind
    needs: Needs
    is_open: bool
    tally: FlowTally
    waiting: Sequence[str]
    source: JobId | None = None
    argument: str | None = None


class FlowEffects:
    """What became of jobs that waited, to be told when it is on disk."""

    def __init__(self) -> None:
        self.firsts: dict[StreamKey, str] = {}  # the oldest of those that may run, by stream
        self.moved: list[JobId] = []

    def released(self, key: StreamKey, job: JobId) -> None:
        self.firsts[key] = min(self.firsts.get(key, job), job)
        self.moved.append(job)

    def given_up(self, jobs: Iterable[JobId]) -> None:
        self.moved.extend(jobs)


@asynccontextmanager
async def counting(
    connection: Connection, shard: ShardId, keys: Sequence[Key], wait: Wait = Wait.USUAL
) -> AsyncIterator[FlowEffects]:
    """A transaction in which these jobs of one tenant may end, or come back; what that means is
    done with it. Refuses with `FlowsBusy` when there is no waiting, or only a short one."""
    effects = FlowEffects()
    async with locked(connection, shard, keys[0][0], wait):
        before = await _members(connection, sorted(keys), [shard] * len(keys))
        yield effects
        if not before:
            return
        there = [(one.tenant, job) for job, one in before]
        after = await _members(connection, there, [shard] * len(there))
        states = {job: one.state for job, one in after}
        changes = changes_of((job, one, states[job]) for job, one in before if job in states)
        await apply_changes(connection, shard, changes, effects)


async def in_flows(
    connection: Connection, keys: Sequence[Key], shards: Sequence[ShardId]
) -> set[str]:
    """Which of these jobs are in a flow; the shard of each stands beside it."""
    return {job for job, _ in await _members(connection, keys, shards)}


async def _members(
    connection: Connection, keys: Sequence[Key], shards: Sequence[ShardId]
) -> list[tuple[JobId, MemberSeen]]:
    asked = arrays.columns(keys, "tenants", "ids")
    rows = await fetch(connection, _SQL["read_members"], shards=shards, **asked)
    return [
        (JobId(row["id"]), MemberSeen(row["tenant"], State(row["state"]), tuple(row["flows"])))
        for row in rows
    ]


async def apply_changes(
    connection: Connection,
    shard: ShardId,
    changes: dict[tuple[TenantId, str], Change],
    effects: FlowEffects,
) -> None:
    """Who is given up is a member of other flows, perhaps: so on, until nobody is.

    Flows behind flows may be thousands, and whoever wants the connection waits. What is left after
    some steps, which is all of members that were given up, is owed (`flow_cascades.py`).
    """
    for _ in range(STEPS_MAX):
        if not changes:
            return
        rows = [(*key, *change) for key, change in sorted(changes.items())]
        names = ("tenants", "ids", "succeeded", "failed", "cancelled", "examples")
        counted = await fetch_as(
            FlowRecord, connection, _SQL["count_ends"], shard=shard, **arrays.columns(rows, *names)
        )
        changes = await follow(connection, shard, counted, effects)
    if changes:
        left = [(*key, one.cancelled, one.example) for key, one in sorted(changes.items())]
        columns = arrays.columns(left, "tenants", "ids", "cancelled", "examples")
        await execute(connection, _SQL["owe_ends"], shard=shard, **columns)


async def follow(
    connection: Connection, shard: ShardId, flows: Sequence[FlowRecord], effects: FlowEffects
) -> dict[tuple[TenantId, str], Change]:
    """Start or give up those that wait for these flows; answers what that changes in others."""
    free: list[tuple[TenantId, JobId, bytes | None]] = []
    gone: list[tuple[TenantId, JobId, bytes]] = []
    for flow in flows:
        if flow.step is Step.GIVE_UP:
            gone += [(flow.tenant, job, CANCELLED) for job in flow.waiting]
        elif flow.step is Step.RELEASE:
            payloads = await _payloads(connection, shard, flow)
            if payloads is None:
                gone += [(flow.tenant, job, TOO_LARGE) for job in flow.waiting]
            else:
                free += [(flow.tenant, job, payloads.get(job)) for job in flow.waiting]
    await _release(connection, shard, free, effects)
    return await _give_up(connection, shard, gone, effects)


async def _payloads(
    connection: Connection, shard: ShardId, flow: FlowRecord
) -> dict[str, bytes] | None:
    """Payloads that get a result as an argument; None when it is too large for that."""
    if flow.source is None or flow.argument is None:
        return {}
    given = {"shard": shard, "tenant": flow.tenant}
    result = await fetch_value(connection, _SQL["read_result"], **given, id=flow.source) or b"null"
    if referred(result) is not None:
        return None
    rows = await fetch(connection, _SQL["read_payloads"], **given, ids=list(flow.waiting))
    return {row["id"]: with_argument(row["payload"], flow.argument, result) for row in rows}


async def _release(
    connection: Connection,
    shard: ShardId,
    free: Sequence[tuple[TenantId, JobId, bytes | None]],
    effects: FlowEffects,
) -> None:
    if free:
        values = arrays.columns(sorted(free, key=_place), "tenants", "ids", "payloads")
        for row in await fetch(connection, _SQL["release"], shard=shard, **values):
            *key, job = tuple(row)
            effects.released(StreamKey._make(key), JobId(job))


async def _give_up(
    connection: Connection,
    shard: ShardId,
    gone: Sequence[tuple[TenantId, JobId, bytes]],
    effects: FlowEffects,
) -> dict[tuple[TenantId, str], Change]:
    if not gone:
        return {}
    values = arrays.columns(sorted(gone, key=_place), "tenants", "ids", "errors")
    rows = await fetch(connection, _SQL["give_up"], shard=shard, **values)
    effects.given_up(JobId(row["id"]) for row in rows)
    return changes_of(
        (
            JobId(row["id"]),
            MemberSeen(row["tenant"], State.SCHEDULED, tuple(row["flows"] or ())),
            State.CANCELLED,
        )
        for row in rows
    )


def _place(row: Sequence[Any]) -> tuple[TenantId, JobId]:
    return row[0], row[1]


# -- flows by name -------------------------------------------------------------------------------


async def read(
    connection: Connection, shard: ShardId, tenant: TenantId, flow: str
) -> FlowRecord | None:
    found = await fetch_as(
        FlowRecord, connection, _SQL["read_flow"], shard=shard, tenant=tenant, id=flow
    )
    return found[0] if found else None


async def list_flows(
    connection: Connection, shard: ShardId, tenant: TenantId, span: tuple[str, str], limit: int
) -> list[FlowRecord]:
    """Those with a name, the newest first; `span` is from which id on, and below which."""
    given = {"shard": shard, "tenant": tenant, "since": span[0], "before": span[1]}
    return await fetch_as(FlowRecord, connection, _SQL["list_flows"], **given, limit=limit)


async def add(
    connection: Connection, shard: ShardId, tenant: TenantId, flows: Sequence[NewFlow]
) -> None:
    rows = [
        (
            one.id, one.kind.value, one.needs.value, one.is_open, *one.tally,
            "{" + ",".join(one.waiting) + "}", one.source, one.argument,
        )
        for one in flows
    ]  # fmt: skip
    names = (
        "ids", "kinds", "needs", "opens", "members", "succeeded", "failed", "cancelled", "waiting",
        "sources", "arguments",
    )  # fmt: skip
    values: dict[str, Any] = arrays.columns(rows, *names)
    await execute(connection, _SQL["add_flows"], shard=shard, tenant=tenant, **values)


class Needed(NamedTuple):
    """A job that another is to wait for."""

    id: JobId
    state: int
    flows: int  # that count its end already


async def lock_needed(
    connection: Connection, shard: ShardId, tenant: TenantId, ids: Sequence[str]
) -> list[Needed]:
    return await fetch_as(
        Needed, connection, _SQL["lock_needed"], shard=shard, tenant=tenant, ids=list(ids)
    )


async def join(
    connection: Connection, shard: ShardId, tenant: TenantId, flow: str, ids: Sequence[str]
) -> None:
    """From now on the ends of these jobs are counted in this flow, too."""
    if ids:
        given = {"shard": shard, "tenant": tenant, "flow": flow}
        await execute(connection, _SQL["join_flow"], **given, ids=list(ids))


class NewMember(NamedTuple):
    """A job that is written with its flow."""

    job: QueuedJob
    flows: Sequence[str]
    waits: bool = False  # for another flow
    marks: JobMarks | None = None  # its tenant's own words, if it has any


_COLUMNS = (
    "shard", "state", "id", "tenant", "type", "pool", "priority", "lane", "timeout_ms", "payload",
    "execute_at", "flows", "limits", "trace", *JobMarks._fields,
)  # fmt: skip


async def insert(connection: Connection, shard: ShardId, members: Sequence[NewMember]) -> None:
    records = [
        (
            shard, (State.SCHEDULED if waits else State.QUEUED).value, job.id, job.tenant, job.type,
            job.pool, job.priority, job.lane, job.timeout_ms, job.payload,
            NEVER if waits else None, list(flows) or None, job.limits, job.trace,
            *(marks or NO_MARKS),
        )
        for job, flows, waits, marks in members
    ]  # fmt: skip
    await connection.copy_records_to_table("jobs", columns=_COLUMNS, records=records)


async def lock(
    connection: Connection, shard: ShardId, tenant: TenantId, flow: str
) -> tuple[int, bool] | None:
    """How many members it has, and whether more may come."""
    row = await fetch_row(connection, _SQL["lock_flow"], shard=shard, tenant=tenant, id=flow)
    return None if row is None else (row["members"], row["is_open"])


async def grow(
    connection: Connection, shard: ShardId, tenant: TenantId, flow: str, size: tuple[int, bool]
) -> None:
    """`size` as `lock` answers it."""
    given = {"shard": shard, "tenant": tenant, "id": flow}
    members, is_open = size
    await execute(connection, _SQL["grow_flow"], **given, members=members, is_open=is_open)


async def settle_waiting(
    connection: Connection, shard: ShardId, flow: FlowRecord, effects: FlowEffects
) -> None:
    """What a flow means for those that wait for it, when it changed otherwise than by an end."""
    changes = await follow(connection, shard, [flow], effects)
    await apply_changes(connection, shard, changes, effects)


async def close(connection: Connection, shard: ShardId, tenant: TenantId, flow: str) -> None:
    """Nobody adds to it any more."""
    await execute(connection, _SQL["close_flow"], shard=shard, tenant=tenant, id=flow)


async def forget(
    connection: Connection, shard: ShardId, since: datetime, limit: int, moving: Iterable[int] = ()
) -> int:
    """Remove flows that are older; who still waits for one of them never starts. Each tenant's
    apart: whose lock is not free soon is left for the next time, and who moves."""
    asked = {"shard": shard, "since": since, "limit": limit, "moving": list(moving)}
    old = await fetch(connection, _SQL["old_flows"], **asked)
    gone = 0
    for tenant, some in groupby(sorted(old, key=_tenant), key=_tenant):
        with suppress(FlowsBusy):
            gone += await _forget(connection, shard, tenant, list(some))
    return gone


async def _forget(
    connection: Connection, shard: ShardId, tenant: TenantId, old: Sequence[Any]
) -> int:
    async with locked(connection, shard, tenant, Wait.SHORT):
        waiting = [(tenant, JobId(job), FORGOTTEN) for row in old for job in row["waiting"]]
        effects = FlowEffects()
        changes = await _give_up(connection, shard, waiting, effects)
        await apply_changes(connection, shard, changes, effects)
        columns = arrays.columns(old, "tenants", "ids")
        return await execute(connection, _SQL["forget_flows"], shard=shard, **columns)


def _tenant(row: Any) -> TenantId:
    return TenantId(row["tenant"])
