"""Writes a group in which jobs want to be the only one of their kind, in the caller's transaction.

Keys, then names, then jobs; a job that lost its name keeps no key. Those that take the place of
others do it here, with the fence and under the eyes of the owner, as any cancellation: it knows
what runs before the rows say so. Whoever is not the owner replaces nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from fairway.core.backlog.streams import StreamKey, key_of
from fairway.core.errors import Unavailable
from fairway.core.ids import JobId, ShardId, TenantId, Term, unix_ms_of
from fairway.core.job import QueuedJob
from fairway.core.unique import (
    Held,
    Holder,
    Lost,
    Settled,
    UniqueClaim,
    UniqueName,
    UniqueWish,
    Why,
    capped_ms,
    first_claims,
    judged,
    settle,
)
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.submit.idempotency_keys import jobs_to_write
from fairway.services.submit.submission_group import (
    Submission,
    Written,
    is_traced,
    marks_in,
    scheduled_in,
    unique_claims,
    wishes_in,
)
from fairway.store import outcomes, unique_jobs
from fairway.store import submissions as store
from fairway.store.connections.database import Connection
from fairway.store.submissions import KeyClaim, KeyHolder

Streams = dict[JobId, StreamKey]


class UniqueIntake:
    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def write(
        self,
        connection: Connection,
        shard: ShardId,
        group: list[Submission],
        claims: dict[tuple[TenantId, str], KeyClaim],
    ) -> Written:
        """All of it or nothing; Unavailable when the shard has another owner since."""
        taken: dict[tuple[TenantId, str], KeyHolder] = {}
        if claims:
            taken = await store.claim_keys(connection, shard, list(claims.values()))
        jobs, wishes = jobs_to_write(group, claims, taken), wishes_in(group)
        term = self._dispatcher.restored_term_of(shard)
        names = unique_claims(wishes, jobs)
        refused = {one.job: Lost(Why.NOT_OWNER) for one in names if one.replaces and term is None}
        names = [one for one in names if one.job not in refused]
        settled, streams = await self._settle(connection, shard, names)
        lost = refused | settled.lost
        if unheld := [claim for claim in claims.values() if claim.job in lost]:
            await store.release_keys(connection, shard, unheld)
        if winners := [job for job in jobs if job.id not in lost]:
            winners = _capped(winners, wishes, settled.since_ms)
            await store.insert_jobs(
                connection,
                shard,
                winners,
                scheduled_in(group),
                marks_in(group),
                traced=is_traced(group),
            )
        written = {job.id: key_of(job) for job in winners}
        if settled.replaced and term is not None:
            await _cancel(connection, shard, term, settled.replaced, streams | written)
        before = [(job, streams[job]) for job in settled.replaced if job not in written]
        return Written(taken, lost, before, frozenset(settled.replaced).intersection(written))

    async def _settle(
        self, connection: Connection, shard: ShardId, names: list[UniqueClaim]
    ) -> tuple[Settled, Streams]:
        """Who holds each name, on disk; and where those are that were replaced."""
        if not names:
            return settle((), {}), {}
        first = first_claims(names)
        held = await unique_jobs.claim_unique(connection, shard, list(first.values()))
        asked = {one.name for one in names if one.replaces and one.name in held}
        judgements, streams = await self._judge(connection, shard, held, asked)
        settled = settle(names, judgements)
        moved = [
            claim
            for name, claim in settled.holders.items()
            if name in held or claim.job != first[name].job
        ]
        if moved:
            await unique_jobs.hand_over_unique(connection, shard, moved, settled.since_ms)
        return settled, streams

    async def _judge(
        self,
        connection: Connection,
        shard: ShardId,
        held: Mapping[UniqueName, Held],
        asked: Collection[UniqueName],
    ) -> tuple[dict[UniqueName, Holder], Streams]:
        """Each as it stands; only those that somebody would replace are looked at."""
        found = {name: Holder(one.job) for name, one in held.items()}
        if not asked:
            return found, {}
        underway = {name for name in asked if self._dispatcher.is_underway(held[name].job)}
        keys = [(name[0], held[name].job) for name in asked if name not in underway]
        waiting = await unique_jobs.lock_waiting(connection, shard, keys)
        for name in asked:
            one = waiting.get(held[name].job)
            waits = None if one is None else one.waits
            found[name] = judged(held[name], waits, is_underway=name in underway)
        return found, {job: one.key for job, one in waiting.items()}


def _capped(
    jobs: list[QueuedJob], wishes: Mapping[str, UniqueWish], since_ms: Mapping[JobId, int]
) -> list[QueuedJob]:
    """The same jobs; those that were put off long enough are due earlier than they asked for."""
    return [_capped_job(job, wishes[job.id], since_ms) if job.id in wishes else job for job in jobs]


def _capped_job(job: QueuedJob, wish: UniqueWish, since_ms: Mapping[JobId, int]) -> QueuedJob:
    if job.timing is None or job.timing[0] is None:
        return job
    first_ms = since_ms.get(job.id, unix_ms_of(job.id))
    due_ms = capped_ms(job.timing[0], first_ms, wish.delay_most_ms)
    return replace(job, timing=[due_ms, *job.timing[1:]])


async def _cancel(
    connection: Connection,
    shard: ShardId,
    term: Term,
    replaced: Collection[JobId],
    streams: Streams,
) -> None:
    """They are locked or our own, so only a lost term keeps one."""
    keys = [(streams[job].tenant, job) for job in replaced]
    if len(await outcomes.cancel_each(connection, shard, term, keys)) < len(keys):
        raise Unavailable(code="NOT_OWNER")
