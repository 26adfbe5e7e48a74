"""The rescuer: silent workers lose their jobs in time, live ones never do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
from tests.services.platform_room import (
    LONG,
    MEDIUM,
    QUICK,
    SHORT,
    Hand,
    freeze,
    new,
    owner_on,
    platform_on,
    stored,
    submit,
    until,
)

from fairway.core.ids import ShardId, Term
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.dispatch.run_ends import SILENT
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease
from fairway.services.workers.lost_leases import LOST_AT_ONCE
from fairway.services.workers.rescuer import Rescuer
from fairway.store import leases
from fairway.store.leases import SessionRow

SILENCE_SECONDS = QUICK.lease_seconds["short"]


@pytest.mark.parametrize("pool", [SHORT, MEDIUM, LONG])
async def test_a_silent_workers_job_is_granted_again_and_costs_no_attempt(
    platform: Platform, tenant: Tenant, pool: int
) -> None:
    (job,) = await submit(platform, tenant, new(pool=pool))
    (old,) = await Hand(platform, short=1, medium=1, long=1).take()
    began = time.monotonic()
    (again,) = await Hand(platform, short=1, medium=1, long=1).take()
    assert SILENCE_SECONDS / 2 < time.monotonic() - began < SILENCE_SECONDS + 1
    assert (again.job.id, again.job.attempts, again.job.deliveries) == (job, 0, 1)
    assert again.epoch > old.epoch


async def test_a_worker_that_beats_keeps_its_job(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    async with asyncio.timeout(SILENCE_SECONDS * 2.5):
        for _ in range(10):
            await asyncio.sleep(SILENCE_SECONDS / 5)
            await hand.say()
    assert platform.dispatcher.leases[job] is lease
    assert await hand.report(hand.done(lease)) == ({1}, set())


async def test_a_late_report_of_a_rescued_job_is_refused(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    slow, next_one = Hand(platform), Hand(platform)
    (old,) = await slow.take()
    (new_lease,) = await next_one.take()
    await slow.say(hello=True)
    late = slow.done(old, result=b'"late"')
    assert await slow.report(late) == (set(), {late.number})
    await next_one.say(hello=True)
    mine = next_one.done(new_lease, result=b'"mine"')
    assert await next_one.report(mine) == ({mine.number}, set())
    assert await stored(platform, job) == (State.SUCCEEDED, new_lease.epoch)


async def test_each_pool_has_its_own_patience(platform: Platform, tenant: Tenant) -> None:
    await submit(platform, tenant, new(), new(pool=MEDIUM))
    hand = Hand(platform, short=1, medium=1)
    leases = {lease.job.pool: lease for lease in await hand.take(2)}
    await freeze(platform)
    patient = replaced(QUICK, lease_seconds={"short": 5, "medium": 100, "long": 100})
    rescuer = Rescuer(platform.database, platform.dispatcher, patient)
    session = platform.dispatcher.sessions[hand.key]
    await rescuer.run_once(session.seen_us)
    async with platform.database.background() as connection:
        await connection.execute("UPDATE worker_sessions SET seen_at = seen_at - interval '10 s'")
    session.seen_us -= 10_000_000
    await rescuer.run_once(session.seen_us + 10_000_000)
    assert len(platform.dispatcher.leases) == 2  # nobody could speak to it before
    await rescuer.run_once(session.seen_us + 12_600_000)
    assert list(platform.dispatcher.leases.values()) == [leases[MEDIUM]]
    assert hand.key in platform.dispatcher.sessions


async def test_a_goodbye_gives_jobs_back_at_once(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    await hand.take()
    await hand.say(goodbye=True)
    (again,) = await asyncio.wait_for(Hand(platform).take(), SILENCE_SECONDS / 2)
    assert (again.job.id, again.job.deliveries) == (job, 1)


async def test_a_job_that_kills_its_workers_ends_as_poison(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    for _ in range(10):
        hand = Hand(platform)
        await hand.take()
        await hand.say(goodbye=True)

    async def is_dead() -> bool:
        return (await stored(platform, job))[0] is State.DEAD

    await until(is_dead)
    record = (await platform.job_lookup.job(tenant.id, job)).record
    assert (record.attempts, record.deliveries) == (0, 10)


async def test_nobody_is_given_up_while_leases_are_restored(
    platform: Platform, tenant: Tenant
) -> None:
    """Who holds what is not known yet; a session that is found has its whole lease from then on."""
    (job,) = await submit(platform, tenant, new(pool=MEDIUM))
    hand = Hand(platform, medium=1)
    await hand.take()
    await freeze(platform)
    dispatcher, term = platform.dispatcher, platform.dispatcher.shards.terms[ShardId(0)]
    earlier = Rescuer(platform.database, dispatcher, platform.settings)
    await earlier.run_once(platform.clock.now_us())
    dispatcher.close_shard(ShardId(0))
    dispatcher.sessions.clear()
    dispatcher.claim_shard(ShardId(0), term)
    dispatcher.found_session(hand.key, None)
    async with platform.database.background() as connection:
        await connection.execute("UPDATE worker_sessions SET seen_at = now() - interval '1 hour'")
    rescuer = Rescuer(platform.database, dispatcher, platform.settings)
    await rescuer.run_once(platform.clock.now_us())
    assert hand.key in dispatcher.sessions
    await platform.ownership._takeover._restore(ShardId(0))
    await rescuer.run_once(platform.clock.now_us())
    assert dispatcher.leases[job].session.key == hand.key


@pytest.mark.parametrize("is_told", [True, False])
async def test_silence_towards_a_server_that_owned_nothing_says_nothing(
    platform: Platform, tenant: Tenant, is_told: bool
) -> None:
    """It lost its shards for a while, be it that it did not know; then one came back whole."""
    (job,) = await submit(platform, tenant, new(pool=MEDIUM))
    hand = Hand(platform, medium=1)
    await hand.take()
    await freeze(platform)
    dispatcher, shard = platform.dispatcher, ShardId(0)
    rescuer = Rescuer(platform.database, dispatcher, platform.settings)
    term, now_us = dispatcher.shards.terms[shard], platform.clock.now_us()
    if is_told:
        await rescuer.run_once(now_us)
        dispatcher.close_shard(shard)
    await _run(platform, "UPDATE shards SET term = term + 2")
    await rescuer.run_once(now_us)
    await _run(platform, "UPDATE worker_sessions SET seen_at = now() - interval '1 hour'")
    dispatcher.close_shard(shard)
    dispatcher.sessions[hand.key].seen_us -= 3_600_000_000
    dispatcher.claim_shard(shard, Term(term + 2), is_whole=True)
    await platform.ownership._takeover._restore(shard)
    assert job in dispatcher.leases
    await rescuer.run_once(now_us)
    await rescuer.run_once(now_us + 6_000_000)
    assert job in dispatcher.leases
    await _run(platform, "UPDATE worker_sessions SET seen_at = now() - interval '1 hour'")
    await rescuer.run_once(now_us + 9_000_000)
    assert job not in dispatcher.leases  # it is not heard all the same


async def _run(platform: Platform, statement: str) -> None:
    async with platform.database.background() as connection:
        await connection.execute(statement)


async def test_a_server_that_owns_nothing_forgets_who_is_silent(database_url: str) -> None:
    """The owner alone has rows of sessions: what spoke to a standby must end there too."""
    async with owner_on(database_url), platform_on(database_url) as standby:
        hand = Hand(standby)
        assert await hand.say(hello=True) is not None
        assert hand.key in standby.dispatcher.sessions
        await until(lambda: not standby.dispatcher.sessions)


@pytest.mark.parametrize("is_silent", [True, False])
async def test_a_worker_that_held_very_many_is_given_up_in_parts(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, is_silent: bool
) -> None:
    """One that held a hundred thousand must not stop the event loop for seconds as it goes."""
    count = 4 * LOST_AT_ONCE + 3
    await submit(platform, tenant, *[new() for _ in range(count)])
    hand = Hand(platform, short=count)
    await hand.take(count)
    sizes: list[int] = []
    lost = platform.dispatcher.lost

    def noted(leases: Sequence[Lease], error: bytes = SILENT) -> None:
        sizes.append(len(leases))
        lost(leases, error)

    monkeypatch.setattr(platform.dispatcher, "lost", noted)
    if not is_silent:
        await hand.say(goodbye=True)
        assert hand.key not in platform.dispatcher.sessions
    await until(lambda: not platform.dispatcher.leases)
    assert (sum(sizes), max(sizes)) == (count, LOST_AT_ONCE)


async def test_workers_are_heard_while_a_node_of_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first group of shards lies on it: the next one says as well who we are."""
    asked: list[list[ShardId]] = []

    async def see(_: object, terms: Mapping[ShardId, Term], rows: object) -> bool:
        asked.append(list(terms))
        if len(asked) == 1:
            raise asyncpg.ConnectionFailureError("connection to the remote node failed")
        return len(asked) > 2

    async def silent(_: object, terms: Mapping[ShardId, Term], seconds: float) -> dict[str, float]:
        return {"x": seconds}

    monkeypatch.setattr(leases, "see_sessions", see)
    monkeypatch.setattr(leases, "silent_sessions", silent)
    database: Any = SimpleNamespace(
        batches_of=lambda some: [[one] for one in some],
        is_silent=lambda shard: False,
        hot=lambda seconds, at: nullcontext(),
    )
    pools = SimpleNamespace(by_name={"short": 1})
    terms = {ShardId(0): Term(1), ShardId(1): Term(2), ShardId(2): Term(3)}
    dispatcher: Any = SimpleNamespace(terms=lambda: terms, pools=pools)
    settings: Any = SimpleNamespace(lease_seconds_of=lambda pool: 5.0)
    rescuer = Rescuer(database, dispatcher, settings)
    found = await rescuer._ask(rescuer._terms(), [SessionRow("x", "w")])
    assert asked == [[0], [1], [2]]
    assert found == ({2: 3}, {"x": 5.0})


async def test_a_session_is_noted_when_the_store_knows_whose_it_is(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that leases were found of, and nobody spoke for yet, is written down without that."""
    dispatcher = platform.dispatcher
    await platform.loops["rescuer"].stop()
    found = dispatcher.found_session("0" * 31 + "1", None)
    rescuer, now_us = Rescuer(platform.database, dispatcher, QUICK), platform.clock.now_us()
    await rescuer.run_once(now_us)
    assert not found.is_noted
    found.claim("hand", None, "a key")
    await rescuer.run_once(now_us + 1)
    assert not found.is_noted, "it was written down a moment ago, as nobody's"
    found.seen_us += 60_000_000
    await rescuer.run_once(now_us + 60_000_000)
    assert found.is_noted
