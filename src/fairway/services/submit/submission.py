"""Accepts jobs: admit, name, commit together with everyone who came at the same moment, answer.

When `submit` returns, the jobs are on disk. The dispatcher is told after the commit; if this
server does not own the shard, its owner gets a hint, and a lost hint costs a second, never a job.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from fairway.core.backlog.streams import StreamKey
from fairway.core.errors import FairwayError, Unavailable
from fairway.core.ids import NO_EPOCH, JobId, ShardId
from fairway.core.job import QueuedJob, is_heavy
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.homes import Meant
from fairway.core.scheduling.timing import timing_of
from fairway.core.tenant import Tenant
from fairway.runtime.random_ids import JobIdFactory
from fairway.runtime.telemetry import Instruments
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.group_commit import GroupCommit, linger_of_submissions
from fairway.services.group_waiters import GroupWaiters
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.store_clock import StoreClock
from fairway.services.submit.admission import Admission
from fairway.services.submit.already_written import find_doubles, jobs_there
from fairway.services.submit.hints import Hints
from fairway.services.submit.idempotency_keys import claims_of, dedup_claims
from fairway.services.submit.keyed_jobs import write_keyed
from fairway.services.submit.out_of_place import OutOfPlace, be_at_home, be_in_place
from fairway.services.submit.submission_group import (
    SIZES,
    NewJob,
    Submission,
    Verdict,
    WholeKey,
    Written,
    apart,
    first_shard,
    has_events,
    is_traced,
    jobs_in,
    limited,
    made_by,
    marks_in,
    marks_of,
    oldest_by_stream,
    scheduled_in,
    shards_of,
    size_bytes_of,
    told_of_others,
    traced,
    unique_wishes,
    verdicts_of,
)
from fairway.services.submit.unique_intake import UniqueIntake
from fairway.services.transient_errors import again, not_known, refusal_of
from fairway.store import submissions as store
from fairway.store.connections.database import DISCONNECTED, ID_TAKEN, Connection, Database
from fairway.store.submissions import KeyClaim


class SubmissionPorts(NamedTuple):
    """Who names jobs; and who hears of those that are on disk, beside the dispatcher."""

    ids: JobIdFactory
    on_scheduled: Callable[[], None]  # ours, for later
    hints: Hints  # of another owner's shard
    on_replaced: Callable[[Iterable[str]], None]  # jobs that waited, and are cancelled
    on_events: Callable[[ShardId], None]  # jobs that somebody wants to hear of


class Submissions:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        dispatcher: Dispatcher,
        admission: Admission,
        instruments: Instruments,
        store_clock: StoreClock,
        ports: SubmissionPorts,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._directory = directory
        self._dispatcher = dispatcher
        self._admission = admission
        self._tenant_shards = tenant_shards
        self._instruments = instruments
        self._metrics = instruments.metrics
        self._random = random.Random()
        self._loop = asyncio.get_running_loop()  # asking for it costs a system call
        self.store_clock = store_clock  # dates jobs: their ids, with them partitions, are its
        # by weight, and by the shard where a commit must be of one; None: of any
        self._groups: dict[tuple[ShardId | None, int | None, bool], GroupCommit[Submission]] = {}
        self._waiters = GroupWaiters(database.wait_seconds, not_known)
        self.ids, self._on_scheduled, self._hints, self._on_replaced, self._on_events = ports
        self._unique = UniqueIntake(dispatcher)

    def admit(self, tenant: Tenant, count: int, servers: int = 1) -> None:
        """Let so many jobs in, or refuse; for those who must write something before `submit`.

        By a share of the tenant's limits, where so many `servers` judge each for itself.
        """
        self._admission.admit(tenant, count, self._jobs_waiting(), servers)

    def look(self, tenant: Tenant, count: int) -> None:
        """Refuse so many jobs if `submit` would, before they cost anything."""
        self._admission.look(tenant, count, self._jobs_waiting())

    def _jobs_waiting(self) -> int:
        waiting = 0
        for group in self._groups.values():
            waiting += group.jobs_waiting
        return waiting

    async def submit(
        self,
        tenant: Tenant,
        wanted: Sequence[NewJob],
        *,
        is_admitted: bool = False,
        whole: WholeKey | None = None,
        ids: list[JobId] | None = None,
        meant: Meant | None = None,
    ) -> list[Verdict]:
        """One verdict a job, in order. What is accepted is on disk.

        With a key for the `whole`, no job has one of its own, an id, or others to be unique among.
        `ids` are theirs, where another server has made them. `meant`, where another region sent
        them: they are written while the tenant is at home here, by no newer home than this.
        """
        if not is_admitted:
            self.admit(tenant, len(wanted))
        names, is_special = self._directory.names, tenant.job_events
        types, shared, is_known, has_traces = names.ids, names.shared, True, False
        for new in wanted:  # one look at each: most want nothing but to run
            if new.type not in shared and tenant.id not in names.namers.get(new.type, ()):
                is_known = False
            if new.id or new.wish or new.idempotency_key or new.marks or new.limits or new.unique:
                is_special = True
            if new.trace is not None:
                has_traces = True
        if not is_known:
            types = await names.know(tenant.id, [new.type for new in wanted])
        shard = self._tenant_shards.taking(tenant.id)
        ids = ids or self.ids.make(shard, len(wanted))
        if is_special:
            ids = [new.id or fresh for new, fresh in zip(wanted, ids, strict=True)]
        jobs = [
            QueuedJob(
                id_,
                tenant.id,
                new.pool,
                types[new.type],
                new.priority,
                new.lane,
                NO_EPOCH,
                0,
                0,
                new.timeout_ms,
                new.payload,
            )
            for id_, new in zip(ids, wanted, strict=True)
        ]
        verdicts: asyncio.Future[list[Verdict]] = self._loop.create_future()
        claim = whole and KeyClaim(tenant.id, whole.key, whole.body_hash, ids[0])
        one = Submission(jobs, None, verdicts, size_bytes_of(wanted), whole=claim, meant=meant)
        if has_traces:
            one = one._replace(jobs=traced(jobs, wanted), is_traced=True)
        if is_special:
            one = self._special(one, wanted, tenant)
        is_apart = self._tenant_shards.any_elsewhere(tenant.id, ids)
        alone = shard if one.unique or is_apart or meant is not None else None
        together = self._database.together(shard)
        self._group(alone, together, is_heavy(len(jobs), one.size_bytes)).add(one)
        self._waiters.add(verdicts)
        return await verdicts

    def _special(self, one: Submission, wanted: Sequence[NewJob], tenant: Tenant) -> Submission:
        """The same, with what its jobs want besides to run."""
        jobs, scheduled = one.jobs, None
        if any(new.wish for new in wanted):
            jobs, scheduled = self._timed(jobs, wanted)
        if any(new.limits for new in wanted):
            jobs, scheduled = limited(jobs, wanted), scheduled or frozenset()
        return one._replace(
            jobs=jobs,
            claims=claims_of(jobs, wanted),
            scheduled=scheduled,
            marks=marks_of(jobs, wanted, is_heard_of=tenant.job_events),
            unique=unique_wishes(jobs, wanted),
        )

    def _timed(
        self, jobs: list[QueuedJob], wanted: Sequence[NewJob]
    ) -> tuple[list[QueuedJob], frozenset[str]]:
        """The same jobs with their times, by the database's clock; and which are not due yet."""
        now_ms = self.store_clock.unix_ms()
        timed, later = [], set()
        for job, new in zip(jobs, wanted, strict=True):
            if new.wish is None:
                timed.append(job)
                continue
            timing = timing_of(new.wish, now_ms, self._random.random())
            timed.append(replace(job, timing=timing.row))
            if timing.due_ms > now_ms:
                later.add(job.id)
        return timed, frozenset(later)

    async def drain(self) -> None:
        for group in list(self._groups.values()):
            await group.drain()

    def _group(
        self, shard: ShardId | None, together: int | None, heavy: bool
    ) -> GroupCommit[Submission]:
        """A batch of thousands takes a while: who sends one job does not stand behind it."""
        group = self._groups.get((shard, together, heavy))
        if group is None:
            group = self._groups[shard, together, heavy] = GroupCommit(
                "submissions",
                lambda items: self._flush(shard, items),
                instruments=self._instruments,
                sizes=SIZES,
                writes_max=2,
                linger=linger_of_submissions(
                    is_distributed=self._database.placement is not None, is_heavy=heavy
                ),
            )
        return group

    # -- the commit --------------------------------------------------------------------------

    async def _flush(self, shard: ShardId | None, group: list[Submission]) -> None:
        # Not those whose callers were told to come again while they waited for their turn.
        group = [one for one in group if not one.verdicts.done() or one.verdicts.cancelled()]
        if not group:
            return
        shards = shards_of(group, self._tenant_shards)
        if shard is None and len(shards) == 1:
            (shard,) = shards
        ids = [job.id for item in group for job in item.jobs]
        self._dispatcher.inserting(ids)
        try:
            written = await again(
                lambda seconds: self._write(shard, group, seconds), self._database.wait_seconds
            )
        except DISCONNECTED as error:
            self._fail(group, refusal_of(error), error)
        except OutOfPlace as error:
            await self._flush(shard, error.others_of(group))
        except Unavailable as error:  # nothing was kept
            self._fail(group, error, None)
        except (*ID_TAKEN, store.NotAllWritten) as error:
            await self._flush_others(shard, group, error)
        except Exception as error:  # every waiter must hear of it, whatever it was
            self._fail(group, FairwayError(), error)
            raise
        else:
            self._answer(shards, group, written)
        finally:
            self._dispatcher.inserted(ids)

    async def _flush_others(
        self, shard: ShardId | None, group: list[Submission], cause: Exception
    ) -> None:
        """Some are there: another server wrote them, or the store took them and not the others."""
        try:
            async with self._database.hot(at=first_shard(group, self._tenant_shards)) as connection:
                doubles = await find_doubles(connection, group, self._tenant_shards)
        except DISCONNECTED as error:
            self._fail(group, refusal_of(error), error)
            return
        if doubles is None:
            self._fail(group, FairwayError(), cause)
            return
        for one in doubles:
            self._dispatcher.inserted([job.id for job in one.submission.jobs])  # may be read now
            if not one.submission.verdicts.done():
                one.submission.verdicts.set_result(one.verdicts)
            self._announce_read(one.submission)
        known = {id(one.submission) for one in doubles}
        await self._flush(shard, [one for one in group if id(one) not in known])

    async def _write(
        self, shard: ShardId | None, group: list[Submission], seconds: float
    ) -> Written:
        at = first_shard(group, self._tenant_shards)
        async with self._database.hot(seconds, at) as connection:
            be_in_place(group, shard, self._tenant_shards)
            if not any(item.meant for item in group):
                return await self._write_group(connection, shard, group)
            async with connection.transaction():
                await be_at_home(connection, group)
                return await self._write_group(connection, shard, group)

    async def _write_group(
        self, connection: Connection, shard: ShardId | None, group: list[Submission]
    ) -> Written:
        claims = dedup_claims(group)
        if claims or any(item.unique for item in group):
            return await write_keyed(connection, shard, group, claims, self._unique)
        scheduled, marks = scheduled_in(group), marks_in(group)
        await store.insert_jobs(
            connection, shard, jobs_in(group), scheduled, marks, traced=is_traced(group)
        )
        return Written({}, {})

    def _answer(self, shards: set[ShardId], group: list[Submission], written: Written) -> None:
        fresh: list[QueuedJob] = []
        answers = [verdicts_of(submission, written.holders) for submission in group]
        if written.lost or written.superseded:
            answers = [
                told_of_others(submission, verdicts, written)
                for submission, verdicts in zip(group, answers, strict=True)
            ]
        for submission, verdicts in zip(group, answers, strict=True):
            is_whole = not (submission.claims or submission.unique or submission.whole)
            but = written.superseded
            if written.there:  # another server wrote them, and told us: they may run by now
                but = but | jobs_there(submission, written.there)
            fresh += submission.jobs if is_whole else made_by(submission, verdicts, but)
        try:  # workers first: their one reply starts all of these jobs
            self._forget(written.replaced)
            self._announce(shards, group, fresh)
        finally:
            for submission, verdicts in zip(group, answers, strict=True):
                if not submission.verdicts.done():
                    submission.verdicts.set_result(verdicts)

    def _announce(
        self, shards: set[ShardId], group: list[Submission], fresh: list[QueuedJob]
    ) -> None:
        """Tell the owners of the shards what is on disk now."""
        self._metrics.accepted.inc(len(fresh))
        self._metrics.activity.accepted(fresh)
        if scheduled := scheduled_in(group):
            fresh = [job for job in fresh if job.id not in scheduled]
            for shard in shards_of([item for item in group if item.scheduled], self._tenant_shards):
                self.wrote_for_later(shard)
        foreign = {shard for shard in shards if not self._dispatcher.owns(shard)}
        if foreign:
            fresh, others = apart(fresh, foreign, self._tenant_shards)
            for shard, jobs in others.items():
                self._hints.add(shard, oldest_by_stream(jobs))
        self._dispatcher.arrived(shards - foreign, fresh)
        for shard in shards_of([item for item in group if has_events([item])], self._tenant_shards):
            self._on_events(shard)

    def _announce_read(self, one: Submission) -> None:
        """They may run, or have ended: the owner reads those that wait from the store."""
        firsts, (shard,) = oldest_by_stream(one.jobs), shards_of([one], self._tenant_shards)
        if self._dispatcher.owns(shard):
            self._dispatcher.hinted(shard, firsts)
        else:
            self._hints.add(shard, firsts)

    def _forget(self, replaced: Sequence[tuple[JobId, StreamKey]]) -> None:
        """Waiting jobs were cancelled with the commit: they must not start here any more."""
        if replaced:
            self._dispatcher.cancelled(replaced)
            self._on_replaced([job for job, _ in replaced])

    def wrote_for_later(self, shard: ShardId) -> None:
        """Scheduled jobs are on disk: whoever promotes them should look when they are due."""
        if self._dispatcher.owns(shard):
            self._on_scheduled()
        else:
            self._hints.add(shard, {})

    def _fail(
        self, group: list[Submission], answer: FairwayError, cause: BaseException | None
    ) -> None:
        answer.__cause__ = cause
        for submission in group:
            if not submission.verdicts.done():
                submission.verdicts.set_exception(answer)
