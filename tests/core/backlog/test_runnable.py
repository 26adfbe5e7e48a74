"""Which streams may run, as workers come and go: only what changed is looked at."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import POOL, exhaust, make
from tests.core.timed_backlog import TimedBacklog
from tests.steps import steps_of

from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.runnable import REVIEWED_AT_ONCE
from fairway.core.backlog.streams import WindowLimits
from fairway.core.fair_share.capacity import Headcount, SlotOffer
from fairway.core.ids import ShardId, TenantId, TypeId

TYPES = st.integers(1, 6)
TENANTS = st.integers(1, 2)
DEEDS = st.one_of(
    st.tuples(st.just("arrive"), st.tuples(TENANTS, TYPES, st.integers(0, 2))),
    st.tuples(
        st.just("hello"),
        st.tuples(st.sampled_from("abc"), st.none() | TENANTS, st.frozensets(TYPES)),
    ),
    st.tuples(st.just("gone"), st.sampled_from("abc")),
    st.tuples(st.just("hold"), st.frozensets(TYPES, max_size=2)),
    st.tuples(st.just("take"), st.frozensets(TYPES)),
    st.tuples(st.just("prune"), st.none()),
    st.tuples(st.just("forget"), st.none()),
)


class Room:
    """Jobs of two tenants; workers of all, or of one of them, that come and go."""

    def __init__(self) -> None:
        self.backlog = TimedBacklog(WindowLimits())
        self.headcount = Headcount()
        self.workers: dict[str, tuple[int | None, frozenset[int]]] = {}
        self.held = frozenset[int]()
        self.somebody_came = False

    def do(self, number: int, deed: str, what: Any) -> None:
        match deed:
            case "arrive":
                tenant, type_, lane = what
                job = make(number, ms=number, tenant=tenant, type=type_, lane=lane)
                self.backlog.arrived([job])
            case "hello":
                key, tenant, types = what
                self.workers[key] = tenant, types
                self.headcount.count(key, SlotOffer(tenant, types, {}))
                self.recount()
            case "gone":
                self.workers.pop(what, None)
                self.headcount.forget(what)
                self.recount()
            case "hold":
                self.held = what
                self.backlog.runnable.set_holds(Holds([Hold(type=one) for one in what]))
            case "take":
                self.backlog.take(POOL, 1, what, ())
            case "prune":
                exhaust(self.backlog.pruning())
            case "forget":
                self.backlog.forget_shard(ShardId(0))

    def recount(self) -> None:
        types = self.headcount.changes().types
        self.somebody_came |= bool(types)
        if types:
            self.backlog.runnable.set_runnable(types)

    def has_worker(self, tenant: int, type_: int) -> bool:
        """The law: a shared worker runs it, or one of the tenant's own."""
        if not self.somebody_came:
            return True
        return any(
            type_ in types for whose, types in self.workers.values() if whose in (None, tenant)
        )


@given(st.lists(DEEDS, max_size=60))
@settings(deadline=None)
def test_streams_are_blocked_as_if_all_were_looked_at(deeds: list[tuple[str, Any]]) -> None:
    room = Room()
    backlog = room.backlog
    for number, (deed, what) in enumerate(deeds):
        room.do(number, deed, what)
        streams = [
            *backlog.counts.streams_of(TenantId(1), [POOL]),
            *backlog.counts.streams_of(TenantId(2), [POOL]),
        ]
        for stream in streams:
            has_worker = room.has_worker(stream.key.tenant, stream.type)
            assert stream.blocked == (stream.type in room.held or not has_worker)
        known = [stream for same in backlog.runnable._by_type.values() for stream in same]
        assert sorted(map(id, known)) == sorted(map(id, streams))
        assert all(backlog.runnable._by_type.values()), "no types without streams"
        assert all(backlog.runnable._own_runnable.values()), (
            "no tenants without workers of their own"
        )


def test_jobs_that_only_another_tenants_worker_could_run_take_no_memory() -> None:
    """What a tenant's own worker says made its types runnable for everybody."""
    backlog = TimedBacklog(WindowLimits())
    backlog.runnable.set_runnable(
        {None: frozenset({TypeId(1)}), TenantId(7): frozenset({TypeId(2)})}
    )
    for number, tenant in enumerate((7, 8)):
        backlog.arrived([make(number, ms=number, tenant=tenant, type=2)])
    assert (backlog.counts.ready(POOL, TenantId(7)), backlog.counts.ready(POOL, TenantId(8))) == (
        1,
        0,
    )
    backlog.runnable.set_runnable({TenantId(7): frozenset()})
    assert [one.blocked for one in backlog.counts.streams_of(TenantId(7), [POOL])] == [True]
    backlog.runnable.set_runnable({TenantId(8): frozenset({TypeId(2)})})
    assert [one.blocked for one in backlog.counts.streams_of(TenantId(8), [POOL])] == [False]
    assert backlog.reads.are_wanted, "it is read now that somebody runs it"


def test_a_tenants_own_worker_costs_what_its_tenants_streams_do() -> None:
    def steps(others: int) -> int:
        backlog = TimedBacklog(WindowLimits())
        backlog.runnable.set_runnable(
            {None: frozenset({TypeId(1)}), TenantId(1): frozenset({TypeId(2), TypeId(3)})}
        )
        backlog.arrived([make(n, ms=n, tenant=2 + n, type=2) for n in range(others)])
        backlog.arrived([make(others, ms=others, type=2)])
        return steps_of(
            lambda: backlog.runnable.set_runnable({TenantId(1): frozenset({TypeId(3)})})
        )

    assert steps(5000) == steps(5)


def test_a_type_that_comes_or_goes_costs_what_its_own_streams_do() -> None:
    def steps(others: int) -> int:
        backlog = TimedBacklog(WindowLimits())
        backlog.arrived([make(n, ms=n, type=5 + n) for n in range(others)])
        backlog.arrived([make(others, ms=others, type=1)])
        all_types = frozenset(map(TypeId, range(1, others + 10)))
        backlog.runnable.set_runnable({None: all_types})
        while backlog.runnable.is_reviewing:
            backlog.runnable.review()
        return steps_of(lambda: backlog.runnable.set_runnable({None: all_types - {1}}))

    assert steps(5000) == steps(5)


def test_a_worker_of_very_many_types_that_drops_one_costs_little() -> None:
    headcount, types = Headcount(), frozenset(map(TypeId, range(10_000)))
    headcount.count("a", SlotOffer(None, types, {}))
    assert steps_of(lambda: headcount.count("a", SlotOffer(None, types - {7}, {}))) < 500


def test_very_many_streams_of_a_type_are_looked_at_in_parts() -> None:
    backlog, count = TimedBacklog(WindowLimits()), 5000
    backlog.runnable.set_runnable({None: frozenset({TypeId(1)})})
    backlog.arrived(
        [make(n, ms=n, type=2, lane=n % 1000, priority=n // 1000) for n in range(count)]
    )
    steps = steps_of(
        lambda: backlog.runnable.set_runnable({None: frozenset({TypeId(1), TypeId(2)})})
    )
    parts = 0
    while backlog.runnable.is_reviewing:
        steps = max(steps, steps_of(backlog.runnable.review))
        parts += 1
    assert parts == (count - 1) // REVIEWED_AT_ONCE
    assert steps < 200 * REVIEWED_AT_ONCE
    assert not any(stream.blocked for stream in backlog.counts.streams_of(TenantId(1), [POOL]))
    assert backlog.reading.wanting == count


def test_a_stream_that_is_gone_is_not_reviewed() -> None:
    backlog = TimedBacklog(WindowLimits())
    backlog.runnable.set_runnable({None: frozenset({TypeId(1)})})
    backlog.arrived([make(n, ms=n, type=2, lane=n) for n in range(1000)])
    backlog.runnable.set_runnable({None: frozenset({TypeId(1), TypeId(2)})})
    assert backlog.runnable.is_reviewing
    backlog.forget_shard(ShardId(0))
    assert not backlog.runnable.is_reviewing
