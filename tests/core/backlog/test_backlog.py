"""The backlog's windows, held against a model of the store: nothing lost, nothing handed out twice.

The machine plays everyone: submitters whose commit and announcement are apart, another server,
the refiller whose reads see an old snapshot, workers, the recorder, the sweeper.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace
from tests.core.timed_backlog import TimedBacklog
from tests.properties import tried

from fairway.core.backlog.counts import Survey
from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.priority import AGEING_MS
from fairway.core.backlog.streams import Stream, StreamKey, WindowLimits, key_of
from fairway.core.ids import (
    Epoch,
    JobId,
    PoolId,
    ShardId,
    TenantId,
    TypeId,
    make_job_id,
    unix_ms_of,
)
from fairway.core.job import QueuedJob

POOL = PoolId(1)
LIMITS = WindowLimits(jobs_total=12, bytes_total=1000, jobs_per_stream=5, jobs_per_read=4)
START_MS = 1_700_000_000_000

# Mostly one stream: interleavings are what goes wrong, not numbers of streams.
TENANTS = st.sampled_from([1, 1, 1, 1, 2])
TYPES = st.sampled_from([1, 1, 1, 1, 2])
LANES = st.sampled_from([0, 0, 0, 0, 0, 7])
HOLDS = st.lists(
    st.sampled_from(
        [
            Hold(tenant=TenantId(1)),
            Hold(type=TypeId(1)),
            Hold(pool=POOL),
            Hold(TenantId(1), TypeId(2)),
            Hold(TenantId(2), TypeId(1), POOL),
        ]
    ),
    max_size=2,
)


def make(number: int, *, ms: int = 0, size: int = 2, **more: Any) -> QueuedJob:
    """A job of tenant 1, type 1, priority 5 and no lane, unless told otherwise."""
    job_id = make_job_id(ShardId(0), START_MS + ms, number, 0)
    plain = QueuedJob(job_id, TenantId(1), POOL, TypeId(1), 5, 0, Epoch(0), 0, 0, None, b"x" * size)
    return replace(plain, **more)


def exhaust(steps: Iterable[object]) -> None:
    """Take all steps; nobody else wants to go on."""
    for _ in steps:
        pass


class Read:
    """A read under way: asked for, then seen by the store, then answered."""

    def __init__(self, stream: Stream, asked: int) -> None:
        self.stream, self.asked, self.cursor = stream, asked, stream.cursor
        self.seen: list[QueuedJob] | None = None


class BacklogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.backlog = TimedBacklog(LIMITS, lambda: 1000 * self.ms)
        self.queued: dict[str, QueuedJob] = {}  # what the store shows as queued
        self.unannounced: list[QueuedJob] = []  # committed here, not told yet
        self.leases: dict[str, QueuedJob] = {}
        self.unrecorded: list[tuple[QueuedJob, bool]] = []  # ended; goes back to the queue?
        self.waiting_retry: list[QueuedJob] = []  # scheduled: due later, id from the past
        self.unheard_ends: list[str] = []  # on disk as scheduled, not told yet
        self.promoted: list[QueuedJob] = []  # due on disk, not told yet
        self.look = ExitStack()
        self.look_number = 0
        self.reads: list[Read] = []
        self.number = 0
        self.ms = 0

    # -- jobs come

    def _new(self, tenant: int, type_id: int, lane: int, *, age_ms: int = 0) -> QueuedJob:
        self.number += 1
        self.ms += 1
        ms = max(0, self.ms - age_ms)
        return make(self.number, ms=ms, tenant=tenant, type=type_id, lane=lane)

    @rule(tenant=TENANTS, type_id=TYPES, lane=LANES, size=st.integers(0, 200))
    def commit(self, tenant: int, type_id: int, lane: int, size: int) -> None:
        job = replace(self._new(tenant, type_id, lane), payload=b"x" * size)
        self.backlog.underway.inserting_ids.add(job.id)
        self.queued[job.id] = job
        self.unannounced.append(job)

    @precondition(lambda self: self.unannounced)
    @rule(place=st.integers(0, 5))
    def announce(self, place: int) -> None:
        job = self.unannounced.pop(place % len(self.unannounced))
        self.backlog.arrived([job])
        self.backlog.underway.inserting_ids.discard(job.id)

    @rule(tenant=TENANTS, type_id=TYPES, lane=LANES, age_ms=st.integers(0, 50))
    def written_by_another_server(self, tenant: int, type_id: int, lane: int, age_ms: int) -> None:
        job = self._new(tenant, type_id, lane, age_ms=age_ms)
        self.queued[job.id] = job

    @rule(tenant=TENANTS, type_id=TYPES, lane=LANES)
    def hint(self, tenant: int, type_id: int, lane: int) -> None:
        key = StreamKey(TenantId(tenant), POOL, TypeId(type_id), 5, lane)
        ids = [job.id for job in self.queued.values() if key_of(job) == key]
        self.backlog.hinted(key, min(ids, default=make(self.number).id))

    @rule(holds=HOLDS)
    def hold_and_release(self, holds: list[Hold]) -> None:
        self.backlog.runnable.set_holds(Holds(holds))

    # -- reads

    @rule(streams_max=st.integers(1, 3))
    def begin_reads(self, streams_max: int) -> None:
        self.reads += [Read(*wish) for wish in self.backlog.reads.begin(streams_max)]

    @precondition(lambda self: self.reads)
    @rule(place=st.integers(0, 5))
    def store_sees_a_read(self, place: int) -> None:
        read = self.reads[place % len(self.reads)]
        found = sorted(
            job
            for job in self.queued.values()
            if key_of(job) == read.stream.key and job.id > read.cursor
        )
        read.seen = found[: read.asked]

    @precondition(lambda self: any(read.seen is not None for read in self.reads))
    @rule()
    def a_read_is_answered(self) -> None:
        read = next(read for read in self.reads if read.seen is not None)
        self.reads.remove(read)
        assert read.seen is not None
        self.backlog.reads.end(read.stream, read.seen, read.asked, self.leases)

    @rule()
    def read_at_once(self) -> None:
        self.begin_reads(1)
        if self.reads:
            self.store_sees_a_read(-1)
            read = self.reads.pop()
            assert read.seen is not None
            self.backlog.reads.end(read.stream, read.seen, read.asked, self.leases)

    @precondition(lambda self: self.reads)
    @rule()
    def a_read_fails(self) -> None:
        self.backlog.reads.fail(self.reads.pop(0).stream)

    # -- runs

    @rule(tenant=TENANTS, types=st.sampled_from([{1}, {1, 2}]))
    def take(self, tenant: int, types: set[TypeId]) -> None:
        job = self.backlog.take(POOL, tenant, types, self.leases)
        if job is not None:
            assert job.id not in self.leases, "handed out twice at once"
            assert job.id in self.queued, "handed out after its end"
            assert job.id not in {ended.id for ended, _ in self.unrecorded}, "ended already"
            assert (job.tenant, job.type in types) == (tenant, True)
            assert self.backlog.runnable.holds.on(key_of(job)) is None, "handed out while held"
            self.leases[job.id] = job

    @precondition(lambda self: self.queued)
    @rule(place=st.integers(0, 30))
    def a_worker_asserts_a_lease(self, place: int) -> None:
        """After a failover: granted by an earlier owner, perhaps in a window here."""
        job = list(self.queued.values())[place % len(self.queued)]
        underway = {ended.id for ended, _ in self.unrecorded} | {j.id for j in self.unannounced}
        if job.id not in underway and job.id not in self.leases:
            self.backlog.remove(job.id, key_of(job))
            self.leases[job.id] = job

    @precondition(lambda self: self.leases)
    @rule(goes_back=st.booleans())
    def a_run_ends(self, goes_back: bool) -> None:
        job = self.leases.pop(next(iter(self.leases)))
        self.backlog.run_ended(job)
        self.backlog.underway.unrecorded_ids.add(job.id)
        self.unrecorded.append((job, goes_back))

    @precondition(lambda self: self.unrecorded)
    @rule()
    def an_end_is_recorded(self) -> None:
        job, goes_back = self.unrecorded.pop(0)
        self.backlog.ended([job.id])
        if goes_back:
            self.backlog.put_back(job)
        else:
            del self.queued[job.id]

    @precondition(lambda self: self.leases)
    @rule()
    def a_run_fails_and_waits(self) -> None:
        job = self.leases.pop(next(iter(self.leases)))
        del self.queued[job.id]
        self.backlog.run_ended(job)
        self.backlog.underway.unrecorded_ids.add(job.id)
        self.backlog.ended([job.id])
        self.waiting_retry.append(job)

    @precondition(lambda self: self.leases)
    @rule()
    def a_run_fails_on_disk(self) -> None:
        """Its row is scheduled already, and may come due; the recorder has not heard of it."""
        job = self.leases.pop(next(iter(self.leases)))
        del self.queued[job.id]
        self.backlog.run_ended(job)
        self.backlog.underway.unrecorded_ids.add(job.id)
        self.waiting_retry.append(job)
        self.unheard_ends.append(job.id)

    @precondition(lambda self: self.unheard_ends)
    @rule()
    def an_end_is_heard(self) -> None:
        self.backlog.ended([self.unheard_ends.pop(0)])

    @precondition(lambda self: self.waiting_retry and not self.promoted)
    @rule(count=st.integers(1, 3))
    def retries_come_due(self, count: int) -> None:
        """Their rows are queued from now on, for whoever reads; the promoter hears of it later."""
        self.look.enter_context(self.backlog.reading.looking())
        self.promoted, self.waiting_retry = self.waiting_retry[:count], self.waiting_retry[count:]
        self.look_number = self.backlog.reading._number
        self.queued.update((job.id, job) for job in self.promoted)

    @precondition(lambda self: self.promoted)
    @rule()
    def a_promotion_is_answered(self) -> None:
        self.backlog.promoted(self.promoted, self.leases, self.look_number)
        self.promoted = []
        self.look.close()

    @precondition(lambda self: self.queued)
    @rule(place=st.integers(0, 30))
    def cancel(self, place: int) -> None:
        job = list(self.queued.values())[place % len(self.queued)]
        underway = {ended.id for ended, _ in self.unrecorded} | {j.id for j in self.unannounced}
        if job.id not in self.leases and job.id not in underway:
            del self.queued[job.id]
            self.backlog.remove(job.id, key_of(job))

    # -- the sweep

    @rule()
    def sweep(self) -> None:
        for key, first in self._heads().items():
            if first not in self.leases and not self.backlog.knows(key, first):
                self.backlog.noticed(key, first)
        exhaust(self.backlog.pruning())

    def _heads(self) -> dict[StreamKey, JobId]:
        heads: dict[StreamKey, JobId] = {}
        for job in sorted(self.queued.values()):
            heads.setdefault(key_of(job), job.id)
        # In the order of the store.
        return dict(sorted(heads.items(), key=lambda item: (item[0].tenant, item[0].lane, item[0])))

    # -- what always holds

    @invariant()
    def memory_is_bounded(self) -> None:
        streams = [s for t in self.backlog._tenants.values() for s in t.streams.values()]
        held = [job for stream in streams for job in stream.window]
        assert self.backlog.windows.jobs_held == len(held)
        assert self.backlog.windows.bytes_held == sum(len(job.payload) for job in held)
        room = len(self.unrecorded) + len(self.leases) + 4 * LIMITS.jobs_per_read + self.number
        assert len(held) <= LIMITS.jobs_total + room

    @invariant()
    def counts_agree(self) -> None:
        for (_, tenant), backlog in self.backlog._tenants.items():
            assert backlog.ready == sum(len(s.window) for s in backlog.streams.values())
            assert self.backlog.counts.depth(tenant, [POOL]) >= backlog.ready

    @invariant()
    def what_is_held_takes_no_memory(self) -> None:
        for backlog in self.backlog._tenants.values():
            for stream in backlog.streams.values():
                assert not (stream.window and self.backlog.runnable.holds.on(stream.key))

    @invariant()
    def no_window_holds_a_job_twice(self) -> None:
        for backlog in self.backlog._tenants.values():
            ids = [job.id for s in backlog.streams.values() for job in s.window]
            assert len(ids) == len(set(ids))

    def teardown(self) -> None:
        """In the end, with all holds gone, everything that is queued was handed out, once."""
        self.backlog.runnable.set_holds(Holds())
        for job in self.unannounced:
            self.backlog.arrived([job])
            self.backlog.underway.inserting_ids.discard(job.id)
        self.a_promotion_is_answered()
        while self.unheard_ends:
            self.an_end_is_heard()
        while self.reads:
            self.a_read_fails()
        while self.unrecorded:
            self.an_end_is_recorded()
        for job_id in list(self.leases):
            del self.leases[job_id], self.queued[job_id]
        for _ in range(10 * (self.number + 5)):
            if not self.queued:
                break
            self._settle_one_round()
        assert not self.queued, f"never handed out: {sorted(self.queued)}"
        for (_, tenant), backlog in self.backlog._tenants.items():
            if not backlog.ready and not any(s.more for s in backlog.streams.values()):
                assert self.backlog.counts.depth(tenant, [POOL]) == 0

    def _settle_one_round(self) -> None:
        self.sweep()
        self.begin_reads(3)
        while self.reads:
            self.store_sees_a_read(0)
            self.a_read_is_answered()
        for tenant in (1, 2):
            while job := self.backlog.take(POOL, tenant, {TypeId(1), TypeId(2)}, self.leases):
                assert self.queued.pop(job.id, None) is not None, "handed out twice"


BacklogMachine.TestCase.settings = tried(80, stateful_step_count=50)
TestBacklogAgainstAModel = BacklogMachine.TestCase


# -- examples a reader can follow ----------------------------------------------------------------


@pytest.fixture
def backlog() -> TimedBacklog:
    return TimedBacklog(LIMITS)


def take_all(backlog: TimedBacklog, tenant: int = 1) -> list[JobId]:
    taken = []
    while job := backlog.take(POOL, tenant, {TypeId(1), TypeId(2)}, ()):
        taken.append(job.id)
    return taken


def test_a_window_that_was_cancelled_is_read_again(backlog: TimedBacklog) -> None:
    """Nobody takes a job from it any more, and so nobody would see that it runs low."""
    jobs = [make(n) for n in range(8)]
    backlog.arrived(jobs)
    assert not backlog.reads.are_wanted
    backlog.remove_all([(job.id, key_of(job)) for job in jobs[:5]])
    ((stream, asked),) = backlog.reads.begin(10)
    backlog.reads.end(stream, jobs[5:], asked, ())
    assert take_all(backlog) == [job.id for job in jobs[5:]]


def test_arrivals_beyond_the_window_stay_in_the_store(backlog: TimedBacklog) -> None:
    jobs = [make(n) for n in range(8)]
    backlog.arrived(jobs)
    assert backlog.counts.ready(POOL, TenantId(1)) == LIMITS.jobs_per_stream
    assert backlog.counts.depth(TenantId(1), [POOL]) == 8
    assert not backlog.reads.are_wanted  # there is enough to go on with
    assert take_all(backlog) == [job.id for job in jobs[:5]]
    ((stream, asked),) = backlog.reads.begin(10)
    assert stream.cursor == jobs[4].id
    assert backlog.reads.end(stream, jobs[5:], asked, ())
    assert take_all(backlog) == [job.id for job in jobs[5:]]
    assert backlog.counts.depth(TenantId(1), [POOL]) == 0


def test_bytes_count_too(backlog: TimedBacklog) -> None:
    backlog.arrived([make(1, size=900), make(2, size=900), make(3, size=900)])
    assert backlog.windows.jobs_held == 2
    backlog.take(POOL, 1, {TypeId(1)}, ())
    backlog.take(POOL, 1, {TypeId(1)}, ())
    assert backlog.windows.bytes_held == 0
    assert backlog.reads.are_wanted


def test_a_returned_job_is_first_again(backlog: TimedBacklog) -> None:
    backlog.arrived([make(1), make(2)])
    first = backlog.take(POOL, 1, {TypeId(1)}, ())
    assert first is not None
    backlog.put_back(first)
    assert backlog.counts.depth(TenantId(1), [POOL]) == 2
    assert backlog.take(POOL, 1, {TypeId(1)}, ()) == first


def read(backlog: TimedBacklog, jobs: list[QueuedJob]) -> None:
    """The next read finds these."""
    ((stream, asked),) = backlog.reads.begin(10)
    backlog.reads.end(stream, jobs, asked, ())


def test_a_read_that_sees_a_job_before_it_is_announced_does_not_double_it(
    backlog: TimedBacklog,
) -> None:
    older, newer = make(1), make(2)
    backlog.hinted(key_of(older), older.id)
    backlog.underway.inserting_ids.add(newer.id)
    read(backlog, [older, newer])
    backlog.arrived([newer])
    backlog.underway.inserting_ids.discard(newer.id)
    assert take_all(backlog) == [older.id, newer.id]


def test_a_read_that_does_not_see_a_job_and_brings_a_younger_one_does_not_skip_it(
    backlog: TimedBacklog,
) -> None:
    """Two servers, or two lanes of one, write at once: commits do not come in the order of ids."""
    job, younger = make(1), make(2)
    backlog.hinted(key_of(younger), younger.id)
    ((stream, asked),) = backlog.reads.begin(10)
    backlog.arrived([job])
    backlog.reads.end(stream, [younger], asked, ())
    assert stream.cursor < job.id
    read(backlog, [job, younger])
    assert sorted(take_all(backlog)) == [job.id, younger.id]


def test_a_job_whose_end_is_on_its_way_to_disk_does_not_come_back(backlog: TimedBacklog) -> None:
    job = make(1)
    backlog.underway.unrecorded_ids.add(job.id)
    assert backlog.knows(key_of(job), job.id)
    backlog.hinted(key_of(job), job.id)
    read(backlog, [job])
    assert take_all(backlog) == []


def test_a_read_older_than_an_end_does_not_bring_the_job_back(backlog: TimedBacklog) -> None:
    job = make(1)
    backlog.hinted(key_of(job), job.id)
    ((stream, asked),) = backlog.reads.begin(10)
    backlog.underway.unrecorded_ids.add(job.id)
    backlog.ended([job.id])
    backlog.reads.end(stream, [job], asked, ())
    assert take_all(backlog) == []
    backlog.noticed(key_of(job), job.id)  # a later read shows it as it is: queued again
    read(backlog, [job])
    assert take_all(backlog) == [job.id]


def test_a_read_older_than_a_cancellation_does_not_bring_the_job_back(
    backlog: TimedBacklog,
) -> None:
    job = make(1)
    backlog.hinted(key_of(job), job.id)
    ((stream, asked),) = backlog.reads.begin(10)
    backlog.remove(job.id, key_of(job))
    backlog.reads.end(stream, [job], asked, ())
    assert take_all(backlog) == []


def test_an_arrival_during_a_read_is_read_next(backlog: TimedBacklog) -> None:
    early, late = make(1), make(2)
    backlog.hinted(key_of(early), early.id)
    ((stream, asked),) = backlog.reads.begin(10)
    backlog.arrived([late])  # left in the store: the read may not see it
    backlog.reads.end(stream, [early], asked, ())
    assert backlog.reads.are_wanted
    read(backlog, [late])
    assert take_all(backlog) == [early.id, late.id]


def test_a_job_of_another_server_that_is_older_than_the_cursor_is_read_at_once(
    backlog: TimedBacklog,
) -> None:
    older, newer = make(1), make(2)
    backlog.arrived([newer])
    backlog.hinted(key_of(older), older.id)
    ((stream, asked),) = backlog.reads.begin(10)
    assert stream.cursor < older.id
    backlog.reads.end(stream, [older, newer], asked, ())
    assert sorted(take_all(backlog)) == [older.id, newer.id]


def test_hints_that_come_faster_than_reads_end_keep_no_read_from_counting(
    backlog: TimedBacklog,
) -> None:
    first, second, third = make(1), make(2), make(3)
    backlog.hinted(key_of(third), third.id)
    ((stream, asked),) = backlog.reads.begin(10)
    for late in (second, first):
        backlog.hinted(key_of(late), late.id)
    backlog.reads.end(stream, [third], asked, ())
    assert take_all(backlog) == [third.id], "a read is not thrown away for what came meanwhile"
    read(backlog, [first, second, third])
    assert take_all(backlog)[:2] == [first.id, second.id]


def test_what_is_leased_is_skipped_and_forgotten(backlog: TimedBacklog) -> None:
    held, free = make(1), make(2)
    backlog.arrived([held, free])
    assert backlog.take(POOL, 1, {TypeId(1)}, {held.id}) == free
    assert backlog.counts.ready(POOL, TenantId(1)) == 0


def test_higher_priority_first_and_waiting_makes_up_for_it(backlog: TimedBacklog) -> None:
    urgent = make(1, priority=9, ms=AGEING_MS)
    normal = make(2, priority=5, ms=AGEING_MS)
    old = make(3, priority=5, type=2, ms=AGEING_MS - 4 * AGEING_MS - 1)
    low = make(4, priority=0, ms=AGEING_MS)
    backlog.arrived([low, normal, urgent, old])
    assert take_all(backlog)[:1] == [old.id]  # four steps of priority are four minutes of waiting
    assert unix_ms_of(old.id) < unix_ms_of(urgent.id)


def test_without_age_priority_alone_decides(backlog: TimedBacklog) -> None:
    jobs = [make(n, priority=n) for n in (3, 9, 0, 5)]
    backlog.arrived(jobs)
    assert take_all(backlog) == [job.id for job in sorted(jobs, key=lambda job: -job.priority)]


def test_a_forgotten_shard_leaves_no_trace_and_a_late_read_adds_none(backlog: TimedBacklog) -> None:
    jobs = [make(n) for n in range(8)]
    backlog.arrived(jobs)
    take_all(backlog)
    ((stream, asked),) = backlog.reads.begin(10)
    backlog.underway.unrecorded_ids.add(jobs[0].id)
    backlog.forget_shard(ShardId(0))
    assert not backlog.reads.end(stream, jobs[5:], asked, ())
    assert (backlog.windows.jobs_held, backlog.windows.bytes_held, backlog.reads.are_wanted) == (
        0,
        0,
        False,
    )
    assert backlog.underway.unrecorded_ids == set()
    assert backlog.counts.depth(TenantId(1), [POOL]) == 0


def test_shards_that_go_together_leave_the_others(backlog: TimedBacklog) -> None:
    ids = [make_job_id(ShardId(shard), START_MS, shard, 0) for shard in range(3)]
    jobs = [make(0, id=job, tenant=TenantId(n)) for n, job in enumerate(ids, 1)]
    backlog.arrived(jobs)
    backlog.underway.unrecorded_ids.update(ids)
    backlog.forget_shard(ShardId(0), ShardId(2))
    assert backlog.underway.unrecorded_ids == {ids[1]}
    assert [backlog.counts.depth(TenantId(n), [POOL]) for n in (1, 2, 3)] == [0, 1, 0]
    assert backlog.windows.jobs_held == 1


def test_a_failed_read_of_a_forgotten_shard_is_not_asked_again(backlog: TimedBacklog) -> None:
    backlog.noticed(key_of(make(1)), make(1).id)
    ((stream, _),) = backlog.reads.begin(10)
    backlog.forget_shard(ShardId(0))
    backlog.reads.fail(stream)
    assert not backlog.reads.are_wanted


def test_depth_is_taken_from_the_store_at_a_take_over(backlog: TimedBacklog) -> None:
    backlog.noticed(key_of(make(1)), make(1).id)
    backlog.counts.counted({(TenantId(1), POOL): 70, (TenantId(9), POOL): 5}, {})
    assert backlog.counts.depth(TenantId(1), [POOL]) == 70
    assert surveyed(backlog).depth[POOL] == 70


def surveyed(backlog: TimedBacklog) -> Survey:
    found = Survey()
    exhaust(backlog.counts.surveying(found))
    return found


def test_the_oldest_head_is_known(backlog: TimedBacklog) -> None:
    assert POOL not in surveyed(backlog).oldest_ms
    backlog.arrived([make(1, ms=50), make(2, tenant=2, ms=20)])
    assert surveyed(backlog).oldest_ms[POOL] == START_MS + 20


def test_a_promoted_job_that_a_read_brought_first_stands_there_once(backlog: TimedBacklog) -> None:
    job = make(1)
    with backlog.reading.looking() as look:
        backlog.noticed(key_of(job), job.id)  # a sweep saw the row that the promoter wrote
        read(backlog, [job])
        backlog.promoted([job], (), look)
    assert take_all(backlog) == [job.id]


def test_a_promoted_job_that_ran_before_its_promoter_heard_does_not_run_again(
    backlog: TimedBacklog,
) -> None:
    job = make(1)
    with backlog.reading.looking() as look:
        backlog.noticed(key_of(job), job.id)
        read(backlog, [job])
        assert take_all(backlog) == [job.id]
        backlog.underway.unrecorded_ids.add(job.id)
        backlog.ended([job.id])
        backlog.promoted([job], (), look)
    assert take_all(backlog) == []


def test_a_job_promoted_after_its_last_end_is_news_whatever_else_is_read(
    backlog: TimedBacklog,
) -> None:
    job = make(1)
    with backlog.reading.looking():  # a slow read of something else
        backlog.ended([job.id])
        with backlog.reading.looking() as look:
            backlog.promoted([job], (), look)
    assert take_all(backlog) == [job.id]


def test_a_job_without_its_payload_is_read_again_before_it_goes_out(backlog: TimedBacklog) -> None:
    bare, whole = make(1, size=0), make(1)
    backlog.put_back(bare)
    assert backlog.counts.depth(TenantId(1), [POOL]) == 1
    assert take_all(backlog) == []
    read(backlog, [whole])
    assert backlog.take(POOL, 1, {TypeId(1)}, ()) == whole


@pytest.mark.parametrize("is_heard_first", [True, False])
def test_a_retry_that_is_due_before_its_end_was_heard_of_is_read_again(
    backlog: TimedBacklog, is_heard_first: bool
) -> None:
    job = make(1)
    backlog.underway.unrecorded_ids.add(
        job.id
    )  # it failed and is due again: all of that is on disk
    with backlog.reading.looking() as look:
        if is_heard_first:
            backlog.ended([job.id])
        backlog.promoted([job], (), look)
    if not is_heard_first:
        assert not backlog.reads.are_wanted, "a read could not tell yet"
        backlog.ended([job.id])
    assert backlog.reads.are_wanted
    read(backlog, [job])
    assert take_all(backlog) == [job.id]


def test_many_cancellations_go_through_a_window_once() -> None:
    """A page of a thousand must not look at four thousand jobs for each of them."""
    backlog = TimedBacklog(WindowLimits(), lambda: 0)
    jobs = [make(number, ms=number) for number in range(4_000)]
    backlog.arrived(jobs)
    gone, began = jobs[::4], time.thread_time()
    backlog.remove_all([(job.id, key_of(job)) for job in gone])
    assert time.thread_time() - began < 0.05
    left = [job for job in jobs if job not in set(gone)]
    assert backlog.windows.jobs_held == backlog.counts.depth(TenantId(1), [POOL]) == len(left)
    assert backlog.windows.bytes_held == sum(len(job.payload) for job in left)
    assert take_all(backlog) == [job.id for job in left]
