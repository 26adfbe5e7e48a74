"""Holds: what they match; a held stream starts nothing, loses nothing, and goes on in order.

The state machine in `test_backlog.py` has a sweep that finds what was lost; here nobody sweeps.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tests.core.backlog.test_backlog import LIMITS, POOL, make
from tests.core.timed_backlog import TimedBacklog
from tests.properties import tried

from fairway.core.backlog.holds import PAUSED, SUSPENDED, Hold, Holds
from fairway.core.backlog.streams import Stream, StreamKey, WindowLimits, key_of
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.job import QueuedJob

NUMBERS = st.integers(0, 2)
SOME_HOLDS = st.lists(st.builds(Hold, NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["open", PAUSED])))
KEYS = st.builds(StreamKey, *[st.integers(1, 2)] * 3, st.integers(0, 9), st.integers(0, 3))
HOLD = Holds([Hold(tenant=TenantId(1))])
NONE = Holds()


@given(SOME_HOLDS, KEYS)
def test_a_hold_matches_when_all_that_it_names_is_equal(holds: list[Hold], key: StreamKey) -> None:
    named = (key.tenant, key.type, key.pool)
    matching = [h for h in holds if all(n in (0, k) for n, k in zip(h[:3], named, strict=True))]
    found = Holds(holds).on(key)
    assert (found is None) == (not matching)
    assert found is None or found in matching
    assert {hold[:3] for hold in Holds(holds).all_on(key)} == {hold[:3] for hold in matching}


def test_of_two_that_name_the_same_a_pause_is_heard_of() -> None:
    key = StreamKey(TenantId(1), PoolId(1), TypeId(1), 5)
    both = [Hold(tenant=TenantId(1), reason="open"), Hold(tenant=TenantId(1))]
    assert [Holds(each).on(key) for each in (both, both[::-1])] == [Hold(tenant=TenantId(1))] * 2


@given(st.permutations([SUSPENDED, PAUSED, "open"]))
def test_that_a_tenant_is_suspended_is_heard_of_first(reasons: list[str]) -> None:
    held = Holds(Hold(tenant=TenantId(1), reason=reason) for reason in reasons)
    assert [hold.reason for hold in held.naming(TenantId(1))] == [SUSPENDED]
    assert held.is_suspended(TenantId(1))
    assert not held.is_suspended(TenantId(2))


@given(SOME_HOLDS, st.integers(1, 2))
def test_holds_that_name_a_tenant_are_its_own_and_everybodys(
    holds: list[Hold], tenant: TenantId
) -> None:
    named = Holds(holds).naming(tenant)
    assert {hold[:3] for hold in named} == {hold[:3] for hold in holds if hold[0] in (0, tenant)}
    assert not Holds(holds).is_suspended(tenant)


@given(SOME_HOLDS, SOME_HOLDS)
def test_holds_are_the_same_when_they_say_the_same(one: list[Hold], other: list[Hold]) -> None:
    names = [{hold[:3] for hold in holds} for holds in (one, other)]
    paused = [{hold[:3] for hold in holds if hold.reason == PAUSED} for holds in (one, other)]
    is_same = names[0] == names[1] and paused[0] == paused[1]
    assert Holds(one).says_the_same(Holds(other)) == is_same
    assert bool(Holds(one)) == bool(one)


@given(SOME_HOLDS, SOME_HOLDS, st.sets(NUMBERS))
def test_some_tenants_holds_change_as_if_all_were_told(
    one: list[Hold], other: list[Hold], tenants: set[TenantId]
) -> None:
    parts = {tenant: [hold for hold in other if hold.tenant == tenant] for tenant in tenants}
    kept = [hold for hold in one if hold.tenant not in tenants]
    changed = Holds(one).with_those_of(parts)
    assert changed.says_the_same(Holds(kept + [hold for part in parts.values() for hold in part]))
    assert bool(changed) == bool(kept or any(parts.values()))


# -- the backlog under a hold --------------------------------------------------------------------


@pytest.fixture
def backlog() -> TimedBacklog:
    return TimedBacklog(LIMITS)


def take_all(backlog: TimedBacklog, tenant: int = 1) -> list[str]:
    taken: list[str] = []
    while job := backlog.take(POOL, tenant, {TypeId(1), TypeId(2)}, ()):
        taken.append(job.id)
    return taken


def read_from(stream: Stream, cursor: str, asked: int, store: list[QueuedJob]) -> list[QueuedJob]:
    ours = [job for job in store if key_of(job) == stream.key and job.id > cursor]
    return sorted(ours)[:asked]


def drain(backlog: TimedBacklog, store: list[QueuedJob]) -> list[str]:
    """Read and take until nothing comes any more; nobody sweeps."""
    taken: list[str] = []
    for _ in range(2 * len(store) + 2):
        for stream, asked in backlog.reads.begin(10):
            found = read_from(stream, stream.cursor, asked, store)
            backlog.reads.end(stream, found, asked, ())
        while job := backlog.take(POOL, 1, {TypeId(1), TypeId(2)}, ()):
            taken.append(job.id)
            store.remove(job)
    return taken


def ids(jobs: list[QueuedJob]) -> list[str]:
    return [job.id for job in jobs]


def test_a_held_backlog_takes_no_memory_and_keeps_its_depth(backlog: TimedBacklog) -> None:
    backlog.arrived([make(n) for n in range(8)])
    assert backlog.runnable.set_holds(HOLD) == [(POOL, 1)]
    assert (backlog.windows.jobs_held, backlog.windows.bytes_held, backlog.reads.are_wanted) == (
        0,
        0,
        False,
    )
    assert take_all(backlog) == []
    assert backlog.counts.depth(TenantId(1), [POOL]) == 8


def test_what_came_before_and_during_a_hold_goes_on_in_order(backlog: TimedBacklog) -> None:
    store = [make(n, ms=n) for n in range(12)]
    backlog.arrived(store[:8])  # deeper than a window
    backlog.runnable.set_holds(HOLD)
    backlog.arrived(store[8:])
    assert drain(backlog, list(store)) == []
    backlog.runnable.set_holds(NONE)
    assert drain(backlog, list(store)) == ids(store)
    assert backlog.counts.depth(TenantId(1), [POOL]) == 0


def test_only_what_is_named_is_held(backlog: TimedBacklog) -> None:
    mine, other_type, other_tenant = make(1), make(2, type=2), make(3, tenant=2)
    backlog.arrived([mine, other_type, other_tenant])
    assert backlog.runnable.set_holds(Holds([Hold(tenant=TenantId(1), type=TypeId(1))])) == []
    assert take_all(backlog) == [other_type.id]
    assert take_all(backlog, tenant=2) == [other_tenant.id]
    backlog.runnable.set_holds(NONE)
    assert drain(backlog, [mine]) == [mine.id]


def test_a_read_that_is_answered_under_a_hold_starts_nothing(backlog: TimedBacklog) -> None:
    store = [make(n, ms=n) for n in range(3)]
    backlog.hinted(key_of(store[0]), store[0].id)
    ((stream, asked),) = backlog.reads.begin(10)
    backlog.runnable.set_holds(HOLD)
    assert not backlog.reads.end(stream, store, asked, ())
    assert take_all(backlog) == []
    backlog.runnable.set_holds(NONE)
    assert drain(backlog, list(store)) == ids(store)


def test_a_hold_that_came_and_went_during_a_read_skips_nothing(backlog: TimedBacklog) -> None:
    """The read began past the window; the window was given up while it was under way."""
    store = [make(n, ms=n) for n in range(8)]
    backlog.arrived(store)
    first = backlog.take(POOL, 1, {TypeId(1)}, ())
    assert first is not None
    store.remove(first)
    while len(take_one := backlog.reads.begin(10)) == 0:
        job = backlog.take(POOL, 1, {TypeId(1)}, ())
        assert job is not None
        store.remove(job)
    ((stream, asked),) = take_one
    seen = read_from(stream, stream.cursor, asked, store)
    assert seen != store  # the window still holds something
    backlog.runnable.set_holds(HOLD)
    backlog.runnable.set_holds(NONE)
    backlog.reads.end(stream, seen, asked, ())
    assert drain(backlog, list(store)) == ids(store)


def test_a_hold_that_came_and_went_during_a_read_that_failed(backlog: TimedBacklog) -> None:
    store = [make(n, ms=n) for n in range(3)]
    backlog.hinted(key_of(store[0]), store[0].id)
    ((stream, _),) = backlog.reads.begin(10)
    backlog.runnable.set_holds(HOLD)
    backlog.reads.fail(stream)
    assert not backlog.reads.are_wanted
    backlog.runnable.set_holds(NONE)
    assert drain(backlog, list(store)) == ids(store)


def test_a_job_put_back_under_a_hold_waits_and_comes_first_again(backlog: TimedBacklog) -> None:
    store = [make(n, ms=n) for n in range(4)]
    backlog.arrived(store)
    first = backlog.take(POOL, 1, {TypeId(1)}, ())
    assert first == store[0]
    backlog.runnable.set_holds(HOLD)
    backlog.put_back(first)
    assert take_all(backlog) == []
    assert backlog.counts.depth(TenantId(1), [POOL]) == 4
    backlog.runnable.set_holds(NONE)
    assert drain(backlog, list(store)) == ids(store)


def test_a_retry_that_comes_due_during_a_read_of_a_full_window_is_not_skipped(
    backlog: TimedBacklog,
) -> None:
    """Its id is from the past, so the cursor goes back; the read must not take it forward again."""
    retry = make(0, ms=0)
    store = [make(n, ms=n) for n in range(1, 12)]
    others = [make(n, ms=n, tenant=2) for n in range(100, 108)]
    backlog.arrived(store)
    backlog.arrived(others)
    for expected in store[:4]:
        assert backlog.take(POOL, 1, {TypeId(1)}, ()) == expected
        store = store[1:]
    ((stream, asked),) = [wish for wish in backlog.reads.begin(10) if wish[0].key.tenant == 1]
    seen = read_from(stream, stream.cursor, asked, store)
    for tenant in (3, 4):
        backlog.arrived([make(n, ms=n, tenant=tenant) for n in range(200, 210)])
    assert backlog.windows.jobs_held == LIMITS.jobs_total
    backlog.arrived([retry])
    backlog.reads.end(stream, seen, asked, ())
    for tenant in (2, 3, 4):
        take_all(backlog, tenant)
    assert sorted(drain(backlog, [retry, *store])) == ids([retry, *store])


def test_a_probe_leaves_a_paused_stream_alone() -> None:
    backlog, open_ = TimedBacklog(LIMITS), Hold(tenant=TenantId(1), type=TypeId(1), reason="open")
    job = make(1)
    backlog.arrived([job])
    backlog.runnable.set_holds(Holds([open_, Hold(tenant=TenantId(1))]))
    assert backlog.probes.begin(open_, [POOL]) == []
    backlog.runnable.set_holds(Holds([open_]))
    (stream,) = backlog.probes.begin(open_, [POOL])
    assert backlog.probes.end(stream, [job], ()) == [job]
    assert take_all(backlog) == [job.id]


def test_a_hold_that_goes_during_a_probe_leaves_nothing_behind() -> None:
    backlog, open_ = TimedBacklog(LIMITS), Hold(tenant=TenantId(1), type=TypeId(1), reason="open")
    store = [make(n, ms=n) for n in range(4)]
    backlog.arrived(store)
    backlog.runnable.set_holds(Holds([open_]))
    (stream,) = backlog.probes.begin(open_, [POOL])
    backlog.runnable.set_holds(NONE)
    assert backlog.probes.end(stream, [], ()) == []  # the probe's read failed
    assert drain(backlog, list(store)) == ids(store)


@given(
    st.sets(st.builds(StreamKey, *[st.integers(1, 3)] * 3, st.integers(1, 2)), max_size=20),
    st.integers(1, 3),
    NUMBERS,
    NUMBERS,
)
def test_a_probe_finds_all_that_its_hold_keeps_back(
    keys: set[StreamKey], tenant: int, type_: int, pool: int
) -> None:
    backlog, hold = (
        TimedBacklog(LIMITS),
        Hold(TenantId(tenant), TypeId(type_), PoolId(pool), "open"),
    )
    backlog.runnable.set_holds(Holds([hold]))
    for key in keys:
        backlog.noticed(key, make(1).id)
    found = {stream.key for stream in backlog.probes.begin(hold, [PoolId(1), PoolId(2), PoolId(3)])}
    assert found == {key for key in keys if Holds([hold]).on(key)}


def test_a_probe_looks_at_its_own_tenant_alone() -> None:
    backlog, hold = TimedBacklog(LIMITS), Hold(TenantId(1), TypeId(1), PoolId(0), "open")
    backlog.runnable.set_holds(Holds([hold]))
    for tenant in range(1, 20_001):
        backlog.noticed(StreamKey(TenantId(tenant), POOL, TypeId(1), 5), make(tenant).id)
    used_before = time.thread_time()
    for _ in range(100):
        (stream,) = backlog.probes.begin(hold, [POOL])
        backlog.probes.end(stream, [], ())
    assert time.thread_time() - used_before < 0.1  # a millisecond; a look at all takes 0.3 s


class OrderedStream(RuleBasedStateMachine):
    """One stream whose jobs come in order: whatever holds and reads do, they leave in order."""

    def __init__(self) -> None:
        super().__init__()
        limits = WindowLimits(jobs_per_stream=6, jobs_per_read=20)
        self.backlog, self.number = TimedBacklog(limits), 0
        self.store: list[QueuedJob] = []
        self.taken: list[str] = []
        self.read: tuple[Stream, int, list[QueuedJob]] | None = None

    @rule(count=st.integers(6, 12))
    def come(self, count: int) -> None:
        new = [make(n, ms=n) for n in range(self.number, self.number + count)]
        self.number += count
        self.store += new
        self.backlog.arrived(new)

    @rule(holds=st.sampled_from([[HOLD], [NONE], [HOLD, NONE], [HOLD, NONE], [HOLD, NONE]]))
    def hold_or_release(self, holds: list[Holds]) -> None:
        for each in holds:
            self.backlog.runnable.set_holds(each)

    @precondition(lambda self: self.read is None)
    @rule()
    def a_read_begins_and_sees(self) -> None:
        for stream, asked in self.backlog.reads.begin(1):
            self.read = (stream, asked, read_from(stream, stream.cursor, asked, self.store))

    @precondition(lambda self: self.read is not None)
    @rule()
    def it_is_answered(self) -> None:
        assert self.read is not None
        stream, asked, seen = self.read
        self.backlog.reads.end(stream, [job for job in seen if job in self.store], asked, ())
        self.read = None

    @rule(count=st.integers(1, 4))
    def take(self, count: int) -> None:
        for _ in range(count):
            if job := self.backlog.take(POOL, 1, {TypeId(1)}, ()):
                self.taken.append(job.id)
                self.store.remove(job)

    def teardown(self) -> None:
        if self.read is not None:
            self.it_is_answered()
        self.backlog.runnable.set_holds(NONE)
        self.taken += drain(self.backlog, self.store)
        assert not self.store
        assert self.taken == sorted(self.taken)


OrderedStream.TestCase.settings = tried(80)
TestAStreamStaysInOrder = OrderedStream.TestCase


def test_a_change_of_one_tenants_holds_is_about_nobody_else() -> None:
    before = Holds([Hold(TenantId(1)), Hold(TenantId(2), TypeId(7)), Hold(pool=PoolId(3))])
    assert not before.unlike(before).types_of(PoolId(1), TenantId(1))
    for changes in (
        Holds([Hold(TenantId(2), TypeId(7)), Hold(pool=PoolId(3))]).unlike(before),
        before.unlike(Holds([Hold(TenantId(2), TypeId(7)), Hold(pool=PoolId(3))])),
    ):
        assert changes.types_of(PoolId(1), TenantId(1)) == {0}
        assert not changes.types_of(PoolId(1), TenantId(2))
    reasoned = Holds(
        [Hold(TenantId(1)), Hold(TenantId(2), TypeId(7), reason="circuit"), Hold(pool=PoolId(3))]
    ).unlike(before)
    assert reasoned.types_of(PoolId(1), TenantId(2)) == {7}
    assert not reasoned.types_of(PoolId(1), TenantId(1))
    no_pool = Holds([Hold(TenantId(1)), Hold(TenantId(2), TypeId(7))]).unlike(before)
    assert no_pool.types_of(PoolId(3), TenantId(99)) == {0}
    assert not no_pool.types_of(PoolId(1), TenantId(99))
    assert Holds([Hold(type=TypeId(9))]).unlike(Holds()).types_of(PoolId(5), TenantId(5)) == {9}


@given(
    st.lists(st.builds(Hold, *[st.integers(0, 2)] * 3), max_size=4),
    st.lists(st.builds(Hold, *[st.integers(0, 2)] * 3), max_size=4),
    st.tuples(*[st.integers(1, 3)] * 3),
)
def test_what_is_held_differently_is_among_the_changes(
    some: list[Hold], others: list[Hold], names: tuple[int, int, int]
) -> None:
    one, other = Holds(some), Holds(others)
    tenant, type_, pool = names
    key = StreamKey(TenantId(tenant), PoolId(pool), TypeId(type_), 5)
    if bool(one.on(key)) != bool(other.on(key)):
        assert one.unlike(other).types_of(PoolId(pool), TenantId(tenant)) & {0, type_}
