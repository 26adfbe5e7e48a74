"""The recorder on a real store: outcomes survive its absence, and stop at the end of a term."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.postgres import connected
from tests.services.gate import gate_to
from tests.services.platform_room import (
    Hand,
    add_tenant,
    freeze,
    new,
    owner_on,
    sight,
    stored,
    submit,
    until,
)
from tests.services.refusing import refusing

from fairway.core.failure.retry import Decision, DecisionReason
from fairway.core.ids import ShardId
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.failure.failure_policy import tally_of
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import End
from fairway.store import outcomes

HOLD = "SELECT FROM jobs WHERE id::text = ANY($1) FOR UPDATE"


async def test_a_success_is_acknowledged_when_it_is_on_disk(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    report = hand.done(lease, result=b'{"n":1}')
    assert await hand.report(report) == ({report.number}, set())
    seen = (await sight(platform, tenant, job)).record
    assert (seen.state, seen.result, seen.attempts) == (State.SUCCEEDED, b'{"n":1}', 1)


async def test_a_report_heard_twice_is_recorded_once(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    report = hand.done(lease, result=b"1")
    await hand.report(report)
    before = await sight(platform, tenant, job)
    again = replace(report, n=99, result=b"2")
    assert await hand.report(again) == ({99}, set())
    assert await sight(platform, tenant, job) == before


async def test_failures_come_back_after_their_pause(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    failure = Outcome(
        OutcomeKind.FAILED, 10, failure=FailureClass.DEPENDENCY, error=b"{}", delay_ms=50
    )
    await hand.report(hand.done(lease, failure))
    seen = (await sight(platform, tenant, job)).record
    told = b'{"failure":"dependency","reason":"retrying"}'
    assert (seen.attempts, seen.deliveries, seen.error) == (0, 1, told)
    assert seen.failures == [0, 0, 1, 0, 0]
    (again,) = await hand.take()
    assert (again.job.id, again.job.failures) == (job, [0, 0, 1, 0, 0])
    assert again.epoch > lease.epoch


async def test_a_snooze_and_a_return_cost_no_attempt(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    for outcome in (Outcome(OutcomeKind.RETURNED, 5), Outcome(OutcomeKind.SNOOZED, 5, delay_ms=5)):
        (lease,) = await hand.take()
        await hand.report(hand.done(lease, outcome))
    (lease,) = await hand.take()
    assert (lease.job.id, lease.job.attempts, lease.job.deliveries) == (job, 0, 2)


async def test_outcomes_wait_while_the_store_is_away(database_url: str) -> None:
    async with gate_to(database_url) as gate, owner_on(gate.dsn) as platform:
        tenant = await add_tenant(platform)
        jobs = await submit(platform, tenant, *[new()] * 3)
        hand = Hand(platform)
        good, bad, mine = await hand.take(3)
        await freeze(platform)  # the term is kept: this is about the recorder alone
        await gate.close()
        failure = Outcome(OutcomeKind.FAILED, 1, failure=FailureClass.PERMANENT)
        news = await hand.say(reports=[hand.done(good), hand.done(bad, failure), hand.done(mine)])
        assert news is not None
        assert (news.recorded, news.refused) == ([], [])
        await asyncio.sleep(0.3)
        assert hand.platform.dispatcher.sessions[hand.key].recording == {1, 2, 3}
        await gate.open()
        await platform.recorder.drain()
        news = await hand.say()
        assert news is not None
        assert sorted(news.recorded) == [1, 2, 3]
        states = {(await sight(platform, tenant, job)).record.state for job in jobs}
        assert states == {State.SUCCEEDED, State.DEAD}


async def test_connections_that_break_lose_no_outcome(platform: Platform, tenant: Tenant) -> None:
    jobs = await submit(platform, tenant, *[new()] * 4)
    hand = Hand(platform)
    leases = await hand.take(4)
    async with platform.database.upkeep() as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    recorded, refused = await hand.report(*[hand.done(lease) for lease in leases])
    assert (recorded, refused) == ({1, 2, 3, 4}, set())
    for job in jobs:
        assert (await sight(platform, tenant, job)).record.state == State.SUCCEEDED


async def test_after_the_term_is_lost_nothing_is_written_and_nothing_acknowledged(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    await freeze(platform)
    platform.dispatcher.succeeded([End(lease, 1, 10, b"1")])
    platform.dispatcher.close_shard(ShardId(0))
    await asyncio.wait_for(platform.recorder.drain(), 30)
    session = platform.dispatcher.sessions[hand.key]
    assert (session.recorded, session.refused) == ([], [])
    assert not (await stored(platform, job))[0].is_final


async def test_parts_of_a_group_are_not_acknowledged_after_the_term_is_lost(
    platform: Platform, tenant: Tenant
) -> None:
    """The store refused them together, so they were tried one by one when the shard was lost."""
    jobs = await submit(platform, tenant, new(), new())
    hand = Hand(platform)
    leases = await hand.take(2)
    await freeze(platform)
    async with refusing(platform, "NEW.state = 3"):
        platform.dispatcher.succeeded([End(one, n, 10, b"1") for n, one in enumerate(leases)])
        await asyncio.sleep(0.1)
        platform.dispatcher.close_shard(ShardId(0))
        await asyncio.wait_for(platform.recorder.drain(), 30)
    session = platform.dispatcher.sessions[hand.key]
    assert (session.recorded, session.refused) == ([], [])
    for job in jobs:
        assert not (await stored(platform, job))[0].is_final


async def test_under_a_stale_term_nothing_is_written_and_nobody_is_refused(
    platform: Platform, tenant: Tenant
) -> None:
    """This server does not know yet that it was replaced: the statement itself finds out. That says
    nothing of the run: its worker reports it again, to the next owner."""
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    await freeze(platform)
    before = await stored(platform, job)
    async with platform.database.background() as connection:
        await connection.execute("UPDATE shards SET term = term + 1, owner = 'another'")
    platform.dispatcher.succeeded([End(lease, 1, 10, b"1")])
    await platform.recorder.drain()
    session = platform.dispatcher.sessions[hand.key]
    assert (session.recorded, session.refused, session.greeted) == ([], [], False)
    assert await stored(platform, job) == before


async def test_what_is_dropped_with_its_term_may_be_reported_again(
    platform: Platform, tenant: Tenant
) -> None:
    """Its number is on its way to disk no more, and its worker is asked to say it anew."""
    await submit(platform, tenant, new(), new())
    hand = Hand(platform)
    good, bad = await hand.take(2)
    await freeze(platform)
    session = platform.dispatcher.sessions[hand.key]
    async with refusing(platform, "TRUE", "40001"):
        failure = Outcome(OutcomeKind.FAILED, 1, failure=FailureClass.PERMANENT)
        await hand.say(reports=[hand.done(good), hand.done(bad, failure)])
        assert session.recording == {1, 2}
        platform.dispatcher.close_shard(ShardId(0))
        session.greeted = True  # it said hello before the lanes looked again
        await asyncio.wait_for(platform.recorder.drain(), 30)
    assert (session.recording, session.recorded, session.refused) == (set(), [], [])
    assert not session.greeted


async def test_what_waits_while_its_shard_goes_and_comes_back_is_not_written(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile another may have given the job out anew: an old failure would have ended it."""
    jobs = await submit(platform, tenant, new(), new())
    hand = Hand(platform)
    leases = await hand.take(2)
    await freeze(platform)
    settle, is_open = outcomes.settle, asyncio.Event()

    async def slow(connection: Any, terms: Any, rows: Any) -> Any:
        await is_open.wait()
        return await settle(connection, terms, rows)

    monkeypatch.setattr(outcomes, "settle", slow)
    failure = Outcome(OutcomeKind.FAILED, 1, failure=FailureClass.PERMANENT)
    for lease in leases:  # one on its way, one that waits behind it
        await hand.say(reports=[hand.done(lease, failure)])
    dispatcher, shard = platform.dispatcher, ShardId(0)
    before = [await stored(platform, job) for job in jobs]
    async with platform.database.background() as connection:
        term = await connection.fetchval("UPDATE shards SET term = term + 1 RETURNING term")
    dispatcher.close_shard(shard)
    dispatcher.claim_shard(shard, term)
    is_open.set()
    await asyncio.wait_for(platform.recorder.drain(), 30)
    assert [await stored(platform, job) for job in jobs] == before
    session = dispatcher.sessions[hand.key]
    assert (session.recording, session.recorded, session.refused) == (set(), [], [])
    assert platform.recorder.bytes_waiting == 0


async def test_an_end_on_disk_is_acknowledged_whatever_follows(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()

    def fail(pool: int) -> bool:
        raise RuntimeError("a listener's own fault")

    monkeypatch.setattr(platform.run_times.classifier, "measures", fail)
    assert await hand.report(hand.done(lease), seconds=5) == ({1}, set())
    assert (await stored(platform, job))[0] is State.SUCCEEDED


async def test_an_end_that_cannot_be_packed_holds_up_no_other(
    platform: Platform, tenant: Tenant
) -> None:
    jobs = await submit(platform, tenant, new(), new())
    hand = Hand(platform)
    leases = await hand.take(2)
    session, tally = leases[0].session, tally_of(leases[0].job)
    forever = Decision(State.SCHEDULED, tally, 1 << 62)  # past every date
    dead = Decision(State.DEAD, tally, 0, DecisionReason.PERMANENT)
    ends = [
        End(lease, n, 5, None, decision, outcome_label="failed")
        for n, (lease, decision) in enumerate(zip(leases, (forever, dead), strict=True), 1)
    ]
    for end in ends:
        platform.dispatcher.not_written(end.lease)
        session.recording.add(end.number or 0)
    platform.dispatcher.backlog.underway.unrecorded_ids.update(jobs)
    platform.recorder.record(ends)
    await until(lambda: not session.recording)
    assert sorted(session.recorded) == [1, 2]
    for lease in leases:
        assert await stored(platform, lease.job.id) == (State.DEAD, lease.epoch)


async def test_rows_that_somebody_holds_hold_up_no_other(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    """As many as there are lanes, each in a group of its own; written once they are free."""
    jobs = await submit(platform, tenant, *[new()] * 4)
    hand = Hand(platform, short=4)
    leases = sorted(await hand.take(4), key=lambda lease: lease.job.id)
    ends = [hand.done(lease) for lease in leases]
    async with connected(database_url) as connection, connection.transaction():
        await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        await connection.execute(HOLD, jobs[:2])
        for end in ends[:2]:
            await hand.say(reports=[end])
            await asyncio.sleep(0.05)  # into a group of its own
        free = {end.number for end in ends[2:]}
        assert await hand.report(*ends[2:], seconds=20) == (free, set())
        ended = [(await stored(platform, job))[0] is State.SUCCEEDED for job in jobs]
        assert ended == [False, False, True, True]

    async def are_written() -> bool:
        return {(await stored(platform, job))[0] for job in jobs} == {State.SUCCEEDED}

    await until(are_written, 20)
