"""Which streams may run, as workers come and go: only what changed is looked at."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.test_backlog import POOL, exhaust, make
from tests.steps import steps_of

from fairway.core.backlog import Backlog, WindowLimits
from fairway.core.headcount import Headcount
from fairway.core.holds import Hold, Holds
from fairway.core.runnable import REVIEWED_AT_ONCE

TYPES = st.integers(1, 6)
DEEDS = st.one_of(
    st.tuples(st.just("arrive"), st.tuples(st.integers(1, 2), TYPES, st.integers(0, 2))),
    st.tuples(st.just("runnable"), st.frozensets(TYPES)),
    st.tuples(st.just("hold"), st.frozensets(TYPES, max_size=2)),
    st.tuples(st.just("take"), st.frozensets(TYPES)),
    st.tuples(st.just("prune"), st.none()),
    st.tuples(st.just("forget"), st.none()),
)


@given(st.lists(DEEDS, max_size=60))
@settings(deadline=None)
def test_streams_are_blocked_as_if_all_were_looked_at(deeds: list[tuple[str, Any]]) -> None:
    backlog, runnable, held = Backlog(WindowLimits()), None, frozenset[int]()
    for number, (deed, what) in enumerate(deeds):
        match deed:
            case "arrive":
                tenant, type_, lane = what
                backlog.arrived([make(number, ms=number, tenant=tenant, type=type_, lane=lane)])
            case "runnable":
                runnable = what
                backlog.set_runnable(what)
            case "hold":
                held = what
                backlog.set_holds(Holds([Hold(type=one) for one in what]))
            case "take":
                backlog.take(POOL, 1, what, ())
            case "prune":
                exhaust(backlog.pruning())
            case "forget":
                backlog.forget_shard(0)
        streams = [*backlog.streams_of(1, [POOL]), *backlog.streams_of(2, [POOL])]
        for stream in streams:
            has_worker = runnable is None or stream.type in runnable
            assert stream.blocked == (stream.type in held or not has_worker)
        known = [stream for same in backlog._by_type.values() for stream in same]
        assert sorted(map(id, known)) == sorted(map(id, streams))
        assert all(backlog._by_type.values()), "no types without streams"


def test_a_type_that_comes_or_goes_costs_what_its_own_streams_do() -> None:
    def steps(others: int) -> int:
        backlog = Backlog(WindowLimits())
        backlog.arrived([make(n, ms=n, type=5 + n) for n in range(others)])
        backlog.arrived([make(others, ms=others, type=1)])
        all_types = frozenset(range(1, others + 10))
        backlog.set_runnable(all_types)
        while backlog.is_reviewing:
            backlog.review()
        return steps_of(lambda: backlog.set_runnable(all_types - {1}))

    assert steps(5000) == steps(5)


def test_a_worker_of_very_many_types_that_drops_one_costs_little() -> None:
    headcount, types = Headcount(), frozenset(range(10_000))
    headcount.count("a", types, {})
    assert steps_of(lambda: headcount.count("a", types - {7}, {})) < 500


def test_very_many_streams_of_a_type_are_looked_at_in_parts() -> None:
    backlog, count = Backlog(WindowLimits()), 5000
    backlog.set_runnable(frozenset({1}))
    backlog.arrived(
        [make(n, ms=n, type=2, lane=n % 1000, priority=n // 1000) for n in range(count)]
    )
    steps = steps_of(lambda: backlog.set_runnable(frozenset({1, 2})))
    parts = 0
    while backlog.is_reviewing:
        steps = max(steps, steps_of(backlog.review))
        parts += 1
    assert parts == (count - 1) // REVIEWED_AT_ONCE
    assert steps < 200 * REVIEWED_AT_ONCE
    assert not any(stream.blocked for stream in backlog.streams_of(1, [POOL]))
    assert backlog.reading.wanting == count


def test_a_stream_that_is_gone_is_not_reviewed() -> None:
    backlog = Backlog(WindowLimits())
    backlog.set_runnable(frozenset({1}))
    backlog.arrived([make(n, ms=n, type=2, lane=n) for n in range(1000)])
    backlog.set_runnable(frozenset({1, 2}))
    assert backlog.is_reviewing
    backlog.forget_shard(0)
    assert not backlog.is_reviewing
