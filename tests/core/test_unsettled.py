"""Holds that change for very many streams: in force at once, told to the streams in parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from tests.core.backlog.test_backlog import HOLDS, LIMITS, POOL, BacklogMachine, exhaust, make
from tests.core.timed_backlog import TimedBacklog
from tests.properties import tried
from tests.steps import lines_of

from fairway.core import time_slices
from fairway.core.backlog import backlog as backlog_module
from fairway.core.backlog import deferred, runnable
from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.runnable import EVICTED_AT_ONCE, REVIEWED_AT_ONCE
from fairway.core.backlog.streams import Stream, WindowLimits
from fairway.core.ids import PoolId, TenantId, TypeId

MANY = 9_999  # and one more is as many as a tenant may have
PAUSED, NONE = Holds([Hold(tenant=TenantId(1), pool=POOL)]), Holds()
PLACE = (POOL, TenantId(1))
LINES_PER_STREAM = 100


class InParts(BacklogMachine):
    """As the machine of the backlog; whatever is done in parts is done one stream at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(runnable, "REVIEWED_AT_ONCE", 1)
        self.patch.setattr(backlog_module, "SETTLED_PER_TAKE", 1)
        self.patch.setattr(time_slices, "LOOKED_AT_ONCE", 1)
        self.pruning: Iterator[None] = iter(())

    @rule()
    def review(self) -> None:
        self.backlog.runnable.review()

    @rule()
    def sweep(self) -> None:
        exhaust(self.pruning)  # one after the other
        for key, first in self._heads().items():
            if first not in self.leases and not self.backlog.knows(key, first):
                self.backlog.noticed(key, first)
        self.pruning = self.backlog.pruning()

    @rule()
    def prune_some(self) -> None:
        next(self.pruning, None)

    @invariant()
    def what_is_held_takes_no_memory(self) -> None:
        for stream in self._settled_streams():
            assert not (stream.window and self.backlog.runnable.holds.on(stream.key))

    @invariant()
    def what_was_looked_at_knows_its_holds(self) -> None:
        for stream in self._settled_streams():
            assert stream.blocked == (self.backlog.runnable.holds.on(stream.key) is not None)

    @invariant()
    def whoever_is_not_settled_will_be(self) -> None:
        for backlog in self.backlog._tenants.values():
            if backlog.unsettled is not None:
                assert backlog.unsettled.left.keys() <= set(backlog.streams.values())
                assert backlog.unsettled.left
                assert backlog.unsettled in self.backlog.runnable._unsettled

    def _settled_streams(self) -> Iterator[Stream]:
        streams = chain.from_iterable(b.streams.values() for b in self.backlog._tenants.values())
        return (stream for stream in streams if not self.backlog.runnable.is_unsettled(stream))

    def _settle_one_round(self) -> None:
        while self.backlog.runnable.is_reviewing:
            self.backlog.runnable.review()
        super()._settle_one_round()
        exhaust(self.pruning)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.patch.undo()


class CrowdInParts(InParts):
    def __init__(self) -> None:
        super().__init__()
        self.patch.setattr(deferred, "STREAMS_MAX", 1)


InParts.TestCase.settings = tried(40, stateful_step_count=50)
CrowdInParts.TestCase.settings = tried(40, stateful_step_count=50)
TestBacklogInParts = InParts.TestCase
TestCrowdInParts = CrowdInParts.TestCase


# -- what comes of it is the same ----------------------------------------------------------------


def state_of(backlog: TimedBacklog) -> object:
    streams = chain.from_iterable(one.streams.values() for one in backlog._tenants.values())
    return (
        {
            stream.key: (stream.blocked, [*stream.window], stream.more, stream.cursor)
            for stream in streams
        },
        {stream.key for stream in backlog.reading.now_wanting()},
        {place: one.ready for place, one in backlog._tenants.items()},
        (backlog.windows.jobs_held, backlog.windows.bytes_held, backlog.runnable.is_reviewing),
    )


COMING = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(0, 2)), min_size=1, max_size=30
)


@given(COMING, COMING, HOLDS, HOLDS)
@settings(deadline=None)
def test_in_parts_or_at_once_the_end_is_the_same(
    early: list[tuple[int, int, int]],
    late: list[tuple[int, int, int]],
    before: list[Hold],
    after: list[Hold],
) -> None:
    def played(at_once: int) -> tuple[object, set[tuple[PoolId, TenantId]]]:
        backlog, numbers = TimedBacklog(LIMITS), iter(range(1000))
        with pytest.MonkeyPatch.context() as patch:
            for holds, coming in ((before, early), (after, late)):
                for tenant, type_, lane in coming:
                    number = next(numbers)
                    job = make(number, ms=number, tenant=tenant, type=type_, lane=lane)
                    backlog.arrived([job])
                patch.setattr(runnable, "REVIEWED_AT_ONCE", at_once)
                asleep = {*backlog.runnable.set_holds(Holds(holds))}
                while backlog.runnable.is_reviewing:
                    asleep |= {*backlog.runnable.review()[0]}
        return state_of(backlog), asleep

    assert played(1) == played(1000)


# -- ten thousand streams ------------------------------------------------------------------------


@pytest.fixture
def crowded() -> TimedBacklog:
    """Ten thousand streams of tenant 1, a job in each."""
    backlog = TimedBacklog(WindowLimits())
    backlog.arrived([make(n, ms=n, lane=n % 1000, priority=n // 1000) for n in range(MANY)])
    return backlog


def take(backlog: TimedBacklog, tenant: int = 1) -> object:
    return backlog.take(POOL, tenant, {TypeId(1), TypeId(2)}, ())


def settle_all(backlog: TimedBacklog) -> int:
    """Answers in how many parts."""
    parts = 0
    while backlog.runnable.is_reviewing:
        backlog.runnable.review()
        parts += 1
    return parts


def test_a_pause_of_very_many_streams_is_in_force_at_once_and_done_in_parts(
    crowded: TimedBacklog,
) -> None:
    lines_max = LINES_PER_STREAM * REVIEWED_AT_ONCE
    for _ in range(2):
        assert lines_of(lambda: crowded.runnable.set_holds(PAUSED)) < lines_max
        assert crowded.windows.jobs_held >= MANY - REVIEWED_AT_ONCE or not crowded.windows.jobs_held
        assert take(crowded) is None
        assert lines_of(crowded.runnable.review) < lines_max
        while crowded.runnable.is_reviewing:
            assert take(crowded) is None
            crowded.runnable.review()
        assert crowded.windows.jobs_held == crowded.counts.ready(*PLACE) == 0
        assert all(stream.blocked for stream in crowded.counts.streams_of(TenantId(1), [POOL]))

        assert lines_of(lambda: crowded.runnable.set_holds(NONE)) < lines_max
        assert lines_of(crowded.runnable.review) < lines_max
        assert settle_all(crowded) >= MANY // REVIEWED_AT_ONCE - 2
        assert not any(stream.blocked for stream in crowded.counts.streams_of(TenantId(1), [POOL]))
        assert crowded.reading.wanting == MANY


def test_whoever_pauses_and_resumes_in_a_hurry_costs_no_more(crowded: TimedBacklog) -> None:
    """Each change finds the last one unfinished."""
    lines_max = LINES_PER_STREAM * REVIEWED_AT_ONCE
    for _ in range(5):
        for holds in (PAUSED, NONE, PAUSED):
            assert lines_of(partial(crowded.runnable.set_holds, holds)) < lines_max
        assert take(crowded) is None
    crowded.runnable.set_holds(NONE)
    settle_all(crowded)
    assert crowded.counts.ready(*PLACE) + crowded.reading.wanting == MANY
    assert take(crowded) is not None


def test_very_long_windows_are_given_up_in_parts() -> None:
    backlog = TimedBacklog(WindowLimits())
    jobs = [make(n, ms=n, lane=n % 10) for n in range(MANY)]
    backlog.arrived(sorted(jobs, key=lambda job: job.lane))
    held = [backlog.windows.jobs_held]
    backlog.runnable.set_holds(PAUSED)
    held.append(backlog.windows.jobs_held)
    while backlog.runnable.is_reviewing:
        backlog.runnable.review()
        held.append(backlog.windows.jobs_held)
    window = MANY // 10 + 1
    assert held[0] == MANY
    assert held[-1] == 0
    assert max(a - b for a, b in pairwise(held)) <= EVICTED_AT_ONCE + window


def test_what_is_not_held_is_found_behind_all_that_is(crowded: TimedBacklog) -> None:
    free = make(MANY, ms=MANY, type=2)
    crowded.arrived([free])
    assert crowded.runnable.set_holds(Holds([Hold(tenant=TenantId(1), type=TypeId(1))])) == []
    assert lines_of(lambda: take(crowded)) < LINES_PER_STREAM * 20
    awake: list[tuple[PoolId, TenantId]] = []
    while crowded.runnable.is_reviewing:
        asleep, awake = crowded.runnable.review()
        assert asleep == []
    assert awake == [PLACE], "whoever was refused before is to be served now"
    assert take(crowded) == free
    assert take(crowded) is None


def test_one_tenants_streams_do_not_keep_another_from_going_on(crowded: TimedBacklog) -> None:
    other = make(MANY, ms=MANY, tenant=2)
    crowded.arrived([other])
    crowded.runnable.set_holds(Holds([Hold(tenant=TenantId(2))]))
    crowded.runnable.set_holds(Holds([Hold(tenant=TenantId(2)), Hold(tenant=TenantId(1))]))
    crowded.runnable.set_holds(Holds([Hold(tenant=TenantId(1))]))
    assert crowded.runnable.is_reviewing
    assert [stream.key.tenant for stream in crowded.reading.now_wanting()] == [2]


def test_a_change_looks_at_nobody_else() -> None:
    def lines(others: int) -> int:
        backlog = TimedBacklog(WindowLimits())
        backlog.arrived([make(n, ms=n, tenant=n) for n in range(1, others + 1)])
        return lines_of(lambda: backlog.runnable.set_holds(PAUSED))

    assert lines(5000) == lines(5)


def test_a_crowd_that_was_resumed_a_moment_ago_keeps_its_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deferred, "STREAMS_MAX", 5)
    backlog = TimedBacklog(WindowLimits())
    backlog.runnable.set_holds(PAUSED)
    backlog.arrived([make(n, ms=n, lane=n) for n in range(6)])
    monkeypatch.setattr(runnable, "REVIEWED_AT_ONCE", 0)
    backlog.runnable.set_holds(NONE)
    exhaust(backlog.pruning())
    assert len([*backlog.counts.streams_of(TenantId(1), [POOL])]) == 5


def test_a_tenant_without_streams_hears_of_later_changes_too() -> None:
    backlog = TimedBacklog(WindowLimits())
    backlog.arrived([make(1, lane=3)])
    assert take(backlog) is not None  # it runs: its lane is remembered
    exhaust(backlog.pruning())
    assert (backlog.counts.pool_tenants(), [*backlog.counts.streams_of(TenantId(1), [POOL])]) == (
        [PLACE],
        [],
    )
    backlog.runnable.set_holds(PAUSED)
    settle_all(backlog)
    backlog.arrived([make(2, lane=3)])
    assert not backlog.reads.are_wanted
    backlog.runnable.set_holds(NONE)
    settle_all(backlog)
    assert backlog.reading.wanting == 1


# -- probes --------------------------------------------------------------------------------------


def test_no_probe_goes_into_a_window_that_is_to_be_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runnable, "REVIEWED_AT_ONCE", 0)
    backlog, open_ = TimedBacklog(LIMITS), Hold(tenant=TenantId(1), type=TypeId(1), reason="open")
    jobs = [make(n, ms=n) for n in range(8)]  # more than a window
    backlog.arrived(jobs)
    backlog.runnable.set_holds(Holds([open_]))
    assert backlog.probes.begin(open_, [POOL]) == []
    monkeypatch.undo()
    settle_all(backlog)
    (stream,) = backlog.probes.begin(open_, [POOL])
    assert backlog.probes.end(stream, jobs[:1], ()) == jobs[:1]
    assert [take(backlog), take(backlog)] == [jobs[0], None]


def test_a_change_about_other_types_leaves_a_probe_where_it_is() -> None:
    backlog = TimedBacklog(LIMITS)
    mine, other = (Hold(tenant=TenantId(1), type=TypeId(type_), reason="open") for type_ in (1, 2))
    job = make(1)
    backlog.arrived([job, make(2, type=2)])
    backlog.runnable.set_holds(Holds([mine, other]))
    (stream,) = backlog.probes.begin(mine, [POOL])
    backlog.probes.end(stream, [job], ())
    backlog.runnable.set_holds(Holds([mine]))
    backlog.runnable.set_runnable({None: frozenset({TypeId(1), TypeId(2), TypeId(3)})})
    assert take(backlog) == job
