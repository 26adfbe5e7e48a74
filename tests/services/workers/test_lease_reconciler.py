"""Workers name all that they run now and then: no disagreement about a lease lives longer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    Hand,
    add_tenant,
    holding,
    new,
    owner_on,
    stored,
    submit,
    until,
)

from fairway.core.lifecycle import State
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease
from fairway.store import leases as lease_store

PATIENT = replace(QUICK, lease_seconds={"medium": 1.5})  # beats of half a second


async def name(hand: Hand, *leases: Lease) -> tuple[list[Lease], list[str]]:
    """All that it runs; answers what came, and what was revoked."""
    hand.names_all = True
    news = await hand.say(running=[holding(lease) for lease in leases])
    hand.names_all = False
    assert news is not None
    return news.leases, news.revoked


async def test_a_lease_that_its_worker_never_names_is_given_out_again(database_url: str) -> None:
    async with owner_on(database_url, PATIENT) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant, new(pool=MEDIUM), new(pool=MEDIUM))
        hand = Hand(platform, medium=2)
        kept, dropped = await hand.take(2)
        came: list[Lease] = []
        revoked: list[str] = []
        async with asyncio.timeout(30):
            while not came:
                leases, stopped = await name(hand, kept)
                came += leases
                revoked += stopped
                await asyncio.sleep(0.05)
        assert revoked == [dropped.job.id]
        (again,) = came
        assert again.job.id == dropped.job.id
        assert again.epoch > dropped.epoch
        assert (again.job.attempts, again.job.deliveries) == (0, 1)
        assert platform.dispatcher.leases[kept.job.id] is kept


async def test_one_list_that_lacks_a_lease_proves_nothing(database_url: str) -> None:
    """It was made before the lease came, or before the report that is under way."""
    async with owner_on(database_url, PATIENT) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(pool=MEDIUM))
        hand = Hand(platform, medium=1)
        (lease,) = await hand.take()
        assert await name(hand) == ([], [])
        assert platform.dispatcher.leases[job] is lease
        assert await name(hand, lease) == ([], [])
        assert platform.dispatcher.sessions[hand.key].missed_since_us == {}
        assert await hand.report(hand.done(lease)) == ({1}, set())


async def test_a_named_job_that_another_holds_is_revoked_and_a_lost_lease_restored(
    database_url: str,
) -> None:
    async with owner_on(database_url, PATIENT) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(pool=MEDIUM))
        hand, thief = Hand(platform, medium=1), Hand(platform, medium=0)
        (lease,) = await hand.take()
        await thief.say(hello=True)
        assert await name(thief, lease) == ([], [job])
        platform.dispatcher.not_written(lease)  # the memory lost it, the store did not
        assert await name(hand, lease) == ([], [])
        assert platform.dispatcher.leases[job].token == lease.token
        assert await hand.report(hand.done(lease)) == ({1}, set())


async def test_a_job_whose_end_is_on_its_way_to_disk_is_neither_revoked_nor_adopted(
    database_url: str,
) -> None:
    async with owner_on(database_url, PATIENT) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(pool=MEDIUM))
        hand = Hand(platform, medium=1)
        (lease,) = await hand.take()
        hand.names_all = True  # a list made before the run ended, in the call that reports it
        news = await hand.say(running=[holding(lease)], reports=[hand.done(lease)])
        assert news is not None
        assert (news.revoked, news.refused) == ([], [])
        await until(lambda: job not in platform.dispatcher.backlog.underway.unrecorded_ids)
        assert (await stored(platform, job))[0] is State.SUCCEEDED
        assert job not in platform.dispatcher.leases


# -- one lease for another -------------------------------------------------------------------------


async def test_a_lease_that_was_not_written_leaves_the_next_one_alone(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker leaves while the store is slow; the job is granted anew before the answer."""
    real, gate, first_write = lease_store.write_leases, asyncio.Event(), asyncio.Event()

    async def slow_once(*arguments: object) -> set[str]:
        if not first_write.is_set():
            first_write.set()
            await gate.wait()
        return await real(*arguments)  # type: ignore[arg-type]

    async with owner_on(database_url, PATIENT) as platform:
        tenant = await add_tenant(platform)
        monkeypatch.setattr(lease_store, "write_leases", slow_once)
        one, two = Hand(platform, medium=1), Hand(platform, medium=1)
        await one.say(hello=True)
        (job,) = await submit(platform, tenant, new(pool=MEDIUM))
        await one.say()
        await first_write.wait()
        await two.say(hello=True)
        waiting = asyncio.create_task(two.say(wait_seconds=5))
        await asyncio.sleep(0)
        await one.say(goodbye=True)  # lost: settled as queued, granted to the other at once
        await until(lambda: is_held_by(platform, job, two))
        gate.set()
        news = await waiting
        assert news is not None
        (lease,) = news.leases
        assert lease.job.id == job
        assert platform.dispatcher.leases[job] is lease
        assert await two.report(two.done(lease)) == ({1}, set())
        assert platform.dispatcher.sessions[two.key].in_use[MEDIUM] == 0


def is_held_by(platform: Platform, job: str, hand: Hand) -> bool:
    lease = platform.dispatcher.leases.get(job)
    return lease is not None and lease.session.key == hand.key


async def test_a_session_that_was_given_up_while_the_store_was_asked_gets_no_lease(
    database_url: str,
) -> None:
    """Nobody would look after it: its job would be neither run nor given out again."""
    async with owner_on(database_url, PATIENT) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(pool=MEDIUM))
        hand = Hand(platform, medium=1)
        (lease,) = await hand.take()
        dispatcher, session = platform.dispatcher, lease.session
        dispatcher.not_written(lease)  # so that only the store knows of it
        hello = asyncio.create_task(hand.say(hello=True, running=[holding(lease)]))
        while session.hellos < 2:  # noqa: ASYNC110  (before its next turn)
            await asyncio.sleep(0)
        dispatcher.end_session(session)
        assert await hello is None
        assert job not in dispatcher.leases
        news = await hand.say(hello=True, running=[holding(lease)])
        assert news is not None
        assert not news.revoked
        assert dispatcher.leases[job].session is dispatcher.sessions[hand.key]


async def test_workers_that_come_together_are_written_down_together(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All say hello at once to an owner that is new, which waits a second for what they run."""
    sizes, see = list[int](), lease_store.see_sessions

    async def counted(connection: Any, terms: Any, rows: Any) -> bool:
        sizes.append(len(rows))
        return await see(connection, terms, rows)

    async with owner_on(database_url) as platform:
        await platform.loops["rescuer"].stop()
        monkeypatch.setattr(lease_store, "see_sessions", counted)
        hands = [Hand(platform) for _ in range(50)]
        await asyncio.gather(*(hand.say(hello=True) for hand in hands))
        assert all(platform.dispatcher.sessions[hand.key].is_noted for hand in hands)
        assert len(sizes) < 10
