"""Moves jobs that tenants committed in transactions of their own to the backlog.

A row leaves the outbox and its job comes to be in one transaction, under the shard's term: a crash
leaves all of it or nothing, and two owners cannot make one job twice. Tenants take turns, a page
each, so a million rows of one hold up nobody. What comes in is paid for like any submission: beyond
a tenant's rate or depth it waits where it is. A request that can never be a job is set aside with
the reason, and its tenant hears of it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from fairway.core.backpressure.outbox_room import jobs_to_move
from fairway.core.errors import FairwayError, InvalidRequest
from fairway.core.events.event import NewEvent
from fairway.core.ids import FIRST_SHARD, NO_EPOCH, JobId, ShardId, TenantId, Term, TypeId
from fairway.core.job import JobMarks, QueuedJob
from fairway.core.scheduling.timing import timing_of
from fairway.core.tenant import Tenant
from fairway.runtime.loops import WorkInParts
from fairway.runtime.telemetry import Instruments, logger
from fairway.services.bad_rows import Aside, each_apart, in_each_shard
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.registry.type_names import Namer
from fairway.services.sent_traces import SentTraces
from fairway.services.submit.admission import Admission
from fairway.services.submit.outbox_watch import OutboxWatch
from fairway.services.submit.submission import Submissions
from fairway.services.submit.submission_group import NewJob, heard_of
from fairway.store import outbox as store
from fairway.store.connections.database import Database
from fairway.store.connections.error_classes import has_answered, is_about_rows, reason_of
from fairway.store.events.log import add_notices
from fairway.store.submissions import insert_jobs

log = logger("outbox")

TENANTS_PER_ROUND = 100
PAGE_JOBS = 200  # of one tenant, between two turns of the others
PAGE_BYTES = 1 << 20
REST_SECONDS = 1.0  # a notice that is lost costs as much
REST_LIMITED_SECONDS = 0.25  # a bucket fills meanwhile
REFUSED_KEPT = 1000  # of one tenant
REASON_CHARACTERS_MAX = 500
REFUSALS_TOLD = 5  # of a page, in one event
BEFORE_ALL = TenantId(-1)

#: What a request means, as the edge reads it; it refuses what could not be submitted either.
Read: TypeAlias = Callable[[Tenant, bytes], Awaitable[NewJob]]


class Turn(NamedTuple):
    """Of one tenant, in a shard that is ours."""

    shard: ShardId
    term: Term
    tenant: Tenant


class Outbox:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        dispatcher: Dispatcher,
        submissions: Submissions,
        admission: Admission,
        instruments: Instruments,
    ) -> None:
        self._database = database
        self._directory = directory
        self._dispatcher = dispatcher
        self._submissions = submissions
        self._admission = admission
        self._metrics = instruments.metrics
        self._traces = SentTraces(instruments.spans, directory)
        self._random = random.Random()
        self._after: dict[ShardId, TenantId] = {}  # whose turn was last
        self._quiet = FIRST_SHARD  # that was looked at last
        self._aside: Aside[TenantId] = Aside()
        self._watch = OutboxWatch(database)
        self.news = asyncio.Event()  # a transaction was committed

    async def run_once(self, read: Read, now_us: int) -> float:
        shards = self._dispatcher.open_shards()
        waiting = await busy_shards(self._database, "with_outbox", shards)
        rests = await in_each_shard(waiting, lambda shard: self._round(read, shard, now_us))
        await self._look_at_quiet(set(shards).difference(waiting), now_us)
        return min(rests, default=REST_SECONDS)

    async def _look_at_quiet(self, shards: Collection[ShardId], now_us: int) -> None:
        """Whose outbox was full may have room now, where nothing waits: a shard a round."""
        if shards:
            self._quiet = min(shards, key=lambda shard: (shard <= self._quiet, shard))
            await self._watch.look(self._quiet, (), now_us)

    async def _round(self, read: Read, shard: ShardId, now_us: int) -> float:
        """A page of every tenant that has something; of very many tenants, of the next ones."""
        term, after = self._dispatcher.term_of(shard), self._after.pop(shard, BEFORE_ALL)
        if term is None:
            return REST_SECONDS
        async with self._database.hot(at=shard) as connection:
            found = await store.waiting_tenants(connection, shard, after, TENANTS_PER_ROUND)
        # What came too late to where a tenant was is brought along, and moved there.
        here = [one for one in found if self._dispatcher.homes().of(one) == shard]
        rests = []
        for number in here:
            tenant = self._directory.tenants.get(number)
            # None: another server made it a moment ago. What a suspended one committed waits.
            if tenant and not tenant.is_still and not self._aside.holds(number, now_us):
                rests.append(await self._turn(read, Turn(shard, term, tenant), now_us))
        await self._watch.look(shard, here, now_us)
        if len(found) == TENANTS_PER_ROUND:
            self._after[shard] = found[-1]
        if self._after.get(shard, after) != BEFORE_ALL:
            return 0.0
        return min(rests, default=REST_SECONDS)

    async def _turn(self, read: Read, turn: Turn, now_us: int) -> float:
        """Seconds until this tenant should be looked at again."""
        try:
            return await self._move(read, turn)
        except FairwayError as error:  # its own, of this moment: what was committed waits
            self._admission.count_refusal(turn.tenant, error.code)
            return REST_LIMITED_SECONDS
        except Exception as error:
            if not (has_answered(error) and is_about_rows(error)):
                raise
            log.error("outbox cannot be read", tenant=turn.tenant.name, error=reason_of(error))
            self._aside.put(turn.tenant.id, now_us)  # a page of its rows is at fault
            return REST_SECONDS

    async def _move(self, read: Read, turn: Turn) -> float:
        shard, _, tenant = turn
        most = jobs_to_move(
            PAGE_JOBS,
            tokens_left=self._admission.quota(tenant).left,
            depth=self._admission.depth(tenant),
            depth_limit=tenant.depth_limit,
        )
        if not most:
            return REST_LIMITED_SECONDS
        async with self._database.hot(at=shard) as connection:
            rows = await store.read_waiting(connection, shard, tenant.id, most, PAGE_BYTES)
        if not rows:
            return REST_SECONDS
        self._submissions.admit(tenant, len(rows))
        await self._let_in(read, turn, rows)
        return 0.0

    async def _let_in(self, read: Read, turn: Turn, rows: Sequence[store.WaitingJob]) -> None:
        refused: dict[JobId, FairwayError] = {}
        wanted = await self._understood(read, turn.tenant, rows, refused)
        jobs = await self._jobs(turn.tenant, wanted, refused)

        def refuse(job: QueuedJob, error: Exception) -> None:
            refused[job.id] = InvalidRequest(reason_of(error))

        wanted = dict(zip(wanted, heard_of(turn.tenant, [*wanted.values()]), strict=True))
        marks = {str(id_): new.marks for id_, new in wanted.items() if new.marks is not None}
        await each_apart(jobs, lambda some: self._write(turn, some, marks), refuse)
        if refused:
            await self._set_aside(turn, refused)

    async def _understood(
        self,
        read: Read,
        tenant: Tenant,
        rows: Sequence[store.WaitingJob],
        refused: dict[JobId, FairwayError],
    ) -> dict[JobId, NewJob]:
        found, work = {}, WorkInParts()
        for row in rows:
            try:
                found[row.id] = await read(tenant, row.request.encode())
            except InvalidRequest as error:
                refused[row.id] = error.as_value()
            except FairwayError:
                raise
            except Exception as error:  # a mistake of ours must not keep everybody's jobs out
                log.error("committed job cannot be read", job=row.id, error=repr(error))
                refused[row.id] = FairwayError()
            await work.let_others()
        return found

    async def _jobs(
        self, tenant: Tenant, wanted: Mapping[JobId, NewJob], refused: dict[JobId, FairwayError]
    ) -> list[QueuedJob]:
        """As they are written; whose type's name there is no room for is refused."""
        names = {new.type for new in wanted.values()}
        known = self._directory.names
        brought = await known.bring(Namer(tenant.id), names, all_or_none=False)
        jobs = []
        for id_, new in wanted.items():
            number = brought.ids.get(new.type)
            if number is None:
                refused[id_] = known.no_room(Namer(tenant.id))
            else:
                jobs.append(self._job(id_, tenant.id, number, new))
        return jobs

    def _job(self, id_: JobId, tenant: TenantId, type_: TypeId, new: NewJob) -> QueuedJob:
        timing = None
        if new.wish is not None:
            now_ms = self._submissions.store_clock.unix_ms()
            timing = timing_of(new.wish, now_ms, self._random.random()).row
        return QueuedJob(
            id_,
            tenant,
            new.pool,
            type_,
            new.priority,
            new.lane,
            NO_EPOCH,
            0,
            0,
            new.timeout_ms,
            new.payload,
            timing=timing,
            limits=new.limits,
            trace=new.trace,
        )

    async def _write(
        self, turn: Turn, jobs: Sequence[QueuedJob], marks: Mapping[str, JobMarks]
    ) -> None:
        """One transaction: out of the outbox, into the backlog."""
        ids = [job.id for job in jobs]
        now_ms = self._submissions.store_clock.unix_ms()
        later = {job.id for job in jobs if job.timing and (job.timing[0] or 0) > now_ms}
        scheduled = later if any(job.timing or job.limits for job in jobs) else None
        self._dispatcher.inserting(ids)
        try:
            async with (
                self._database.hot(at=turn.shard) as connection,
                self._traces.sending() as begin,
                connection.transaction(),
            ):
                self._dispatcher.homes().still_takes(turn.tenant.id, turn.shard)
                taken = await store.take_waiting(
                    connection, turn.shard, turn.term, turn.tenant.id, ids
                )
                written = begin([job for job in jobs if job.id in taken])
                if written:
                    traced = any(job.trace is not None for job in written)
                    await insert_jobs(
                        connection, turn.shard, written, scheduled, marks, traced=traced
                    )
            self._announce(turn.shard, written, later)
        finally:
            self._dispatcher.inserted(ids)

    def _announce(self, shard: ShardId, written: list[QueuedJob], later: set[JobId]) -> None:
        self._metrics.accepted.inc(len(written))
        self._metrics.activity.accepted(written)
        self._dispatcher.arrived([shard], [job for job in written if job.id not in later])
        if later:
            self._submissions.wrote_for_later(shard)

    async def _set_aside(self, turn: Turn, refused: Mapping[JobId, FairwayError]) -> None:
        shard, _, tenant = turn
        reasons = {id_: _reason(error) for id_, error in refused.items()}
        async with self._database.hot(at=shard) as connection, connection.transaction():
            self._dispatcher.homes().still_takes(tenant.id, shard)
            await store.set_aside(connection, shard, tenant.id, reasons, keep=REFUSED_KEPT)
            await add_notices(connection, [_event(tenant.id, reasons)])
        for error in refused.values():
            self._admission.count_refusal(tenant, error.code)
        self._metrics.rows_set_aside.labels("outbox").inc(len(refused))
        job, reason = next(iter(reasons.items()))
        log.warning(
            "committed jobs refused; set aside",
            tenant=tenant.name,
            jobs=len(refused),
            first=job,
            reason=reason,
        )


def _reason(error: FairwayError) -> str:
    place = f" (at {error.field})" if error.field else ""
    return f"{error.code}: {error.message}{place}"[:REASON_CHARACTERS_MAX]


def _event(tenant: TenantId, reasons: Mapping[JobId, str]) -> NewEvent:
    shown = [f"{job}: {reason}" for job, reason in list(reasons.items())[:REFUSALS_TOLD]]
    if len(reasons) > len(shown):
        shown.append(f"and {len(reasons) - len(shown)} more")
    detail = f"Committed with a transaction, but they cannot be jobs: {'; '.join(shown)}"
    job = next(iter(reasons))
    return NewEvent(tenant, "outbox.refused", job, detail, job)
