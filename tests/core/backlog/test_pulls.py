"""Degraded mode: who stands in and when, and tenants that take turns within their rooms."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.store.rows import new_job

from fairway.core.backlog.pulls import (
    ROWS_MAX,
    PullTurns,
    Taker,
    UnownedShards,
    asks_for,
    deal,
    startable,
)
from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import PoolId, ShardId, TenantId, TypeId
from fairway.core.job import QueuedJob

SHORT = PoolId(1)
PATIENCE_US = 60_000_000
APART_US = 10_000_000
TENANTS = st.integers(1, 4).map(TenantId)
TYPES = st.integers(1, 3).map(TypeId)
TAKERS = st.lists(
    st.builds(
        Taker,
        st.frozensets(TYPES),
        st.none() | st.frozensets(TENANTS, max_size=2),
        st.integers(0, 6),
    ),
    max_size=3,
)
ROOMS = st.dictionaries(TENANTS, st.integers(0, 5))


@st.composite
def queued(draw: st.DrawFn) -> list[QueuedJob]:
    wanted = st.tuples(TENANTS, TYPES, st.integers(0, 9))
    return [
        new_job(tenant=tenant, type=type_id, priority=priority)
        for tenant, type_id, priority in draw(st.lists(wanted, max_size=25))
    ]


# -- standing in -----------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.integers(0, APART_US + APART_US // 8), st.sets(st.integers(0, 2).map(ShardId))
        ),
        max_size=40,
    )
)
def test_an_owner_must_have_been_away_for_our_patience_longer_than_it_was_there(
    looks: list[tuple[int, set[ShardId]]],
) -> None:
    """Counted over some time up to now, in which there was no long pause between two looks."""
    unowned, now_us = UnownedShards(), 0
    history: dict[ShardId, list[int]] = {ShardId(number): [] for number in range(3)}
    before: set[ShardId] | None = None
    for pause_us, without in looks:
        now_us += pause_us
        due = unowned.look(without, now_us, PATIENCE_US, APART_US)
        for shard, spans in history.items():
            if before is None or pause_us > APART_US:
                spans.clear()
            else:
                spans.append(pause_us if shard in without and shard in before else -pause_us)
            most = max((sum(spans[-count:]) for count in range(1, len(spans) + 1)), default=0)
            assert (shard in due) == (shard in without and most >= PATIENCE_US)
        before = without


def test_an_owner_that_comes_and_dies_again_keeps_nobody_from_standing_in() -> None:
    unowned, shard, second = UnownedShards(), ShardId(0), 1_000_000
    first_due = 0
    for at in range(200):
        is_owned = at % 10 < 2  # a term, after a start that ends in a crash
        due = unowned.look([] if is_owned else [shard], at * second, PATIENCE_US, APART_US)
        assert not (is_owned and due)
        first_due = first_due or (at if due else 0)
    assert 60 < first_due < 190
    for at in range(200, 300):  # one that stays: all is as at the start
        unowned.look([], at * second, PATIENCE_US, APART_US)
    for at in range(300, 360):
        assert unowned.look([shard], at * second, PATIENCE_US, APART_US) == set()
    assert unowned.look([shard], 360 * second, PATIENCE_US, APART_US) == {shard}


def test_a_shard_that_stays_without_an_owner_is_due_in_time() -> None:
    unowned = UnownedShards()
    for now_us in range(5, PATIENCE_US, APART_US):
        assert unowned.look([ShardId(0)], now_us, PATIENCE_US, APART_US) == set()
    both = [ShardId(0), ShardId(1)]
    assert unowned.look(both, 4 + PATIENCE_US, PATIENCE_US, APART_US) == set()
    assert unowned.look(both, 5 + PATIENCE_US, PATIENCE_US, APART_US) == {ShardId(0)}


def test_a_time_in_which_nobody_looked_or_wrote_makes_no_owner_absent() -> None:
    """The store was away, and no owner could renew its term: the first look sees none."""
    unowned = UnownedShards()
    assert unowned.look([ShardId(0)], 0, PATIENCE_US, APART_US) == set()
    assert unowned.look([ShardId(0)], PATIENCE_US, PATIENCE_US, APART_US) == set()
    last_us = 2 * PATIENCE_US - APART_US
    for now_us in range(PATIENCE_US, last_us + 1, APART_US):
        assert unowned.look([ShardId(0)], now_us, PATIENCE_US, APART_US) == set()
    unowned.forget()  # it takes no writes
    assert unowned.look([ShardId(0)], last_us + APART_US, PATIENCE_US, APART_US) == set()


# -- who is given what -----------------------------------------------------------------------


@given(queued(), TAKERS, ROOMS)
def test_nobody_gets_more_than_slots_and_caps_allow(
    jobs: list[QueuedJob], takers: list[Taker], rooms: dict[TenantId, int]
) -> None:
    dealt = deal(jobs, takers, rooms, PullTurns())
    assert len({job.id for job, _ in dealt}) == len(dealt)
    for number, count in Counter(number for _, number in dealt).items():
        assert count <= takers[number].free
    for tenant, count in Counter(job.tenant for job, _ in dealt).items():
        assert count <= rooms[tenant]
    for job, number in dealt:
        assert takers[number].may_run(job.tenant, job.type)


@given(queued(), TAKERS, ROOMS)
def test_no_slot_stays_free_that_somebody_could_use(
    jobs: list[QueuedJob], takers: list[Taker], rooms: dict[TenantId, int]
) -> None:
    dealt = deal(jobs, takers, rooms, PullTurns())
    given_out = {job.id for job, _ in dealt}
    used = Counter(number for _, number in dealt)
    got = Counter(job.tenant for job, _ in dealt)
    for job in jobs:
        if job.id in given_out or got[job.tenant] >= rooms.get(job.tenant, 0):
            continue
        for number, taker in enumerate(takers):
            assert used[number] >= taker.free or not taker.may_run(job.tenant, job.type)


@given(queued(), st.integers(0, 20))
def test_tenants_take_turns(jobs: list[QueuedJob], slots: int) -> None:
    takers = [Taker(frozenset(map(TypeId, range(4))), None, slots)]
    dealt = deal(jobs, takers, {TenantId(tenant): 100 for tenant in range(5)}, PullTurns())
    had, got = Counter(job.tenant for job in jobs), Counter(job.tenant for job, _ in dealt)
    for count in got.values():
        for other, waiting in had.items():
            assert got[other] >= min(count - 1, waiting), other


def test_a_deep_queue_takes_nobodys_turn() -> None:
    deep, shallow = [new_job() for _ in range(9)], [new_job(tenant=TenantId(2)) for _ in range(2)]
    takers = [Taker(frozenset([TypeId(1)]), None, 4)]
    dealt = deal([*deep, *shallow], takers, {TenantId(1): 100, TenantId(2): 100}, PullTurns())
    assert [job.tenant for job, _ in dealt] == [1, 2, 1, 2]


def test_slots_that_come_free_one_by_one_go_round() -> None:
    """Whoever has the most, and the lowest number, and slots of its own besides."""
    jobs = [new_job(tenant=TenantId(n)) for n in (1, 2, 3) for _ in range(9)]
    takers = [
        Taker(frozenset([TypeId(1)]), None, 1),
        Taker(frozenset([TypeId(1)]), frozenset([TenantId(3)]), 1),
    ]
    turns, got = PullTurns(), Counter[TenantId]()
    for _ in range(12):
        dealt = deal(jobs, takers, dict.fromkeys(map(TenantId, (1, 2, 3)), 100), turns)
        got.update(job.tenant for job, number in dealt if number == 0)
        taken = {job.id for job, _ in dealt}
        jobs = [job for job in jobs if job.id not in taken]
    assert sum(got.values()) == 12
    assert min(got[TenantId(1)], got[TenantId(2)]) >= 4


@given(queued(), TAKERS, ROOMS, st.sets(TENANTS))
def test_what_is_read_is_bounded_and_of_use(
    jobs: list[QueuedJob], takers: list[Taker], rooms: dict[TenantId, int], held: set[TenantId]
) -> None:
    heads = [StreamKey(job.tenant, SHORT, job.type, job.priority) for job in jobs]
    asks = asks_for(heads, takers, rooms, lambda key: key.tenant in held)
    assert sum(ask.limit for ask in asks) <= ROWS_MAX
    for key, limit in asks:
        assert key.tenant not in held
        assert 1 <= limit <= rooms[key.tenant]
        assert any(taker.may_run(key.tenant, key.type) for taker in takers)


def test_very_many_streams_are_read_a_part_at_a_time() -> None:
    heads = [StreamKey(TenantId(n), SHORT, TypeId(1), 5) for n in range(1000)]
    takers = [Taker(frozenset([TypeId(1)]), None, 5000)]
    rooms = {key.tenant: 1 << 60 for key in heads}
    asks = asks_for(heads, takers, rooms, lambda key: False)
    assert len(asks) == sum(ask.limit for ask in asks) == ROWS_MAX


def test_a_tenant_with_many_streams_is_read_no_further_than_the_bound() -> None:
    heads = [StreamKey(TenantId(1), SHORT, TypeId(1), n) for n in range(20)]
    takers = [Taker(frozenset([TypeId(1)]), None, 5000)]
    asks = asks_for(heads, takers, {TenantId(1): 1 << 60}, lambda key: False)
    assert {ask.limit for ask in asks} == {ROWS_MAX // 20}


def test_of_jobs_with_limits_one_of_a_tenant_starts_at_a_time() -> None:
    limited = [new_job(limits=b"[]") for _ in range(3)]
    other, plain = new_job(tenant=TenantId(2), limits=b"[]"), [new_job(), new_job()]
    full = limited[0].id
    found = startable([*limited, other, *plain], lambda job: job.id != full)
    assert found == [limited[1], other, *plain]
