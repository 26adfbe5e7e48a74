"""What many failures lead to: circuits, quarantine, budgets, throttles; on a real server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from tests.services.platform_room import (
    Hand,
    add_tenant,
    new,
    owner_on,
    sight,
    stored,
    submit,
    told_events,
    until,
)

from fairway.core.failure.circuits import CircuitSettings
from fairway.core.failure.quarantine import QuarantineSettings
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.failure.failure_policy import TypeKey
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease
from fairway.store import restraints

SOON = CircuitSettings(rest_us=300_000)


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    async with owner_on(database_url) as platform:
        platform.dispatcher.failure_policy.circuit_settings = SOON
        yield platform


@pytest.fixture
async def tenant(platform: Platform) -> Tenant:
    return await add_tenant(platform)


def failed(failure: FailureClass, error: bytes = b"{}", delay_ms: int = 0) -> Outcome:
    return Outcome(OutcomeKind.FAILED, 10, failure=failure, error=error, delay_ms=delay_ms)


AWAY = failed(FailureClass.DEPENDENCY, b'{"dependency":"stripe","message":"503"}')
BROKEN = failed(FailureClass.APP_ERROR, b'{"type":"ValueError","message":"no"}', delay_ms=1)
CRASHED = failed(FailureClass.WORKER_CRASH)


async def work(
    hand: Hand, answer: Callable[[Lease], Outcome | None], until_calls: int, seconds: float = 20
) -> list[Lease]:
    """Run what comes, each with this outcome, until so many runs were made or nothing comes."""
    ran: list[Lease] = []
    waiting = (await hand.say(hello=True, running=[])).leases  # type: ignore[union-attr]
    idle = 0
    async with asyncio.timeout(seconds):
        while len(ran) < until_calls:
            words = [hand.done(lease, answer(lease)) for lease in waiting]
            ran += waiting
            news = await hand.say(reports=words, wait_seconds=0.5)
            assert news is not None
            waiting = news.leases
            idle = 0 if waiting or words else idle + 1
            if idle > 2:
                break
    return ran


async def told(platform: Platform, tenant: Tenant) -> list[str]:
    """Kinds of the tenant's events, oldest first."""
    return [event.kind for event in await told_events(platform, tenant)]


async def counters(
    platform: Platform, tenant: Tenant, jobs: Sequence[str]
) -> Counter[tuple[int, ...]]:
    async with platform.database.background() as connection:
        rows = await connection.fetch(
            "SELECT state, attempts, failures FROM jobs WHERE tenant = $1 AND id = ANY($2::uuid[])",
            tenant.id,
            jobs,
        )
    return Counter((row["state"], row["attempts"], *(row["failures"] or ())) for row in rows)


# -- circuits ------------------------------------------------------------------------------------


async def test_a_dependency_that_is_away_parks_its_jobs_and_theirs_alone(
    platform: Platform, tenant: Tenant
) -> None:
    jobs = await submit(platform, tenant, *[new("pay")] * 300)
    hand = Hand(platform, types=("pay", "work"), short=20)
    ran = await work(hand, lambda lease: AWAY, until_calls=60)
    in_vain = len(ran)
    assert in_vain <= 60, "as many as prove it, those under way, and a few probes"
    await until(lambda: _is_told(platform, tenant, "circuit.opened"))
    counts = await counters(platform, tenant, jobs)
    assert sum(counts.values()) == 300
    assert all(state in (State.QUEUED, State.SCHEDULED) for state, *_ in counts)
    assert all(attempts == 0 for _, attempts, *_ in counts), "no attempt is used"
    counted = sum(count for key, count in counts.items() if len(key) > 2)
    assert counted < SOON.calls_min, "what failed after it opened is not even counted"

    (other,) = await submit(platform, tenant, new("work"))
    await work(hand, lambda lease: None, until_calls=1)
    assert (await stored(platform, other))[0] is State.SUCCEEDED, "other types run on"

    ran = await work(hand, lambda lease: None, until_calls=300, seconds=30)
    assert {lease.job.id for lease in ran} >= {*jobs} - {other}
    await until(lambda: _all_succeeded(platform, jobs))
    assert "circuit.closed" in await told(platform, tenant)
    async with platform.database.background() as connection:
        assert await restraints.all_circuits(connection) == {}


async def _is_told(platform: Platform, tenant: Tenant, kind: str) -> bool:
    return kind in await told(platform, tenant)


async def _all_succeeded(platform: Platform, jobs: Sequence[str]) -> bool:
    async with platform.database.background() as connection:
        left = await connection.fetchval(
            "SELECT count(*) FROM jobs WHERE id = ANY($1::uuid[]) AND state <> 3", jobs
        )
    return bool(left == 0)


async def test_one_tenants_dependency_holds_nobody_else(platform: Platform, tenant: Tenant) -> None:
    other = await add_tenant(platform, "other")
    await submit(platform, tenant, *[new("pay")] * 30)
    hand = Hand(platform, types=("pay",), short=10)
    await work(hand, lambda lease: AWAY, until_calls=20)
    theirs = await submit(platform, other, *[new("pay")] * 5)
    await work(hand, lambda lease: None if lease.job.tenant == other.id else AWAY, until_calls=5)
    assert (await counters(platform, other, theirs))[State.SUCCEEDED, 1] == 5


async def test_the_next_owner_holds_the_same_jobs_back(database_url: str) -> None:
    async with owner_on(database_url) as first:
        tenant = await add_tenant(first)
        await submit(first, tenant, *[new("pay")] * 30)
        hand = Hand(first, types=("pay",), short=10)
        await work(hand, lambda lease: AWAY, until_calls=15)
        await until(lambda: _is_told(first, tenant, "circuit.opened"))
    async with owner_on(database_url) as second:
        await until(lambda: bool(second.dispatcher.backlog.runnable.holds))
        pay = second.directory.type_ids["pay"]
        circuits = second.dispatcher.failure_policy.circuits.of_type(tenant.id, pay)
        assert circuits["stripe"].is_open


# -- quarantine ----------------------------------------------------------------------------------


async def test_a_type_that_mostly_fails_gets_two_tries(platform: Platform, tenant: Tenant) -> None:
    jobs = await submit(platform, tenant, *[new("bad")] * 60)
    hand = Hand(platform, types=("bad", "work"), short=20)
    ran = await work(hand, lambda lease: BROKEN, until_calls=120, seconds=30)
    await until(lambda: _is_told(platform, tenant, "quarantine.imposed"))
    assert max(Counter(lease.job.id for lease in ran).values()) <= 2
    counts = await counters(platform, tenant, jobs)
    assert counts[State.DEAD, 2, 2, 0, 0, 0, 0] == 60
    record = (await sight(platform, tenant, jobs[-1])).record
    assert record.error is not None
    assert b'"reason":"quarantined"' in record.error

    await submit(platform, tenant, *[new("bad")] * 5)
    await work(hand, lambda lease: None, until_calls=5)
    await until(lambda: _is_told(platform, tenant, "quarantine.lifted"))
    async with platform.database.background() as connection:
        assert await restraints.all_quarantines(connection) == {}


async def test_deploys_and_crashes_quarantine_nothing(platform: Platform, tenant: Tenant) -> None:
    await submit(platform, tenant, *[new("work")] * 40)
    handed_back = Outcome(OutcomeKind.RETURNED, 10)
    hand = Hand(platform, short=40)
    await work(hand, lambda lease: handed_back, until_calls=400)
    await work(hand, lambda lease: CRASHED, until_calls=80)
    hand = Hand(platform, short=40)
    await hand.take(40)
    await hand.say(goodbye=True)  # the process ends with all of it
    assert platform.dispatcher.failure_policy.quarantines == {}


async def test_a_person_may_lift_it(platform: Platform, tenant: Tenant) -> None:
    await submit(platform, tenant, *[new("bad")] * 30)
    hand = Hand(platform, types=("bad",), short=20)
    await work(hand, lambda lease: BROKEN, until_calls=60)
    key = TypeKey(tenant.id, platform.directory.type_ids["bad"])
    quarantine = platform.dispatcher.failure_policy.quarantines[key]
    await until(lambda: _is_told(platform, tenant, "quarantine.imposed"))
    assert quarantine.is_on
    async with platform.database.background() as connection:
        assert await restraints.lift_quarantine(connection, *key)
    await until(lambda: not quarantine.is_on)


# -- budgets and throttles -----------------------------------------------------------------------


async def test_retries_stay_within_twice_the_dispatches(platform: Platform, tenant: Tenant) -> None:
    """Every job fails, again and again, and asks for no pause; quarantine would hide the budget."""
    platform.dispatcher.failure_policy.quarantine_settings = QuarantineSettings(runs_min=10**9)
    jobs = await submit(platform, tenant, *[new("bad")] * 100)
    hand = Hand(platform, types=("bad",), short=50)
    ran = await work(hand, lambda lease: BROKEN, until_calls=500, seconds=40)
    retries = len(ran) - 100
    assert 100 <= retries <= 200
    counts = await counters(platform, tenant, jobs)
    assert sum(count for (state, *_), count in counts.items() if state == State.DEAD) == 100
    reasons = Counter[bytes]()
    for job in jobs:
        error = (await sight(platform, tenant, job)).record.error or b""
        reasons[b"retry_budget_exhausted" if b"retry_budget_exhausted" in error else b"other"] += 1
    assert reasons[b"retry_budget_exhausted"] > 0


async def test_who_keeps_killing_workers_is_throttled(platform: Platform, tenant: Tenant) -> None:
    jobs = await submit(platform, tenant, *[new("bad")] * 20)
    hand = Hand(platform, types=("bad", "work"), short=1)
    ran = await work(hand, lambda lease: CRASHED, until_calls=200, seconds=30)
    assert len(ran) < 50, "20 jobs might have killed 200"
    await until(lambda: _is_told(platform, tenant, "recycling.throttled"))
    dead = [job for job in jobs if (await stored(platform, job))[0] is State.DEAD]
    for job in dead:
        record = (await sight(platform, tenant, job)).record
        assert (record.attempts, record.deliveries) == (0, 10)
    other = await add_tenant(platform, "other")
    (theirs,) = await submit(platform, other, new("work"))
    await work(hand, lambda lease: None, until_calls=1)
    assert (await stored(platform, theirs))[0] is State.SUCCEEDED
