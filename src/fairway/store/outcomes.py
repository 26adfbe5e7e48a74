"""Records what became of runs, in batches: rows guarded by their lease and by their shard's term.

A guard that refuses is not an error: the answer says which rows were written, and a batch whose
reply was lost can be sent again: rows that it wrote the first time count as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from fairway.core.ids import Epoch, JobId, ShardId, TenantId, Term
from fairway.core.job import NO_MARKS, QueuedJob
from fairway.core.lifecycle import State
from fairway.core.run.follow_ups import Children
from fairway.core.unix_time import from_unix_ms
from fairway.store import arrays
from fairway.store.billing.ends_in_steps import end_in_steps, is_in_steps
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_value,
    is_found,
)
from fairway.store.connections.shard_terms import guard
from fairway.store.sql import load

_SQL = load("outcomes.sql")


class Success(NamedTuple):
    shard: ShardId
    tenant: TenantId
    job: JobId
    epoch: Epoch
    ran_us: int
    result: bytes | None
    place: str | None = None


# A Success, or as plain as one.
SuccessRow: TypeAlias = tuple[ShardId, TenantId, JobId, Epoch, int, bytes | None, str | None]


# By job: where it is, whose, and how its row stands once its end is recorded.
_Expected: TypeAlias = dict[str, tuple[ShardId, TenantId, State, Epoch]]


class Parent(NamedTuple):
    """A success that starts others."""

    success: Success
    children: Children


class Settlement(NamedTuple):
    shard: ShardId
    tenant: TenantId
    job: JobId
    epoch: Epoch
    state: State
    attempts: int
    deliveries: int
    execute_at: datetime | None
    ran_us: int
    error: bytes | None
    failures: Sequence[int] | None = None  # counts by class; None while none
    fingerprint: int | None = None  # of a dead letter's cause
    entry: bytes = b"{}"  # the run, for the job's history
    billed_us: int = 0  # of its slot-time; the rest is the platform's own
    is_attempt: bool = False  # that is billed
    ended_at: datetime | None = None  # as its entry has it; None: when it is recorded


class RefusedEnd(NamedTuple):
    """The end of a job whose run could not be recorded: a death, and why."""

    shard: ShardId
    tenant: TenantId
    job: JobId
    epoch: Epoch
    error: bytes
    fingerprint: int


async def record_successes(
    connection: Connection,
    terms: Mapping[ShardId, Term],
    done: Sequence[SuccessRow],
    *,
    in_flow: bool = False,
) -> set[str]:
    """Answers the ids that are not recorded under their epoch: refused by the guard.

    Here and below, those that are in a flow are among them, unless their ends are counted now.
    """
    done = sorted(done)  # rows are locked in one order by all: batches must not deadlock
    shards, tenants, ids, epochs, rans_us, results, places = zip(*done, strict=True)
    values = {
        **guard(terms),
        "in_flow": in_flow,
        "shards": arrays.numbers(shards),
        "tenants": arrays.numbers(tenants),
        "ids": arrays.ids(ids),
        "epochs": arrays.numbers(epochs),
        "rans_us": arrays.numbers(rans_us),
        "results": _without_nulls(results),
    }
    touched, by_key = 0, _SQL["record_successes"]
    if is_in_steps(connection):
        touched = len(await end_in_steps(connection, by_key, values))
    elif None not in places:
        in_place = arrays.places(places)
        touched = await fetch_value(
            connection, _SQL["record_successes_in_place"], places=in_place, **values
        )
    if touched < len(done) and not is_in_steps(connection):
        touched += await fetch_value(connection, by_key, **values)
    if touched == len(done):
        return set()
    expected: _Expected = {
        job: (shard, tenant, State.SUCCEEDED, epoch) for shard, tenant, job, epoch, *_ in done
    }
    return await _not_recorded(connection, expected)


def _without_nulls(results: Sequence[bytes | None]) -> list[bytes | None]:
    """JSON's null is not sent, and an array of nothing else is empty: SQL makes up the rest."""
    sent = [None if result == b"null" else result for result in results]
    return sent if any(sent) else []


async def record_parents(
    connection: Connection,
    terms: Mapping[ShardId, Term],
    done: Sequence[Parent],
    *,
    in_flow: bool = False,
) -> set[str]:
    """As `record_successes`; what each of them starts is there from then on, or it is not."""
    done = sorted(done, key=lambda item: item.success[:3])
    ends = [item.success for item in done]
    values = arrays.columns(ends, "shards", "tenants", "ids", "epochs", "rans_us", "results")
    values["children"] = [len(item.children.jobs) for item in done]
    values["children_ms"] = [item.children.at_ms for item in done]
    rows = [_child(item, job) for item in done for job in item.children.jobs]
    values |= arrays.columns(rows, *_OF_CHILD)
    given, statement = {**guard(terms), "in_flow": in_flow}, _SQL["record_parents"]
    if is_in_steps(connection):
        ended = await end_in_steps(connection, statement, given | values, starts=True)
    else:
        ended = await fetch(connection, statement, **given, **values)
    if len(ended) == len(done):
        return set()
    expected = {str(one.job): (one.shard, one.tenant, State.SUCCEEDED, one.epoch) for one in ends}
    return await _not_recorded(connection, expected)


_OF_CHILD = (
    "child_shards", "child_tenants", "parents", "child_ids", "types", "pools", "priorities",
    "lanes", "child_states", "timeouts_ms", "payloads", "execute_ats", "not_afters", "on_lates",
    "child_limits", "child_tags", "child_metadata", "child_events", "child_traces",
)  # fmt: skip


def _child(parent: Parent, job: QueuedJob) -> tuple[object, ...]:
    success = parent.success
    state = State.SCHEDULED if job.id in parent.children.scheduled else State.QUEUED
    due_ms, last_ms, on_late = job.timing or (None, None, None)
    tags, metadata, events = (parent.children.marks or {}).get(job.id, NO_MARKS)
    return (
        success.shard, job.tenant, success.job, job.id, job.type, job.pool, job.priority,
        job.lane, state.value, job.timeout_ms, job.payload, _moment(due_ms), _moment(last_ms),
        on_late, job.limits, None if tags is None else arrays.texts(tags), metadata, events,
        job.trace,
    )  # fmt: skip


def _moment(unix_ms: int | None) -> datetime | None:
    return None if unix_ms is None else from_unix_ms(unix_ms)


async def settle(
    connection: Connection,
    terms: Mapping[ShardId, Term],
    done: Sequence[Settlement],
    *,
    in_flow: bool = False,
) -> set[str]:
    """As `record_successes`, for every other end."""
    done = sorted(done)
    values = {
        **guard(terms),
        "in_flow": in_flow,
        "shards": [item.shard for item in done],
        "tenants": [item.tenant for item in done],
        "ids": [item.job for item in done],
        "epochs": [item.epoch for item in done],
        "states": [item.state.value for item in done],
        "attempts": [item.attempts for item in done],
        "deliveries": [item.deliveries for item in done],
        "execute_ats": [item.execute_at for item in done],
        "rans_us": [item.ran_us for item in done],
        "errors": [item.error for item in done],
        "failures": [_array(item.failures) for item in done],
        "fingerprints": [item.fingerprint for item in done],
        "entries": [item.entry for item in done],
        "billed_us": [item.billed_us for item in done],
        "are_attempts": [item.is_attempt for item in done],
        "ended_ats": [item.ended_at for item in done],
    }
    statement = _SQL["settle"]
    if is_in_steps(connection):
        touched = len(await end_in_steps(connection, statement, values))
    else:
        touched = await fetch_value(connection, statement, **values)
    if touched == len(done):
        return set()
    expected = {str(one.job): (one.shard, one.tenant, one.state, one.epoch) for one in done}
    return await _not_recorded(connection, expected)


async def end_refused(
    connection: Connection,
    terms: Mapping[ShardId, Term],
    done: Sequence[RefusedEnd],
    *,
    in_flow: bool = False,
) -> set[str]:
    """As `settle`, and nothing of the run is written."""
    done = sorted(done)
    values = arrays.columns(done, "shards", "tenants", "ids", "epochs", "errors", "fingerprints")
    given = {**guard(terms), "in_flow": in_flow}
    touched = await execute(connection, _SQL["end_refused"], **given, **values)
    if touched == len(done):
        return set()
    expected = {str(one.job): (one.shard, one.tenant, State.DEAD, one.epoch) for one in done}
    return await _not_recorded(connection, expected)


def _array(counts: Sequence[int] | None) -> str | None:
    """An array as text: rows of arrays cannot be unnested side by side."""
    return None if counts is None else "{" + ",".join(map(str, counts)) + "}"


async def _not_recorded(connection: Connection, expected: _Expected) -> set[str]:
    """An end may stand in a batch twice: said again to an owner that lost its shard and got it
    back, while the first still waited."""
    asked = arrays.columns([*expected.values()], "shards", "tenants") | {"ids": [*expected]}
    rows = await fetch(connection, _SQL["read_ends"], **asked)
    recorded = {
        row["id"] for row in rows if (row["state"], row["epoch"]) == expected[row["id"]][2:]
    }
    return set(expected) - recorded


async def cancel_waiting(
    connection: Connection,
    shard: ShardId,
    term: Term,
    tenant: TenantId,
    job: JobId,
    *,
    in_flow: bool = False,
) -> bool:
    """True when the job was waiting and is now cancelled."""
    given = {"shard": shard, "term": term, "tenant": tenant, "in_flow": in_flow}
    return await is_found(connection, _SQL["cancel_waiting"], **given, id=job)


async def cancel_many(
    connection: Connection,
    shard: ShardId,
    term: Term,
    tenant: TenantId,
    ids: Sequence[JobId],
    *,
    in_flow: bool = False,
) -> set[str]:
    """Those that waited and are now cancelled."""
    keys = [(tenant, job) for job in ids]
    return await cancel_each(connection, shard, term, keys, in_flow=in_flow)


async def cancel_each(
    connection: Connection,
    shard: ShardId,
    term: Term,
    keys: Iterable[tuple[TenantId, JobId]],
    *,
    in_flow: bool = False,
) -> set[str]:
    """The same, of several tenants."""
    given = {"shard": shard, "term": term, "in_flow": in_flow}
    asked = arrays.columns(sorted(keys), "tenants", "ids")  # in one order for all
    rows = await fetch(connection, _SQL["cancel_many"], **given, **asked)
    return {row["id"] for row in rows}
