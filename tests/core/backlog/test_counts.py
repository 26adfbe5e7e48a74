"""What is told of the backlog is what is in it: by tenant, by pool, and in all."""

from __future__ import annotations

from collections import Counter
from math import isinf

from hypothesis import given
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import START_MS, exhaust, make
from tests.core.timed_backlog import TimedBacklog

from fairway.core.backlog.counts import NO_WORKER, TYPES_NAMED_MAX, Expected, Survey
from fairway.core.backlog.holds import PAUSED, Hold, Holds
from fairway.core.backlog.streams import WindowLimits, key_of
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.job import QueuedJob, due_ms_of

POOLS, TENANTS = (PoolId(1), PoolId(2)), (1, 2, 3)
arrivals = st.lists(
    st.builds(
        lambda n, ms, pool, tenant, type_: (n, ms, pool, tenant, type_),
        st.integers(0, 10_000),
        st.integers(0, 1000),
        st.sampled_from(POOLS),
        st.sampled_from(TENANTS),
        st.integers(1, 3),
    ),
    max_size=30,
    unique_by=lambda one: one[0],
)


def backlog_of(plan: list[tuple[int, int, int, int, int]]) -> tuple[TimedBacklog, list[QueuedJob]]:
    backlog = TimedBacklog(WindowLimits())
    jobs = [make(n, ms=ms, pool=pool, tenant=who, type=type_) for n, ms, pool, who, type_ in plan]
    jobs.sort()  # as they are accepted
    backlog.arrived(jobs)
    return backlog, jobs


@given(arrivals, st.integers(0, 10))
def test_counts_are_what_a_count_of_all_would_find(
    plan: list[tuple[int, int, int, int, int]], taken: int
) -> None:
    backlog, jobs = backlog_of(plan)
    left = {job.id: job for job in jobs}
    for number in range(taken):
        pool, tenant = POOLS[number % 2], TENANTS[number % 3]
        if (job := backlog.take(pool, tenant, {TypeId(1), TypeId(2), TypeId(3)}, ())) is not None:
            del left[job.id]
    of = Counter((job.pool, job.tenant) for job in left.values())
    counts, found = backlog.counts, Survey()
    for pool in POOLS:
        for tenant in TENANTS:
            assert (
                counts.ready(PoolId(pool), TenantId(tenant)) == of[PoolId(pool), TenantId(tenant)]
            )
            assert (
                counts.depth(TenantId(tenant), [PoolId(pool)]) == of[PoolId(pool), TenantId(tenant)]
            )
    assert sorted(counts.awake()) == sorted(of)
    assert all(
        counts.depth(TenantId(who), POOLS)
        == of[PoolId(1), TenantId(who)] + of[PoolId(2), TenantId(who)]
        for who in TENANTS
    )
    exhaust(counts.surveying(found))
    for pool in POOLS:
        times = [int(job.id[:13].replace("-", ""), 16) for job in left.values() if job.pool == pool]
        assert found.depth[PoolId(pool)] == len(times)
        assert found.oldest_ms[PoolId(pool)] == min(times, default=float("inf"))
        assert not times or min(times) >= START_MS


def test_what_the_store_counted_is_no_less_than_what_is_here() -> None:
    backlog, (job, *_) = backlog_of([(n, 0, 1, 1, 1) for n in range(3)])
    mine, other = (TenantId(1), PoolId(1)), (TenantId(9), PoolId(1))
    backlog.counts.counted({mine: 100, other: 5}, {})
    assert backlog.counts.depth(TenantId(1), POOLS) == 3, "all of it is here"
    assert backlog.counts.depth(TenantId(9), POOLS) == 0, "nothing of that tenant is here"
    backlog.noticed(key_of(job), job.id)
    backlog.counts.counted({mine: 100}, {})
    assert backlog.counts.depth(TenantId(1), POOLS) == 100
    backlog.counts.counted({mine: 100}, {(PoolId(1), TenantId(1)): 40})
    assert backlog.counts.depth(TenantId(1), POOLS) == 60
    backlog.counts.counted({mine: 1}, {})
    assert backlog.counts.depth(TenantId(1), POOLS) == 3


class NewOwner:
    """Of a shard with queued jobs of one stream; what it grants shows as queued until recorded."""

    def __init__(self, jobs: int) -> None:
        self.backlog = TimedBacklog(WindowLimits(jobs_total=12, jobs_per_stream=5, jobs_per_read=4))
        made = [make(number) for number in range(jobs)]
        self.store: dict[str, QueuedJob] = {job.id: job for job in made}
        self.waiting, self.left = set(self.store), 0  # left: since the last count began
        self.leases: dict[str, QueuedJob] = {}
        self.unrecorded: list[str] = []
        self.asked: tuple[int, dict[str, tuple[PoolId, TenantId]]] | None = None
        self.first = made[0]
        self.sweep()

    def sweep(self) -> None:
        """It saw a row as it was a moment ago."""
        self.backlog.noticed(key_of(self.first), self.first.id)

    def read(self) -> None:
        for stream, asked in self.backlog.reads.begin(10):
            rows = [job for job in sorted(self.store.values()) if job.id > stream.cursor][:asked]
            self.backlog.reads.end(stream, rows, asked, self.leases)

    def take(self) -> None:
        if (job := self.backlog.take(PoolId(1), TenantId(1), {TypeId(1)}, self.leases)) is not None:
            self.leases[job.id] = job
            self.waiting.remove(job.id)

    def end(self) -> None:
        if self.leases:
            job = self.leases.pop(next(iter(self.leases)))
            self.backlog.underway.ran([job])
            self.unrecorded.append(job.id)

    def record(self) -> None:
        if self.unrecorded:
            job_id = self.unrecorded.pop(0)
            del self.store[job_id]
            self.left += 1
            self.backlog.ended([job_id])

    def _shown(self) -> dict[str, tuple[PoolId, TenantId]]:
        running = {job.id: (job.pool, job.tenant) for job in self.leases.values()}
        return running | self.backlog.underway.unrecorded_queues()

    def ask(self) -> None:
        self.asked, self.left = (len(self.store), self._shown()), 0

    def counted(self) -> None:
        if self.asked is not None:
            (depth, shown), self.asked = self.asked, None
            underway = Counter((shown | self._shown()).values())
            self.backlog.counts.counted({(TenantId(1), PoolId(1)): depth}, underway)
            assert len(self.waiting) <= self.depth <= len(self.waiting) + self.left

    @property
    def depth(self) -> int:
        return self.backlog.counts.depth(TenantId(1), [PoolId(1)])


steps = st.sampled_from(["read", "read", "take", "take", "end", "record", "ask", "counted"])


@given(
    st.integers(1, 30),
    st.lists(steps, max_size=80),
    st.booleans(),
    st.sampled_from([(), ("end", "record"), ("end", "record", "sweep")]),
)
def test_nothing_is_left_of_a_count_when_nothing_waits(
    jobs: int, plan: list[str], counts_at_the_end: bool, ends: tuple[str, ...]
) -> None:
    """Once the depth of a drained queue stayed at what ran while the store counted."""
    owner = NewOwner(jobs)
    with owner.backlog.underway.counting():
        for step in plan:
            getattr(owner, step)()
        if counts_at_the_end:
            owner.ask()
        while owner.waiting:
            for step in ("read", "take", *ends):
                getattr(owner, step)()
        owner.counted()
        owner.read()
        assert owner.depth == 0
        while owner.store:
            owner.end()
            owner.record()
        assert not owner.backlog.underway.unrecorded_queues()
    owner.backlog.underway.ran([make(1)])
    assert not owner.backlog.underway.unrecorded_queues(), "nobody counts"


def test_jobs_of_whom_nothing_may_start_are_told_apart() -> None:
    of = [(1, 1)] * 3 + [(2, 1)] * 2 + [(2, 2)]
    backlog, _ = backlog_of([(n, 0, 1, tenant, type_) for n, (tenant, type_) in enumerate(of)])
    holds = Holds([Hold(TenantId(1)), Hold(TenantId(2), TypeId(1))])
    backlog.runnable.set_holds(holds)
    found = Survey(holds)
    exhaust(backlog.counts.surveying(found))
    assert found.held == {(PoolId(1), PAUSED): 5}, "and of the other tenant something can start"
    assert sorted(found.deepest) == [(3, TenantId(1), PoolId(1)), (3, TenantId(2), PoolId(1))]
    assert backlog.counts.oldest_ms(PoolId(1), TenantId(1)) is None
    assert backlog.counts.oldest_ms(PoolId(1), TenantId(2)) is not None


@given(arrivals, st.sets(st.integers(1, 3)), st.sets(st.integers(1, 3), max_size=1), st.booleans())
def test_jobs_whose_type_nobody_runs_are_counted_apart(
    plan: list[tuple[int, int, int, int, int]], run: set[int], paused: set[int], is_later: bool
) -> None:
    """Also where that became so after they came."""
    backlog = TimedBacklog(WindowLimits())
    known = {TypeId(type_) for type_ in ({1, 2, 3} if is_later else run)}
    backlog.runnable.set_runnable({None: known})
    holds = Holds([Hold(type=TypeId(type_)) for type_ in paused])
    backlog.runnable.set_holds(holds)
    jobs = [make(n, ms=ms, pool=pool, tenant=who, type=type_) for n, ms, pool, who, type_ in plan]
    backlog.arrived(sorted(jobs))
    backlog.runnable.set_runnable({None: {TypeId(type_) for type_ in run}})
    found = Survey(holds)
    exhaust(backlog.counts.surveying(found))
    by_tenant: dict[tuple[int, int], Counter[str]] = {}
    for job in jobs:
        why = PAUSED if job.type in paused else "" if job.type in run else NO_WORKER
        by_tenant.setdefault((job.pool, job.tenant), Counter())[why] += 1
    for reason in (PAUSED, NO_WORKER):
        for pool in POOLS:
            mine = [of for (where, _), of in by_tenant.items() if where == pool and of[reason]]
            told, real = found.held[PoolId(pool), reason], sum(of[reason] for of in mine)
            assert len(mine) <= told <= real, "so many at least"
            assert told == real or any(of[PAUSED] and of[NO_WORKER] for of in mine)
    for pool in POOLS:
        due = [due_ms_of(job) for job in jobs if job.pool == pool and job.type in run - paused]
        assert found.oldest_ms[PoolId(pool)] == min(due, default=float("inf")), "that could run"
    unserved = {(job.pool, job.tenant, job.type) for job in jobs if job.type not in run | paused}
    named = {
        (pool, tenant, type_)
        for pool, of_tenants in found.unserved.items()
        for tenant, types in of_tenants.items()
        for type_ in types
    }
    assert named <= unserved, "some types of each tenant that has such"
    assert {one[:2] for one in named} == {one[:2] for one in unserved}
    for place in {one[:2] for one in unserved}:
        shown, there = ([one for one in of if one[:2] == place] for of in (named, unserved))
        assert len(shown) == min(len(there), TYPES_NAMED_MAX)


@given(arrivals)
def test_before_the_first_worker_comes_nothing_could_run(
    plan: list[tuple[int, int, int, int, int]],
) -> None:
    backlog, jobs = backlog_of(plan)
    found = Survey(is_before_workers=backlog.runnable.is_before_workers)
    exhaust(backlog.counts.surveying(found))
    assert all(isinf(found.oldest_ms[PoolId(pool)]) for pool in POOLS)
    waiting = Counter(job.pool for job in jobs)
    assert {pool: jobs for (pool, _), jobs in found.held.items() if jobs} == waiting
    assert {reason for _, reason in found.held} <= {NO_WORKER}
    backlog.runnable.set_runnable({None: {TypeId(type_) for type_ in (1, 2, 3)}})
    after = Survey(is_before_workers=backlog.runnable.is_before_workers)
    exhaust(backlog.counts.surveying(after))
    assert not after.held


@given(
    arrivals,
    st.sets(st.integers(1, 3)),
    st.sets(st.integers(1, 3)),
    st.dictionaries(st.sampled_from(TENANTS), st.integers(0, 3)),
)
def test_what_could_start_is_neither_held_nor_beyond_a_cap_nor_for_own_workers(
    plan: list[tuple[int, int, int, int, int]],
    paused: set[int],
    own: set[int],
    room: dict[int, int],
) -> None:
    backlog, jobs = backlog_of(plan)
    holds = Holds([Hold(type=TypeId(type_)) for type_ in paused])
    backlog.runnable.set_holds(holds)
    expected = Expected(
        lambda pool, who: room.get(who, 100),
        lambda pool, type_: 1000 * type_,
        lambda type_: type_ not in own,
    )
    found = Survey(holds, expected)
    exhaust(backlog.counts.surveying(found))
    held = Counter(job.pool for job in jobs if job.type in paused)
    assert Counter({pool: jobs for (pool, _), jobs in found.held.items()}) == held
    free = [job for job in jobs if job.type not in paused | own]
    for pool in POOLS:
        mine = Counter(job.tenant for job in free if job.pool == pool)
        could = {who: min(count, room.get(who, 100)) for who, count in mine.items()}
        assert found.runnable.get(pool, 0) == sum(could.values())
        heads = [job.id for job in free if job.pool == pool and could[job.tenant]]
        oldest = min((int(one[:13].replace("-", ""), 16) for one in heads), default=float("inf"))
        assert found.runnable_oldest_ms.get(pool, float("inf")) == oldest
        assert found.runnable_us.get(pool, 0) <= 3000 * sum(could.values())
