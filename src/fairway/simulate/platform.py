"""A server in virtual time: the real dispatcher around a store in memory.

Real are also the failure policy, holds, the promoter's caps and the pool classifier; commits take
as long as they are said to.
Only what speaks to PostgreSQL, HTTP or a clock is replaced; who runs next, what becomes of a
failure, what is held back and what moves to another pool is decided by the code that servers run.
Workers are `workers.py`; this knows them by the sessions they open.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from fairway.core.backlog.holds import Hold
from fairway.core.backlog.reading import Found
from fairway.core.backlog.streams import Stream, WindowLimits, key_of
from fairway.core.ids import (
    FIRST_SHARD,
    FIRST_TERM,
    LOWEST_JOB_ID,
    NO_EPOCH,
    JobId,
    PoolId,
    TenantId,
    TypeId,
    make_job_id,
)
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.pool_classifier import Move, PoolClassifier, pool_for
from fairway.core.pools import PoolTable
from fairway.core.scheduling.promotion import Allowances, PromotionCaps
from fairway.core.tenant import Tenant
from fairway.runtime.random_ids import lease_tokens
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher, DispatchSettings
from fairway.services.dispatch.ports import Ports, Sorted
from fairway.services.dispatch.refiller import REST_SECONDS, STREAMS_PER_READ
from fairway.services.failure.failure_policy import FailurePolicy
from fairway.services.maintenance.run_times import span_of
from fairway.services.restraints.holds import HoldRegistry
from fairway.services.restraints.probes import due_probes_of
from fairway.services.restraints.restraints import SOURCE, hold_streams
from fairway.services.scheduling.promoter import REST_CAPPED_SECONDS, REST_MIN_SECONDS
from fairway.services.sessions.sessions import End, Lease
from fairway.simulate.rows import DueJobs, Rows
from fairway.simulate.virtual_time import SECOND_US, START_UNIX_MS, VirtualTime
from fairway.simulate.work import Overheads

COUNTERS_PER_MS = 1 << 20
PRIORITY = 5
LAZY_US = 100_000  # FAIRWAY_LAZY_RUNNING_MS
TICK_US = 100_000
LOOK_US = 1_000_000
JUDGE_US = 5_000_000
FOR_EVER_US = 1 << 62


class SimulatedPlatform:
    """One owner of one shard. `on_work` is called when waiting jobs may start in these pools."""

    def __init__(
        self,
        time: VirtualTime,
        pools: PoolTable,
        overheads: Overheads,
        *,
        seed: int,
        on_work: Callable[[], None],
        on_ends: Callable[[Sequence[End]], None],
        on_leases: Callable[[Sequence[Lease]], None],
    ) -> None:
        self._time = time
        self._overheads = overheads
        self._on_work = on_work
        self._on_ends = on_ends
        self._on_leases = on_leases  # they are on disk: their workers may hear of them
        self._rows, self._due = Rows(), DueJobs()
        self._to_write: list[Lease] = []
        self._to_record: list[End] = []
        self._to_announce: list[QueuedJob] = []
        self._is_reading = False
        self._promotes_at_us = FOR_EVER_US
        self._made = 0
        self._measured: dict[TypeId, PoolId] = {}
        self._allowances = Allowances(PromotionCaps(), 0)
        self._classifier = PoolClassifier(tuple(map(span_of, pools.of_duration())))
        self._measurable = frozenset(pool.number for pool in pools.of_duration())
        dice = random.Random(f"{seed}/jitter")
        self._failure_policy = FailurePolicy(
            time, pools, jitter=dice.random, on_news=self._restrain
        )
        self.dispatcher = Dispatcher(
            DispatchSettings(
                limits=WindowLimits(),
                tokens=lease_tokens("of a simulation"),
                inline_bytes_max=sys.maxsize,
            ),
            Ports(
                write_leases=self._write_leases,
                lazy_lease=lambda: None,  # looked at all the time
                record_ends=self._record_ends,
                forget_ends=lambda shards: None,  # there is one owner
                want_reads=self._want_reads,
                drop_expired=lambda leases: Sorted(leases, []),
            ),
            self._failure_policy,
            pools,
            clock=time,
            metrics=Metrics(),
        )
        self._holds = HoldRegistry(self.dispatcher)
        self.moves: list[tuple[float, TypeId, Move]] = []  # of types to other pools, with when
        self.most_circuits = 0  # open at once
        self._open()

    def _open(self) -> None:
        self.dispatcher.claim_shard(FIRST_SHARD, FIRST_TERM)
        self.dispatcher.leases_restored(FIRST_SHARD)
        self.dispatcher.open_shard(FIRST_SHARD)
        self.dispatcher.trust_until(FOR_EVER_US)
        self._time.every(TICK_US, self._tick)
        self._time.every(LOOK_US, self._look_at_restraints)
        self._time.every(JUDGE_US, self._judge_types)

    def set_entitlements(self, tenants: Iterable[Tenant]) -> None:
        for tenant in tenants:
            self.dispatcher.set_entitlement(tenant)

    # -- jobs come ---------------------------------------------------------------------------

    def submit(self, tenant: TenantId, type_id: TypeId, asked: PoolId, due_us: int = 0) -> str:
        """On disk with the group that is written now; answers the job's id."""
        pool = pool_for(asked, self._measured.get(type_id), self._measurable)
        job = QueuedJob(
            self._new_id(), tenant, pool, type_id, PRIORITY, 0, NO_EPOCH, 0, 0, None, b"{}"
        )
        if due_us:
            self._later(due_us, job)
            return job.id
        if not self._to_announce:
            self._time.after(self._overheads.commit_us, self._announce)
        self._to_announce.append(job)
        return job.id

    def _new_id(self) -> JobId:
        self._made += 1
        counter = self._made % COUNTERS_PER_MS
        return make_job_id(FIRST_SHARD, self._time.unix_ms(), counter, 0)

    def _announce(self) -> None:
        jobs, self._to_announce = self._to_announce, []
        for job in jobs:
            self._rows.put(job)
        self.dispatcher.arrived([FIRST_SHARD], jobs)
        self._on_work()

    # -- commits -----------------------------------------------------------------------------

    def _write_leases(self, leases: list[Lease]) -> None:
        if not self._to_write:
            self._time.after(self._overheads.commit_us, self._leases_on_disk)
        self._to_write += leases

    def _leases_on_disk(self) -> None:
        leases, self._to_write = self._to_write, []
        for lease in leases:
            self.dispatcher.written(lease)
        self._on_leases(leases)

    def _record_ends(self, ends: list[End]) -> None:
        if not self._to_record:
            self._time.after(self._overheads.commit_us, self._ends_on_disk)
        self._to_record += ends

    def _ends_on_disk(self) -> None:
        ends, self._to_record = self._to_record, []
        self.dispatcher.recorded([end.lease.job.id for end in ends])
        for end in ends:
            self._settle(end)
        self._on_ends(ends)
        self._on_work()

    def _settle(self, end: End) -> None:
        job, decision = end.lease.job, end.decision
        if decision is None:
            self._rows.drop(job)
            if self._classifier.measures(job.pool):
                self._classifier.observe(job.type, job.pool, job.tenant, end.ran_us)
            return
        self._rows.drop(job)
        after = counted(end)
        if decision.state is State.SCHEDULED:
            self._later(self._time.now_us() + decision.delay_ms * 1000, after)
        elif decision.state is State.QUEUED:
            self._rows.put(after)
            self.dispatcher.settled(end)

    # -- windows -----------------------------------------------------------------------------

    def _want_reads(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._time.after(self._overheads.read_us, self._read)

    def _read(self) -> None:
        self._is_reading = False
        windows = self.dispatcher.windows()
        windows.review()
        wishes = windows.begin_reads(STREAMS_PER_READ)
        if wishes:
            found = [Found(self._waiting(stream, limit)) for stream, limit in wishes]
            windows.refilled(windows.end_reads(wishes, found, windows.budget_of(wishes)))
        if windows.is_reviewing() or len(wishes) == STREAMS_PER_READ:
            self._is_reading = True
            self._time.after(round(REST_SECONDS * SECOND_US), self._read)
        self._on_work()

    def _waiting(self, stream: Stream, limit: int) -> list[QueuedJob]:
        return self._rows.after(stream.key, stream.cursor, limit, self.dispatcher.is_underway)

    # -- what is due ---------------------------------------------------------------------------

    def _later(self, due_us: int, job: QueuedJob) -> None:
        due_ms = START_UNIX_MS + due_us // 1000
        self._due.put(due_us, replace(job, timing=[due_ms]))
        self._promote_at(due_us)

    def _promote_at(self, moment_us: int) -> None:
        """The next round is not later than this."""
        if moment_us < self._promotes_at_us:
            self._promotes_at_us = max(moment_us, self._time.now_us())
            self._time.at(self._promotes_at_us, self._promote)

    def _promote(self) -> None:
        now_us = self._time.now_us()
        if now_us < self._promotes_at_us:
            return  # an earlier round took this one's place
        self._promotes_at_us = FOR_EVER_US
        tenants = self._due.come_due(now_us)
        shares = self._allowances.allot(tenants, now_us)
        moved = {tenant: self._due.take(tenant, most) for tenant, most in shares.items()}
        self._allowances.spend({tenant: len(jobs) for tenant, jobs in moved.items()}, now_us)
        jobs = sorted(job for some in moved.values() for job in some)
        for job in jobs:
            self._rows.put(job)
        with self.dispatcher.looking() as look:
            self.dispatcher.promoted(FIRST_SHARD, jobs, look)
        self._rest_until_next(now_us)
        if jobs:
            self._on_work()

    def _rest_until_next(self, now_us: int) -> None:
        is_capped = bool(self._due.come_due(now_us))
        if is_capped:
            self._promote_at(now_us + round(REST_CAPPED_SECONDS * SECOND_US))
        elif (next_us := self._due.next_us) is not None:
            self._promote_at(max(next_us, now_us + round(REST_MIN_SECONDS * SECOND_US)))

    # -- loops beside the dispatcher -------------------------------------------------------------

    def _tick(self) -> None:
        now_us = self._time.now_us()
        for _, share in self.dispatcher.all_shares():
            share.tick(now_us)
        for lease in self.dispatcher.take_stale_leases(now_us - LAZY_US).leases:
            self.dispatcher.written_late(lease, is_written=True)

    def _restrain(self, tenants: set[TenantId]) -> None:
        hold_streams(self._failure_policy, self._holds, sorted(tenants))

    def _look_at_restraints(self) -> None:
        policy, now_us = self._failure_policy, self._time.now_us()
        policy.take_news()
        held = policy.restrained().union(self._holds.tenants_of(SOURCE))
        for tenant in sorted(held):
            hold_streams(policy, self._holds, [tenant])
        for _ in policy.forgetting(now_us):
            pass
        found = {"circuit": 0, "quarantine": 0, "throttle": 0}
        for _ in policy.counting(found):
            pass
        self.most_circuits = max(self.most_circuits, found["circuit"])
        for tenant in sorted(policy.restrained()):
            for probe in due_probes_of(policy, tenant, now_us):
                if count := probe.begin(now_us):
                    self._let_out(probe.hold, count)

    def _let_out(self, hold: Hold, count: int) -> None:
        """So many of the oldest jobs that this hold keeps back, as `probes.py` does."""
        windows = self.dispatcher.windows()
        streams = windows.begin_probe(hold)
        found = [
            (job.id, stream, job)
            for stream in streams
            for job in self._rows.after(
                stream.key, LOWEST_JOB_ID, count, self.dispatcher.is_underway
            )
        ]
        read: dict[Stream, list[QueuedJob]] = {stream: [] for stream in streams}
        for _, stream, job in sorted(found, key=lambda one: one[0])[:count]:
            read[stream].append(job)
        windows.refilled(map(key_of, windows.end_probe(read)))
        self._on_work()

    def _judge_types(self) -> None:
        now_us = self._time.now_us()
        for type_id in self._classifier.types():
            if (move := self._classifier.judge(type_id, now_us)) is not None:
                self._measured[type_id] = move.after
                self._classifier.settled(type_id, move.after, now_us)
                self.moves.append((self._time.seconds, type_id, move))

    # -- to look at ----------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Jobs that are neither over nor to run later: queued, running, or being written."""
        return len(self._rows) + len(self._to_announce)

    @property
    def later(self) -> int:
        return len(self._due)


def counted(end: End) -> QueuedJob:
    """The job as it waits again, with what was counted."""
    assert end.decision is not None
    tally = end.decision.tally
    return replace(
        end.lease.job,
        epoch=end.lease.epoch,
        attempts=tally.attempts,
        deliveries=tally.deliveries,
        failures=tally.failures,
    )
