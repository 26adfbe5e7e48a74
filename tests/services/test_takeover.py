"""Taking over a shard: while its leases are being found nobody is equipped, revoked or judged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    Hand,
    add_tenant,
    freeze,
    holding,
    kill,
    new,
    open_pair,
    owner_on,
    owns_all,
    sight,
    stored,
    submit,
    until,
)

from fairway.core.audit import PLATFORM
from fairway.core.errors import Forbidden, Unavailable
from fairway.core.ids import PoolId, ShardId, Term
from fairway.core.lifecycle import State
from fairway.core.pools import SHORT
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease
from fairway.services.workers import exchange as exchange_module
from fairway.store import backlog as backlog_store
from fairway.store import leadership
from fairway.store import leases as lease_store


class SlowLeases:
    """The store takes its time to tell which leases are written."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        self.reads = 0
        self._read = lease_store.read_running
        patch.setattr(lease_store, "read_running", self.read_running)

    async def read_running(self, *arguments: Any) -> list[lease_store.RunningJob]:
        self.reads += 1
        rows = await self._read(*arguments)
        self.asked.set()
        await self.go.wait()
        return rows


@asynccontextmanager
async def standby_after(first: Platform, second: Platform) -> AsyncIterator[Platform]:
    """The owner dies, the other one is on its way to take over."""
    await kill(first)
    try:
        yield second
    finally:
        await second.stop()


# -- the window ----------------------------------------------------------------------------------


async def test_a_hello_while_leases_are_restored_waits_and_costs_nothing(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    (job,) = await submit(first, tenant, new(pool=MEDIUM))
    hand = Hand(first, medium=1)
    (lease,) = await hand.take()
    slow = SlowLeases(monkeypatch)
    async with standby_after(first, second):
        await asyncio.wait_for(slow.asked.wait(), 30)
        hand.platform = second
        greeting = asyncio.create_task(hand.say(hello=True, running=[holding(lease)]))
        await asyncio.sleep(0.1)
        assert not greeting.done()
        slow.go.set()
        news = await greeting
        assert news is not None
        assert (news.leases, news.revoked) == ([], [])
        await until(lambda: owns_all(second))
        assert second.dispatcher.leases[job].session.key == hand.key
        assert await hand.report(hand.done(lease)) == ({1}, set())
        assert await stored(second, job) == (State.SUCCEEDED, lease.epoch)


async def test_a_hello_that_would_wait_too_long_is_asked_to_come_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    await submit(first, tenant, new(pool=MEDIUM))
    hand = Hand(first, medium=1)
    (lease,) = await hand.take()
    slow = SlowLeases(monkeypatch)
    monkeypatch.setattr(exchange_module, "RESTORE_WAIT_SECONDS", 0.05)
    async with standby_after(first, second):
        await asyncio.wait_for(slow.asked.wait(), 30)
        hand.platform = second
        with pytest.raises(Unavailable) as told:
            await hand.say(hello=True, running=[holding(lease)])
        assert told.value.code == "NOT_OWNER"
        slow.go.set()
        await until(lambda: not second.dispatcher.shards.restoring)
        news = await hand.say(hello=True, running=[holding(lease)])
        assert news is not None
        assert (news.leases, news.revoked) == ([], [])


async def test_a_report_in_the_first_hello_after_a_restart_is_recorded(database_url: str) -> None:
    """Also of a worker that has the outcome from a journal, and names no holding."""
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    jobs = await submit(first, tenant, new(pool=MEDIUM), new())
    hand = Hand(first, medium=1, short=1)
    leases = await hand.take(2)
    async with standby_after(first, second):
        await until(lambda: bool(second.dispatcher.shards.terms))
        heir = Hand(second, medium=1, short=1)
        words = [heir.done(lease) for lease in leases]
        recorded: set[int] = set()
        async with asyncio.timeout(30):
            while len(recorded) < 2:
                news = await heir.say(hello=True, reports=words, wait_seconds=0.2, draining=True)
                assert news is not None
                assert not news.refused
                recorded.update(news.recorded)
        for job in jobs:
            assert (await stored(second, job))[0] is State.SUCCEEDED


@pytest.mark.parametrize("is_claimed_again", [False, True])
async def test_a_shard_that_is_lost_while_it_opens_stays_shut(
    database_url: str, *, is_claimed_again: bool
) -> None:
    async with owner_on(database_url) as platform:
        await freeze(platform)
        dispatcher, term = platform.dispatcher, platform.dispatcher.shards.terms[ShardId(0)]
        dispatcher.close_shard(ShardId(0))
        dispatcher.claim_shard(ShardId(0), term)
        asked, go = asyncio.Event(), asyncio.Event()

        async def slowly(shards: object) -> None:
            asked.set()
            await go.wait()

        ownership = platform.ownership
        takeover = ownership._takeover
        takeover._ports = takeover._ports._replace(before_open=slowly)
        opening = asyncio.create_task(takeover._open(ShardId(0)))
        await asked.wait()
        dispatcher.close_shard(ShardId(0))
        if is_claimed_again:
            dispatcher.claim_shard(ShardId(0), Term(term + 1))
        go.set()
        await opening
        assert dispatcher.shards.open == set()


@pytest.mark.parametrize("was_handed_over", [False, True])
async def test_a_shard_let_go_in_the_middle_of_a_take_over_is_as_it_came(
    database_url: str, monkeypatch: pytest.MonkeyPatch, was_handed_over: bool
) -> None:
    """Nobody has asked the workers what they run: the next owner must, unless all is written."""
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    await submit(first, tenant)
    await Hand(first, short=1).take()
    slow = SlowLeases(monkeypatch)
    if was_handed_over:
        await first.let_go()
    async with standby_after(first, second):
        await asyncio.wait_for(slow.asked.wait(), 30)
        await second.let_go()
        async with second.database.background() as connection:
            taken = await leadership.claim_shards(connection, "third", "", 60)
        assert {claim.was_handed_over for claim in taken.values()} == {was_handed_over}
        slow.go.set()


async def test_a_renewal_does_not_undo_a_release(database_url: str) -> None:
    async with owner_on(database_url) as platform:
        for _ in range(20):
            platform.loops["ownership"].wake()
            await asyncio.sleep(0)
        await platform.ownership.resign()
        await platform.ownership.run_once(platform.clock.now_us())
        async with platform.database.background() as connection:
            assert await leadership.claim_shards(connection, "next", "", 60)


async def test_a_shard_claimed_anew_is_not_open(database_url: str) -> None:
    async with owner_on(database_url) as platform:
        await freeze(platform)
        platform.dispatcher.claim_shard(
            ShardId(0), Term(platform.dispatcher.shards.terms[ShardId(0)] + 1)
        )
        assert platform.dispatcher.shards.open == set(), "its leases are not known yet"


async def test_a_silent_worker_of_one_tenant_keeps_no_other_shard_closed(database_url: str) -> None:
    """Its session is alive and says no hello to whoever takes over, and need not be of ill will."""
    leases = dict.fromkeys(QUICK.lease_seconds, 60.0)
    patient = replace(QUICK, adoption_seconds=60.0, shard_count=4, lease_seconds=leases)
    first, second = await open_pair(database_url, patient)
    tenant = await add_tenant(first)
    home = first.tenant_shards.of(tenant.id)
    hand = Hand(first)
    hand.tenant = tenant.id
    await hand.say(hello=True)
    async with standby_after(first, second):
        others = {ShardId(number) for number in range(4)} - {home}
        await until(lambda: set(second.dispatcher.shards.open) >= others)
        assert home not in second.dispatcher.shards.open, "there it may hold a lease"


async def test_workers_of_any_pool_with_lazy_leases_are_waited_for(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is written down every fifty seconds seemed gone: what it ran began once more."""
    live_sessions, waited_for = lease_store.live_sessions, list[set[lease_store.LiveSession]]()

    async def asked(*arguments: Any) -> set[lease_store.LiveSession]:
        waited_for.append(await live_sessions(*arguments))
        return waited_for[-1]

    patient = replace(QUICK, adoption_seconds=60.0, lazy_running_ms=60_000)
    quick = replace(SHORT, number=PoolId(0), name="quick", lease_seconds=300)
    first, second = await open_pair(database_url, patient)
    pool = await first.registry.put_pool(quick, PLATFORM)
    await until(lambda: "quick" in second.dispatcher.pools.by_name)
    tenant = await add_tenant(first)
    (job,) = await submit(first, tenant, new(pool=pool.number))
    hand = Hand(first, quick=1)
    (lease,) = await hand.take()
    async with second.database.background() as connection, asyncio.timeout(30):
        while not await connection.fetchval("SELECT count(*) FROM worker_sessions"):  # noqa: ASYNC110  # a loop writes it
            await asyncio.sleep(0.05)
    monkeypatch.setattr(lease_store, "live_sessions", asked)
    async with standby_after(first, second):
        async with second.database.background() as connection:
            await connection.execute("UPDATE worker_sessions SET seen_at = now() - interval '40 s'")
        await until(lambda: bool(waited_for))
        assert waited_for == [{lease_store.LiveSession(hand.key)}]
        hand.platform = second
        await hand.say(hello=True, running=[holding(lease)])
        await until(lambda: owns_all(second))
        assert second.dispatcher.leases[job].epoch == lease.epoch


# -- whose session it is -------------------------------------------------------------------------


async def test_a_take_over_gives_a_tenants_own_worker_nothing_of_another(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await open_pair(database_url)
    acme, victim = await add_tenant(first, "acme"), await add_tenant(first, "victim")
    await second.directory.refresh()
    await submit(first, acme, new(pool=MEDIUM))
    hand = Hand(first, short=4, medium=1)
    hand.tenant = acme.id
    (lease,) = await hand.take()
    slow = SlowLeases(monkeypatch)
    async with standby_after(first, second):
        await asyncio.wait_for(slow.asked.wait(), 30)
        hand.platform = second
        call = asyncio.create_task(
            hand.say(hello=True, running=[holding(lease)], wait_seconds=0.5)
        )  # fmt: skip
        await asyncio.sleep(0.05)
        slow.go.set()
        await until(lambda: owns_all(second))
        await submit(second, victim, new(payload=b'{"secret":"of victim"}'))
        news = await call
        assert news is not None
        assert news.leases == []
        assert second.dispatcher.sessions[hand.key].tenant == acme.id


async def test_a_restored_session_is_nobodys_until_its_worker_speaks(database_url: str) -> None:
    first, second = await open_pair(database_url)
    acme, other = await add_tenant(first, "acme"), await add_tenant(first, "other")
    await second.directory.refresh()
    await submit(first, acme, new(pool=MEDIUM))
    hand = Hand(first, medium=2)
    (lease,) = await hand.take()
    async with standby_after(first, second):
        await until(lambda: owns_all(second))
        session = second.dispatcher.sessions[hand.key]
        assert not session.is_claimed
        assert not session.slots

        thief = Hand(second, medium=2)
        thief.key, thief.tenant = hand.key, other.id  # another tenant's key, the same session
        with pytest.raises(Forbidden):
            await thief.say(hello=True, running=[holding(lease)])
        assert not session.is_claimed

        hand.platform, hand.tenant = second, acme.id
        assert await hand.say(hello=True, running=[holding(lease)]) is not None
        assert (session.is_claimed, session.tenant) == (True, acme.id)


# -- what only the store knows -------------------------------------------------------------------


async def forget(platform: Platform, lease: Lease) -> None:
    """The memory lost it, the store did not."""
    platform.dispatcher.not_written(platform.dispatcher.leases[lease.job.id])


async def test_a_written_lease_that_the_memory_lacks_is_restored_by_a_hello(
    database_url: str,
) -> None:
    async with owner_on(database_url) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(pool=MEDIUM))
        hand = Hand(platform, medium=1)
        (lease,) = await hand.take()
        await forget(platform, lease)
        news = await hand.say(hello=True, running=[holding(lease)])
        assert news is not None
        assert (news.leases, news.revoked) == ([], [])
        assert platform.dispatcher.leases[job].token == lease.token
        assert await hand.report(hand.done(lease)) == ({1}, set())


async def test_a_report_whose_lease_the_memory_lacks_is_asked_for_with_a_hello(
    database_url: str,
) -> None:
    async with owner_on(database_url) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(pool=MEDIUM))
        hand = Hand(platform, medium=1)
        (lease,) = await hand.take()
        await forget(platform, lease)
        word = hand.done(lease)
        assert await hand.say(reports=[word]) is None, "say hello"
        news = await hand.say(hello=True, reports=[word], wait_seconds=1, draining=True)
        assert news is not None
        assert (news.recorded, news.refused) == ([1], [])
        assert (await stored(platform, job))[0] is State.SUCCEEDED


async def must_greet(hand: Hand) -> bool:
    return await hand.say() is None


async def test_a_server_does_not_judge_leases_of_a_shard_that_is_anothers(
    database_url: str,
) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    (job,) = await submit(first, tenant, new(pool=MEDIUM))
    hand = Hand(first, medium=1)
    (lease,) = await hand.take()
    hand.platform = second  # which owns nothing yet
    word = hand.done(lease)
    news = await hand.say(hello=True, running=[holding(lease)], reports=[word])
    assert news is not None
    assert (news.revoked, news.recorded, news.refused) == ([], [], [])
    async with standby_after(first, second):
        await until(lambda: must_greet(hand))  # the shard came here: say all of it again
        news = await hand.say(hello=True, reports=[word], wait_seconds=1, draining=True)
        assert news is not None
        assert (news.recorded, news.refused) == ([1], [])
        assert (await stored(second, job))[0] is State.SUCCEEDED


async def test_thousands_of_holdings_are_read_in_slices_and_known_ones_not_at_all(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owner_on(database_url) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant, *[new() for _ in range(300)])
        hand = Hand(platform, short=600)
        known = [holding(lease) for lease in await hand.take(300)]
        sizes, read = [], lease_store.read_held

        async def counted(connection: Any, wanted: Any, **more: Any) -> Any:
            sizes.append(len(wanted))
            return await read(connection, wanted, **more)

        monkeypatch.setattr(lease_store, "read_held", counted)
        news = await hand.say(hello=True, running=known)
        assert news is not None
        assert (news.revoked, sizes) == ([], [])
        ids = platform.submissions.ids.make(ShardId(0), 1000)
        claimed = [known[0]._replace(job=job) for job in ids]
        news = await hand.say(hello=True, running=known + claimed)
        assert news is not None
        assert sorted(news.revoked) == sorted(ids)
        assert sizes == [200] * 5


# -- payloads --------------------------------------------------------------------------------------


async def test_a_lease_whose_reply_was_lost_is_sent_again_whole_after_a_take_over(
    database_url: str,
) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    (job,) = await submit(first, tenant, new(pool=MEDIUM, payload=b'{"n":1}'))
    hand = Hand(first, medium=1)
    (lease,) = await hand.take()  # and its worker never hears of it
    async with standby_after(first, second):
        await until(lambda: owns_all(second))
        assert second.dispatcher.leases[job].job.payload == b""
        hand.platform = second
        news = await hand.say(hello=True, running=[])
        assert news is not None
        (again,) = news.leases
        assert (again.epoch, again.token) == (lease.epoch, lease.token)
        assert again.job.payload == b'{"n":1}'
        assert await hand.report(hand.done(again)) == ({1}, set())


async def test_a_restored_job_whose_worker_died_is_given_out_again_whole(database_url: str) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    (job,) = await submit(first, tenant, new(pool=MEDIUM, payload=b'{"n":1}'))
    (lease,) = await Hand(first, medium=1).take()
    async with standby_after(first, second):
        await until(lambda: owns_all(second))
        (again,) = await Hand(second, medium=1).take()
        assert again.job.id == job
        assert again.epoch > lease.epoch
        assert (again.job.payload, again.job.deliveries) == (b'{"n":1}', 1)


# -- depth -----------------------------------------------------------------------------------------


async def test_a_count_that_fails_does_not_hold_up_a_take_over(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = 0

    async def too_long(*_: Any) -> Any:
        nonlocal counts
        counts += 1
        raise asyncpg.QueryCanceledError("canceling statement due to statement timeout")

    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    (job,) = await submit(first, tenant)
    monkeypatch.setattr(backlog_store, "count_queued", too_long)
    slow = SlowLeases(monkeypatch)
    slow.go.set()
    async with standby_after(first, second):
        await until(lambda: owns_all(second))
        (lease,) = await Hand(second).take()
        assert lease.job.id == job
        await asyncio.sleep(0.5)
        assert (counts, slow.reads) == (1, 1)
        assert (await sight(second, tenant, job)).record.state <= State.RUNNING
