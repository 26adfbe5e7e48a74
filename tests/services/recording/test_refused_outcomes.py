"""A row that the store refuses: its job ends with that reason, and nobody else notices."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace
from tests.postgres import connected
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    Hand,
    add_tenant,
    new,
    owner_on,
    sight,
    stored,
    submit,
    until,
)
from tests.services.refusing import refusing

from fairway.core.ids import ShardId, Term
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform
from fairway.services.recording import refused_outcomes
from fairway.services.sessions.sessions import Lease

MOST_US = (1 << 53) - 1  # what a report may say at most
FATAL = Outcome(OutcomeKind.FAILED, 5, failure=FailureClass.PERMANENT)
RETURNED = Outcome(OutcomeKind.RETURNED, MOST_US)
PATIENT = replaced(QUICK, lease_seconds={}, term_seconds=3.0)  # nobody is lost meanwhile


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    async with owner_on(database_url, PATIENT) as platform:
        yield platform


async def mallory_and(platform: Platform, tenant: Tenant) -> tuple[Hand, Lease, Hand, Lease]:
    """A lease of a tenant whose rows will be refused, and one of another's."""
    mallory = await add_tenant(platform, "mallory")
    await submit(platform, mallory)
    bad_hand = Hand(platform, short=1)
    bad_hand.tenant = mallory.id
    (bad,) = await bad_hand.take()
    await submit(platform, tenant)
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    return bad_hand, bad, hand, lease


async def term_in_store(platform: Platform) -> int:
    async with platform.database.background() as connection:
        term: int = await connection.fetchval("SELECT term FROM shards")
    return term


async def is_dead(platform: Platform, job: str) -> bool:
    return (await stored(platform, job))[0] is State.DEAD


async def reason_of(platform: Platform, lease: Lease) -> tuple[str, str]:
    async with platform.database.background() as connection:
        text = await connection.fetchval("SELECT error FROM jobs WHERE id = $1", lease.job.id)
    error = json.loads(text)
    return error["reason"], error.get("message", "")


async def test_sums_stop_where_numbers_end(platform: Platform, tenant: Tenant) -> None:
    """What a worker says of its runs cannot add up to a row that the store refuses."""
    (job,) = await submit(platform, tenant)
    async with platform.database.background() as connection:
        await connection.execute(
            "UPDATE jobs SET unbilled_us = 9223372036854775807, billed_us = 9223372036854775800"
        )
    hand = Hand(platform, short=1)
    for outcome in (RETURNED, replace(FATAL, ran_us=MOST_US)):
        (lease,) = await hand.take()
        assert await hand.report(hand.done(lease, outcome)) == ({hand.number}, set())
    record = (await sight(platform, tenant, job)).record
    assert (record.state, record.unbilled_us) == (State.DEAD, (1 << 63) - 1)
    assert record.billed_us == (1 << 63) - 1
    assert (record.ran_us or 0) < 60_000_000, "no longer than its lease is old, and some seconds"


async def test_a_run_took_no_longer_than_its_lease_is_old(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    await hand.report(hand.done(lease, ran_us=MOST_US))
    record = (await sight(platform, tenant, job)).record
    assert record.state == State.SUCCEEDED
    assert 0 < (record.ran_us or 0) < 60_000_000


async def test_a_row_refused_for_ever_ends_dead_and_holds_up_nobody(
    platform: Platform, tenant: Tenant
) -> None:
    bad_hand, bad, hand, lease = await mallory_and(platform, tenant)
    one, other = bad_hand.done(bad, FATAL), hand.done(lease, FATAL)
    async with refusing(
        platform, f"NEW.tenant = {bad.job.tenant} AND NEW.history IS DISTINCT FROM OLD.history"
    ):
        await bad_hand.say(reports=[one])
        assert await hand.report(other) == ({other.number}, set())
        assert not await is_dead(platform, bad.job.id), "its neighbour did not wait for it"
        assert await bad_hand.report(one) == ({one.number}, set())
    reason, message = await reason_of(platform, bad)
    assert reason == "refused_by_store"
    assert message.endswith("(failed): not this row (22003)")
    assert await stored(platform, bad.job.id) == (State.DEAD, bad.epoch)
    record = (await sight(platform, tenant, lease.job.id)).record
    assert record.error == b'{"failure":"permanent","reason":"permanent"}'


async def test_a_success_that_the_store_refuses_is_dead_with_the_reason(
    platform: Platform, tenant: Tenant
) -> None:
    bad_hand, bad, hand, lease = await mallory_and(platform, tenant)
    one, other = bad_hand.done(bad), hand.done(lease)
    async with refusing(platform, f"NEW.tenant = {bad.job.tenant} AND NEW.state = 3"):
        await bad_hand.say(reports=[one])
        assert await hand.report(other) == ({other.number}, set())
        assert await bad_hand.report(one) == (set(), {one.number}), "it is not recorded as such"
    assert await is_dead(platform, bad.job.id)
    assert (await reason_of(platform, bad))[0] == "refused_by_store"
    again = bad_hand.done(bad)
    assert await bad_hand.report(again) == (set(), {again.number})


async def test_what_is_refused_in_any_form_is_set_aside(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker is told, a stop does not wait for it, and it ends when the store lets it."""
    monkeypatch.setattr(refused_outcomes, "ASIDE_SECONDS", (0.1,))
    bad_hand, bad, hand, lease = await mallory_and(platform, tenant)
    one, other = bad_hand.done(bad, FATAL), hand.done(lease, FATAL)
    async with refusing(platform, f"NEW.tenant = {bad.job.tenant}"):
        assert await bad_hand.report(one) == (set(), {one.number})
        assert await hand.report(other) == ({other.number}, set())
        assert platform.metrics.registry.get_sample_value("fairway_ends_set_aside_total") == 1
        await asyncio.wait_for(platform.recorder.drain(), 30)
        assert not await is_dead(platform, bad.job.id)
    await until(lambda: is_dead(platform, bad.job.id))
    assert (await reason_of(platform, bad))[0] == "refused_by_store"


async def test_an_end_that_was_set_aside_is_over_once_its_shard_went_and_came_back(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the job may run under another lease, and go well."""
    monkeypatch.setattr(refused_outcomes, "ASIDE_SECONDS", (1.5,))
    (job,) = await submit(platform, tenant)
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    async with refusing(platform, f"NEW.id = '{job}'"):
        await hand.report(hand.done(lease, FATAL))
        await platform.loops["ownership"].stop()
        async with platform.database.background() as connection:
            await connection.execute("UPDATE shards SET term = term + 1")
        platform.dispatcher.close_shard(ShardId(0))
        platform.dispatcher.claim_shard(ShardId(0), Term(await term_in_store(platform)))
    await until(lambda: not platform.recorder.refused_ends.is_aside(job))
    assert not await is_dead(platform, job)


@pytest.mark.parametrize("outcome", [None, FATAL], ids=["success", "failure"])
async def test_a_fault_of_the_whole_store_costs_no_job(
    platform: Platform,
    tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    outcome: Outcome | None,
) -> None:
    """Every end is refused, though a death in short form would be taken: they wait."""
    # Long enough that all were refused before the first is tried again, on a busy machine too.
    monkeypatch.setattr(refused_outcomes, "TRY_AFTER", (0.6,))
    monkeypatch.setattr(refused_outcomes, "PROBE_SECONDS", 0.1)
    count = 2 * refused_outcomes.WIDESPREAD
    await submit(platform, tenant, *[new() for _ in range(count)])
    hand = Hand(platform, short=count)
    leases = await hand.take(count)
    words = [hand.done(lease, outcome) for lease in leases]
    kind = "NEW.state = 3" if outcome is None else "NEW.history IS DISTINCT FROM OLD.history"
    async with refusing(platform, f"OLD.state < 3 AND {kind}", "XX000"):
        await hand.say(reports=words)
        news = await hand.say(wait_seconds=1.5, draining=True)
        assert news is not None
        assert (news.recorded, news.refused) == ([], [])
        await asyncio.wait_for(platform.recorder.drain(), 30)
        assert not await is_dead(platform, leases[0].job.id)
    assert await hand.report(*words) == ({word.number for word in words}, set())
    for lease in leases:
        state, _ = await stored(platform, lease.job.id)
        assert state is (State.SUCCEEDED if outcome is None else State.DEAD)
        if outcome is not None:
            assert (await reason_of(platform, lease))[0] == "permanent"


async def test_many_bad_rows_beside_good_ones_end_dead(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many: as soon as another end is taken, the fault is theirs."""
    monkeypatch.setattr(refused_outcomes, "TRY_AFTER", (0.05,))
    monkeypatch.setattr(refused_outcomes, "PROBE_SECONDS", 0.1)
    mallory = await add_tenant(platform, "mallory")
    count = 2 * refused_outcomes.WIDESPREAD
    await submit(platform, mallory, *[new() for _ in range(count)])
    await submit(platform, tenant)
    hand = Hand(platform, short=count + 1)
    leases = await hand.take(count + 1)
    (good,) = [lease for lease in leases if lease.job.tenant == tenant.id]
    bad = [hand.done(lease) for lease in leases if lease is not good]
    async with refusing(platform, f"NEW.tenant = {mallory.id} AND NEW.state = 3"):
        await hand.say(reports=bad)
        await hand.say(wait_seconds=0.5, draining=True)
        word = hand.done(good)
        recorded, refused = await hand.report(word)
        assert recorded == {word.number}
        assert refused | (await hand.report(*bad))[1] == {one.number for one in bad}
    for one in bad:
        assert await is_dead(platform, one.job)


async def test_a_report_of_a_job_whose_end_is_set_aside_is_refused_at_once(
    platform: Platform, tenant: Tenant
) -> None:
    """The lease was lost, and the loss cannot be written: no hello would change that."""
    (job,) = await submit(platform, tenant, new(pool=MEDIUM))
    hand = Hand(platform, medium=1)
    (lease,) = await hand.take()
    async with refusing(platform, f"NEW.id = '{job}'"):
        platform.dispatcher.lost([lease])
        await until(lambda: platform.recorder.refused_ends.is_aside(job))
        news = await hand.say(reports=[hand.done(lease)], draining=True)
        assert news is not None, "not asked to say hello"
        assert news.refused == [1]


@pytest.mark.parametrize("code", ["40001", "53100", "42501"])
async def test_an_error_that_says_nothing_of_the_row_is_waited_out(
    platform: Platform, tenant: Tenant, code: str
) -> None:
    bad_hand, bad, *_ = await mallory_and(platform, tenant)
    report = bad_hand.done(bad, FATAL)
    async with refusing(platform, f"NEW.tenant = {bad.job.tenant}", code):
        news = await bad_hand.say(reports=[report], wait_seconds=0.6)
        assert news is not None
        assert not news.recorded
        assert not news.refused
        assert not await is_dead(platform, bad.job.id)
    assert await bad_hand.report(report) == ({report.number}, set())
    assert (await reason_of(platform, bad))[0] == "permanent"


@pytest.mark.parametrize("outcome", [None, FATAL], ids=["success", "failure"])
async def test_a_group_that_stands_still_is_not_waited_for(
    platform: Platform, tenant: Tenant, outcome: Outcome | None
) -> None:
    """Somebody holds a row of one tenant's for long: the next ends take another lane."""
    bad_hand, bad, hand, lease = await mallory_and(platform, tenant)
    async with connected(platform.database.dsn) as slow, slow.transaction():
        await slow.fetch("SELECT FROM jobs WHERE id = $1 FOR UPDATE", bad.job.id)
        await bad_hand.say(reports=[bad_hand.done(bad, outcome)])
        report = hand.done(lease, outcome)
        assert await hand.report(report, seconds=5) == ({report.number}, set())
    async with asyncio.timeout(30):
        await platform.recorder.drain()


@pytest.mark.parametrize("kind", [OutcomeKind.SNOOZED, OutcomeKind.RETURNED, OutcomeKind.CANCELLED])
async def test_an_error_is_bounded_whatever_the_outcome(
    platform: Platform, tenant: Tenant, kind: OutcomeKind
) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    error = json.dumps({"message": "m" * 100_000, "stack": "s" * 100_000, "more": "x" * 100_000})
    outcome = Outcome(kind, 5, error=error.encode(), delay_ms=3_600_000)
    await hand.report(hand.done(lease, outcome))
    record = (await sight(platform, tenant, job)).record
    assert 5_000 < len(record.error or b"") < 11_000
    assert len((record.history or [b""])[-1]) < 16_000
