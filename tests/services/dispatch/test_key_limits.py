"""Limits by key with a real store: so many at once, across owners, and back when one ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.services.platform_room import (
    QUICK,
    Hand,
    add_tenant,
    holding,
    kill,
    new,
    open_pair,
    owner_on,
    owns_all,
    stopped,
    stored,
    submit,
    until,
)

from fairway.core.backlog import start_rates
from fairway.core.backlog.key_limits import KeyLimit, pack
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease

MUTEX = pack([KeyLimit("customer-1", 1)])


def ids(leases: Sequence[Lease]) -> list[str]:
    return [lease.job.id for lease in leases]


async def test_a_mutex_is_handed_on_from_run_to_run(platform: Platform, tenant: Tenant) -> None:
    jobs = await submit(platform, tenant, *[new(limits=MUTEX)] * 3, new())
    hand = Hand(platform)
    leases = await hand.take(2)  # the plain one is in nobody's way
    assert sorted(ids(leases)) == sorted([jobs[0], jobs[3]])
    mine = next(lease for lease in leases if lease.job.limits)
    assert (await stored(platform, mine.job.id))[0] is State.RUNNING  # the next owner must know
    await hand.report(*map(hand.done, leases))
    for follower in jobs[1:3]:
        (mine,) = await hand.take(1)
        assert mine.job.id == follower
        await hand.report(hand.done(mine))


async def test_a_failed_run_and_a_lost_one_give_their_place_back(
    platform: Platform, tenant: Tenant
) -> None:
    jobs = await submit(platform, tenant, new(limits=MUTEX), new(limits=MUTEX))
    hand = Hand(platform)
    (first,) = await hand.take(1)
    failed = Outcome(OutcomeKind.FAILED, 5, failure=FailureClass.PERMANENT, error=b"{}")
    await hand.report(hand.done(first, failed))
    (second,) = await hand.take(1)
    assert ids([first, second]) == jobs
    (third_id,) = await submit(platform, tenant, new(limits=MUTEX))
    await hand.say(goodbye=True)  # it dies with the job
    (again,) = await Hand(platform).take(1)
    assert again.job.id in (second.job.id, third_id)


async def test_a_mutex_outlives_its_owner(database_url: str) -> None:
    """The short pool grants before it writes: not what has limits."""
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    (held, waiting) = await submit(first, tenant, *[new(limits=MUTEX)] * 2)
    worker = Hand(first)
    (lease,) = await worker.take(1)
    assert lease.job.id == held
    await kill(first)
    await until(lambda: owns_all(second))
    other, worker.platform = Hand(second), second
    assert await other.say(hello=True) is not None
    news = await other.say(wait_seconds=0.3)
    assert news is not None
    assert news.leases == []  # before the worker that runs it was heard
    await worker.say(hello=True, running=[])
    await until(lambda: second.dispatcher.lease_on(held) is None)
    taken = await other.take(1)
    assert taken[0].job.id in (held, waiting)
    await stopped(second)


async def test_cancelled_while_it_waits_for_its_key(platform: Platform, tenant: Tenant) -> None:
    jobs = await submit(platform, tenant, *[new(limits=MUTEX)] * 3)
    hand = Hand(platform)
    (first,) = await hand.take(1)
    await platform.control.cancel(tenant.id, jobs[1])
    await hand.report(hand.done(first))
    (next_one,) = await hand.take(1)
    assert next_one.job.id == jobs[2]


async def test_so_many_start_in_a_while(platform: Platform, tenant: Tenant) -> None:
    """Nobody calls for it: the while is over, and the next start."""
    rate = pack([KeyLimit("mail", 2, 400)])
    await submit(platform, tenant, *[new(limits=rate)] * 5)
    hand, starts_us = Hand(platform), list[int]()
    news = await hand.say(hello=True)
    while len(starts_us) < 5:
        assert news is not None
        starts_us += [lease.granted_us for lease in news.leases]
        reports = [hand.done(lease) for lease in news.leases]
        news = await hand.say(reports=reports, wait_seconds=0.2)
    for start_us in starts_us:
        assert sum(0 <= other_us - start_us < 400_000 for other_us in starts_us) <= 2


async def test_a_new_owner_keeps_the_rate(database_url: str) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    rate = pack([KeyLimit("mail", 1, 1500)])
    await submit(first, tenant, *[new(limits=rate)] * 2)
    hand = Hand(first)
    (lease,) = await hand.take(1)
    await hand.report(hand.done(lease))
    await kill(first)
    await until(lambda: owns_all(second))
    (after,) = await Hand(second).take(1)
    assert after.job.id != lease.job.id
    assert after.granted_us - lease.granted_us >= 1_500_000
    await stopped(second)


async def test_a_hand_over_brings_along_what_started_of_late(database_url: str) -> None:
    """A rate that is used up stays so; of another key the next owner knows that it is not."""
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    used, other = (pack([KeyLimit(key, 1, 3_600_000)]) for key in ("mail", "sms"))
    await submit(first, tenant, *[new(limits=used)] * 2)
    hand = Hand(first)
    (lease,) = await hand.take(1)
    await hand.report(hand.done(lease))
    await first.let_go()
    await until(lambda: owns_all(second))
    (free,) = await submit(second, tenant, new(limits=other))
    heir = Hand(second)
    assert ids(await heir.take(1)) == [free]
    news = await heir.say(wait_seconds=0.2)
    assert news is not None
    assert news.leases == []
    await stopped(first)
    await stopped(second)


async def taken_and_let_go(platform: Platform) -> None:
    """Another server takes the shard and lets it go at once: it is lost here, and won again."""
    ((shard, term),) = platform.dispatcher.terms().items()
    async with platform.database.background() as connection:
        await connection.execute(
            "UPDATE shards SET term = term + 1, owner = 'another', expires_at = '-infinity'"
        )
    await until(lambda: (platform.dispatcher.term_of(shard) or term) > term)
    await until(lambda: owns_all(platform))


async def test_a_shard_that_is_won_again_knows_what_runs(database_url: str) -> None:
    patient = replace(QUICK, lease_seconds=dict.fromkeys(("short", "medium", "long"), 60.0))
    async with owner_on(database_url, patient) as platform:
        tenant = await add_tenant(platform)
        _, waiting = await submit(platform, tenant, *[new(limits=MUTEX)] * 2)
        hand = Hand(platform)
        (lease,) = await hand.take(1)
        await taken_and_let_go(platform)
        assert await hand.say(hello=True, running=[holding(lease)]) is not None
        news = await hand.say(wait_seconds=0.2)
        assert news is not None
        assert news.leases == []
        await hand.report(hand.done(lease))
        (after,) = await hand.take(1)
        assert after.job.id == waiting


async def test_a_rate_of_an_earlier_term_keeps_nobody_asleep(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its timer was for when the hour is over; the next owner waits for a minute at most."""
    monkeypatch.setattr(start_rates, "CLOSED_US_MAX", 200_000)
    rate = pack([KeyLimit("mail", 1, 3_600_000)])
    _, waiting = await submit(platform, tenant, *[new(limits=rate)] * 2)
    hand = Hand(platform)
    (lease,) = await hand.take(1)
    await hand.report(hand.done(lease))
    await until(lambda: bool(platform.dispatcher.backlog.limited._timers))
    await taken_and_let_go(platform)
    (after,) = await hand.take(1)
    assert after.job.id == waiting
