"""Limits by key while shards come and go: held across owners, nobody asleep, nothing left behind.

The machine plays two tenants in two shards, workers, and other servers that take a shard for a
while: what runs then runs on, and is restored with the shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from msgspec.structs import replace
from tests.core.backlog.test_backlog import POOL, START_MS, exhaust, make
from tests.core.backlog.test_limited import LARGE, TYPES, World, limited_job, rated_job

from fairway.core.backlog import limited, start_rates
from fairway.core.backlog.key_limits import KeyLimit, pack, unpack
from fairway.core.backlog.limited import LOOKS_AT_ONCE, TIMERS_KEPT
from fairway.core.backlog.streams import WindowLimits, key_of
from fairway.core.fair_share.fairness import Entitlement, PoolShare, Running, ShareSettings
from fairway.core.ids import ShardId, TenantId, make_job_id, shard_of
from fairway.core.job import QueuedJob
from fairway.core.ownership.tenant_shards import TenantShards

SHARDS = 2
KEYS = ["a", "a", "b", "b", *(f"k{number}" for number in range(8))]  # few meet often
MOSTS = st.integers(1, 3)
AT_ONCE = st.builds(KeyLimit, st.sampled_from(KEYS), MOSTS)
IN_A_WHILE = st.builds(KeyLimit, st.sampled_from(KEYS), MOSTS, st.sampled_from([400, 1600, 5000]))
LIMITS = st.lists(
    st.one_of(AT_ONCE, AT_ONCE, IN_A_WHILE),
    min_size=1,
    max_size=3,
    unique_by=lambda limit: (limit.key, limit.per_ms),
)


def in_its_shard(job: QueuedJob, number: int) -> QueuedJob:
    shard = TenantShards(SHARDS).of(job.tenant)
    return replace(job, id=make_job_id(shard, START_MS, number, 0))


def lose(world: World, shard: ShardId) -> list[QueuedJob]:
    """Another server takes it, as `Dispatcher.close_shard` says; answers what runs there."""
    world.backlog.forget_shard(shard)
    gone = [job for job in world.running.values() if shard_of(job.id) == shard]
    for job in gone:
        world.limit_ended(job)
    return gone


def win(world: World, shard: ShardId, runs: list[QueuedJob], count: int = SHARDS) -> None:
    """It is ours again: what ran is restored, what waits is met in the store."""
    world.backlog.limited.owner_since(shard, TenantShards(count), world.now_us)
    for job in runs:
        world.backlog.limited.runs(job, world.now_us - 1000)
    heads = {key_of(job): job.id for job in sorted(world.queued.values(), reverse=True)}
    for key, first in heads.items():
        if shard_of(first) == shard:
            world.backlog.noticed(key, first)
    world.read()


class LimitsOverTerms(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(LARGE)
        self.number = 0
        self.starts: list[tuple[TenantId, KeyLimit, int]] = []  # whose, of what, when
        self.since_us = dict.fromkeys((ShardId(0), ShardId(1)), -(10**9))

    def used(self, tenant: TenantId, limit: KeyLimit, late_us: int = 0) -> int:
        """By what happened: runs of the key now, or its starts within the while."""
        if limit.per_ms:
            since_us = self.world.now_us - limit.per_ms * 1000 - late_us
            same = [one for one in self.starts if one[0] == tenant and one[1].key == limit.key]
            return sum(one.per_ms == limit.per_ms and at > since_us for _, one, at in same)
        running = [one for one in self.world.running.values() if one.tenant == tenant]
        return sum(
            (one.key, one.per_ms) == (limit.key, 0)
            for job in running
            for one in unpack(job.limits or b"[]")
        )

    def take(self, tenant: int) -> QueuedJob | None:
        job = self.world.backlog.take(POOL, tenant, TYPES, self.world.running)
        if job is None:
            return None
        for limit in unpack(job.limits or b"[]"):
            assert self.used(job.tenant, limit) < limit.most, "beyond a limit"
        assert self.world.queued.pop(job.id) == job
        self.world.running[job.id] = job
        limits = unpack(job.limits or b"[]")
        self.starts += [(job.tenant, limit, self.world.now_us) for limit in limits]
        return job

    def take_all(self) -> None:
        for tenant in (1, 2):
            while self.take(tenant) is not None:
                pass

    @rule(
        limits=st.one_of(st.none(), LIMITS, LIMITS, LIMITS),
        tenant=st.integers(1, 2),
        times=st.integers(1, 4),
    )
    def comes(self, limits: list[KeyLimit] | None, tenant: int, times: int) -> None:
        packed = pack(limits) if limits else None
        for _ in range(times):
            self.number += 1
            job = make(self.number, tenant=TenantId(tenant), limits=packed)
            self.world.arrive(in_its_shard(job, self.number))

    @rule(tenant=st.integers(1, 2))
    def starts_one(self, tenant: int) -> None:
        self.take(tenant)

    @rule()
    def starts_all(self) -> None:
        self.take_all()

    @precondition(lambda self: self.world.running)
    @rule(data=st.data())
    def ends(self, data: st.DataObject) -> None:
        self.world.end(data.draw(st.sampled_from(sorted(self.world.running.values()))))

    @precondition(lambda self: self.world.queued)
    @rule(data=st.data())
    def is_cancelled(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.world.queued.values())))
        del self.world.queued[job.id]
        self.world.backlog.remove(job.id, key_of(job))

    @rule(ms=st.sampled_from([1, 50, 333, 1600]))
    def time_passes(self, ms: int) -> None:
        self.world.now_us += ms * 1000
        self.world.backlog.recheck_limits(self.world.now_us)
        self.world.read()

    @rule()
    def streams_are_pruned(self) -> None:
        exhaust(self.world.backlog.pruning())

    @rule(shard=st.sampled_from([ShardId(0), ShardId(1)]), ms=st.sampled_from([0, 700]))
    def shard_goes_and_comes(self, shard: ShardId, ms: int) -> None:
        runs = lose(self.world, shard)
        self.time_passes(ms)
        win(self.world, shard, runs)
        self.since_us[shard] = self.world.now_us
        self.take_all()

    @rule()
    def nobody_sleeps(self) -> None:
        """Left alone for long enough, whoever still waits has a limit that is full."""
        for _ in range(len(self.world.queued) + 3):
            self.world.upkeep()
            self.take_all()
        self.time_passes(20)  # no timer is later than that
        self.take_all()
        for job in self.world.queued.values():
            assert any(
                self.used(job.tenant, limit, late_us=20_000 + limit.per_ms * 1000 // 16)
                >= limit.most
                or self.is_closed(job.tenant, limit)
                for limit in unpack(job.limits or b"[]")
            ), f"it sleeps though it could start: {job}"

    def is_closed(self, tenant: TenantId, limit: KeyLimit) -> bool:
        since_us = self.since_us[TenantShards(SHARDS).of(tenant)]
        return self.world.now_us < since_us + limit.per_ms * 1000 + 20_000

    def teardown(self) -> None:
        for _ in range(3 * len(self.world.queued) + 12):
            for job in list(self.world.running.values()):
                self.world.end(job)
            self.world.upkeep()
            self.take_all()
        assert self.world.queued == {}
        for job in list(self.world.running.values()):
            self.world.end(job)
        for _ in range(16):  # the longest while, and what is forgotten in parts
            self.world.upkeep()
        assert left_behind(self.world) == [], "something is kept of keys that nobody uses"


def left_behind(world: World) -> list[Any]:
    """What the backlog remembers of keys."""
    own = world.backlog.limited
    parked, counts, rates = own._parked, own._counts, own._counts.rates
    books = [own._timers, own._timed, own._unsure, own._to_ask, own._stalled]
    books += [counts.running, counts.key_of, counts.keys_of]
    books += [parked.names, parked._under, parked.rooms, rates._windows]
    return [book for book in books if book] + [one for one in (rates._keys, parked._bytes) if one]


LimitsOverTerms.TestCase.settings = settings(max_examples=150, stateful_step_count=25)
TestLimitsOverTerms = LimitsOverTerms.TestCase


def test_a_timer_of_an_earlier_term_keeps_nobody_asleep() -> None:
    """After a change of owner a rate is closed for a minute at most, also where it was ours."""
    world, hour_ms = World(), 3_600_000
    world.arrive(*[rated_job(n, "a", 1, hour_ms) for n in range(2)])
    assert len(world.take_all()) == 1
    runs = lose(world, ShardId(0))
    win(world, ShardId(0), [], count=1)  # it ended meanwhile, elsewhere
    assert len(runs) == 1
    assert world.take_all() == []
    world.now_us += start_rates.CLOSED_US_MAX
    assert world.backlog.recheck_limits(world.now_us) == {(POOL, TenantId(1))}
    assert len(world.take_all()) == 1


def test_a_shard_that_goes_takes_nothing_from_tenants_of_others() -> None:
    """Their streams may be empty: what stepped aside is theirs all the same."""
    world = World()
    jobs = [in_its_shard(limited_job(n, ("a", 1)), n) for n in range(3)]
    world.arrive(*jobs)
    assert world.take_all() == jobs[:1]
    exhaust(world.backlog.pruning())
    world.backlog.forget_shard(ShardId(0))  # tenant 1 is in shard 1
    for job in jobs:
        assert list(world.running.values()) == [job]
        world.end(job)
        world.take_all()
    assert world.queued == {}


def test_who_says_more_does_not_wait_for_one_that_says_less() -> None:
    world = World()
    jobs = [limited_job(n, ("a", 3)) for n in range(3)]
    less, more = limited_job(3, ("a", 1)), limited_job(4, ("a", 3))
    world.arrive(*jobs, less, more)
    assert world.take_all() == jobs
    world.end(jobs[0])
    assert world.take_all() == [more]
    for job in (jobs[1], jobs[2], more):
        world.end(job)
    assert world.take_all() == [less]


@pytest.mark.parametrize("keys", [1, 3 * LOOKS_AT_ONCE], ids=["one key", "a key each"])
def test_very_many_are_let_out_in_parts(keys: int) -> None:
    """All rates of a shard open at the same moment after a change of owner."""
    world, count = World(), 3 * LOOKS_AT_ONCE
    world.backlog.limited.owner_since(ShardId(0), TenantShards(1), 0)
    world.arrive(*[rated_job(n, f"{n % keys}", 1_000_000, 500) for n in range(count)])
    assert world.take_all() == []
    for _ in range(count // 128 + 1):  # so many step aside at a time
        world.backlog.recheck_limits(world.now_us)
        world.take_all()
    world.now_us = 500_000
    most = 0
    while len(world.running) < count:
        assert world.backlog.limited.rest_us(world.now_us) <= limited.TIMER_US_MIN
        world.backlog.recheck_limits(world.now_us)
        taken = len(world.take_all())
        most, world.now_us = max(most, taken), world.now_us + limited.TIMER_US_MIN
        assert world.now_us < 1_000_000
    assert most <= LOOKS_AT_ONCE


def test_a_tenant_with_very_many_keys_leaves_nothing_behind() -> None:
    """Runs, rates, and jobs that stepped aside: bounded while they are there, gone afterwards."""
    world, keys = World(), 2_500
    world.arrive(*[limited_job(n, (f"{n % keys}", 1)) for n in range(2 * keys)])
    while world.queued:
        world.take_all()
        for job in list(world.running.values()):
            world.end(job)
        world.backlog.recheck_limits(world.now_us)
    world.arrive(*[rated_job(n, f"{n}", 1, 1000) for n in range(2 * keys, 3 * keys)])
    world.take_all()
    for job in list(world.running.values()):
        world.end(job)
    assert world.backlog.limited._counts.rates._keys == keys
    world.now_us += 1_000_000
    for _ in range(4):
        world.upkeep()
    assert (world.queued, left_behind(world)) == ({}, [])


def test_timers_that_nobody_waits_for_any_more_are_dropped() -> None:
    """A tenant fills a key for a day, hands one more in and cancels it; again and again."""
    world, day_ms = World(), 24 * 3_600_000
    for number in range(2 * TIMERS_KEPT):
        first, second = (rated_job(2 * number + n, f"{number}", 1, day_ms) for n in (0, 1))
        world.arrive(first, second)
        assert world.take_all() == [first]
        world.end(first)
        del world.queued[second.id]
        world.backlog.remove(second.id, key_of(second))
    world.upkeep()
    assert len(world.backlog.limited._timers) == len(world.backlog.limited._timed) <= TIMERS_KEPT


def test_what_a_tenant_writes_into_its_limits_counts_in_the_windows() -> None:
    world = World(WindowLimits(jobs_total=1000, bytes_total=10_000, jobs_per_stream=500))
    world.arrive(*[limited_job(n, ("k" * 250, 1)) for n in range(100)])
    assert 10_000 <= world.backlog.windows.bytes_held < 11_000
    world.backlog.forget_shard(ShardId(0))
    assert world.backlog.windows.bytes_held == 0


# -- others notice nothing -----------------------------------------------------------------------


SLOTS = 4


class Slots:
    """A pool of four slots: two tenants without limits that never run out, one with full keys."""

    PLAIN = (TenantId(1), TenantId(2))

    def __init__(self, limits: list[list[KeyLimit]]) -> None:
        self.world = World()
        self.share = PoolShare(ShareSettings())
        self.share.set_capacity(SLOTS, 0)
        plain = [make(n, tenant=self.PLAIN[n % 2]) for n in range(400)]
        own = [make(400 + n, tenant=TenantId(3), limits=pack(one)) for n, one in enumerate(limits)]
        self.world.arrive(*plain, *own)
        for tenant in (*self.PLAIN, TenantId(3)):
            self.share.set_entitlement(tenant, Entitlement(weight=10), 0)
            self.share.wake(tenant, 0)
        self.busy: list[tuple[QueuedJob, Running]] = []
        self.granted: list[QueuedJob] = []

    def rounds(self, count: int) -> Iterator[int]:
        """All that run end, and as many start as can: equally long runs, so counts are shares."""
        for _ in range(count):
            self.world.now_us += 100_000
            ending, self.busy = self.busy, []
            for job, running in ending:
                self.world.end(job)
                self.share.finish(running, self.world.now_us)
            for _, tenant in self.world.backlog.recheck_limits(self.world.now_us):
                self.share.wake(tenant, self.world.now_us)
            yield self._grant(SLOTS)

    def _grant(self, free: int) -> int:
        now_us = self.world.now_us
        take = self.world.backlog.taker(
            POOL, TYPES, self.world.running, lambda tenant: self.share.sleep(tenant, now_us), now_us
        )
        granted = self.share.grant(free, take, now_us)
        for job, _ in granted:
            self.world.running[job.id] = self.world.queued.pop(job.id)
        self.busy += granted
        self.granted += [job for job, _ in granted]
        return len(granted)


@settings(max_examples=50, deadline=None)
@given(st.lists(LIMITS, max_size=40), st.integers(1, 30))
def test_others_get_their_part_whatever_limits_a_tenant_has(
    limits: list[list[KeyLimit]], rounds: int
) -> None:
    slots = Slots(limits)
    for granted in slots.rounds(rounds):
        assert granted == SLOTS, "a full key left a slot empty"
        mine, theirs = (
            sum(job.tenant == tenant for job in slots.granted) for tenant in Slots.PLAIN
        )
        assert abs(mine - theirs) <= SLOTS
        limited_ones = len(slots.granted) - mine - theirs
        assert limited_ones <= min(mine, theirs) + SLOTS
