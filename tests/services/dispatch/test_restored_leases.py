"""Sessions that a new owner finds in the store are of whom they were, also before they speak."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    Hand,
    add_tenant,
    holding,
    kill,
    new,
    open_pair,
    owns_all,
    submit,
    until,
)

from fairway.core.errors import Forbidden
from fairway.core.fair_share.queue import OWN, SHARED
from fairway.core.tenant import Tenant
from fairway.runtime.random_ids import new_api_key
from fairway.services.platform import Platform
from fairway.services.sessions import session_table
from fairway.services.sessions.sessions import Lease

LEASE_SECONDS = 120.0
SOON_SECONDS = 0.25 * LEASE_SECONDS  # so it was not its silence that cost the worker its lease
PATIENT = replace(QUICK, lease_seconds=dict.fromkeys(("short", "medium", "long"), LEASE_SECONDS))


class World:
    """An owner that will die, its heir, and a worker that runs a job of tenant `acme`."""

    def __init__(self, first: Platform, second: Platform, acme: Tenant) -> None:
        self.first, self.second, self.acme = first, second, acme

    async def worker(self, *, is_own: bool) -> Hand:
        key, whose = new_api_key("worker"), self.acme.id if is_own else None
        await self.first.directory.add_key(key, whose)
        hand = Hand(self.first, medium=1)
        hand.api_key, hand.tenant = key.id, whose
        return hand

    async def busy(self, *, is_own: bool) -> tuple[Hand, Lease]:
        await submit(self.first, self.acme, new(pool=MEDIUM))
        hand = await self.worker(is_own=is_own)
        (lease,) = await hand.take()
        return hand, lease

    async def take_over(self) -> Platform:
        await kill(self.first)
        await until(lambda: owns_all(self.second))
        return self.second

    async def execute(self, statement: str, *values: object) -> None:
        async with self.second.database.background() as connection:
            await connection.execute(statement, *values)


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[World]:
    """Silent workers keep their leases for longer than a test takes."""
    first, second = await open_pair(database_url, PATIENT)
    acme = await add_tenant(first)
    await second.directory.refresh()
    yield World(first, second, acme)
    await second.stop()


@asynccontextmanager
async def granted_anew(platform: Platform, lost: Lease) -> AsyncIterator[None]:
    """What happens here gives the job to another worker, long before its lease is over."""
    async with asyncio.timeout(SOON_SECONDS):
        yield
        (again,) = await Hand(platform, medium=1).take()
    assert again.job.id == lost.job.id
    assert again.epoch > lost.epoch
    assert (again.job.attempts, again.job.deliveries) == (0, 1), "it cost a delivery, no attempt"


@pytest.mark.parametrize(("is_own", "kind"), [(True, OWN), (False, SHARED)])
async def test_a_lease_counts_for_whose_worker_runs_it(
    world: World, kind: int, *, is_own: bool
) -> None:
    """A lease at a tenant's own worker took a slot from what all share, until it ended."""
    hand, lease = await world.busy(is_own=is_own)
    second = await world.take_over()
    session, found = second.dispatcher.sessions[hand.key], second.dispatcher.leases[lease.job.id]
    assert (session.is_claimed, session.opener, session.worker) == (False, hand.api_key, "hand")
    assert (session.tenant, session.slots) == (hand.tenant, {})
    assert found.running is not None
    assert found.running.kind == kind
    counted = {world.acme.id: 1} if is_own else {}
    assert second.dispatcher.sessions._of_tenant == {}, "it may be dead: it counts when it speaks"
    hand.platform = second
    assert await hand.say(hello=True, running=[holding(lease)]) is not None
    assert (session.is_claimed, second.dispatcher.sessions._of_tenant) == (True, counted)
    assert await hand.report(hand.done(lease)) == ({1}, set())
    await hand.say(goodbye=True)
    assert second.dispatcher.sessions._of_tenant == {}


async def test_only_the_key_that_opened_a_session_claims_it(world: World) -> None:
    """Another key of the same tenant could, until its worker spoke."""
    hand, lease = await world.busy(is_own=True)
    thief = await world.worker(is_own=True)
    thief.key = hand.key
    second = await world.take_over()
    hand.platform = thief.platform = second
    for _ in range(2):
        with pytest.raises(Forbidden) as told:
            await thief.say(hello=True, running=[holding(lease)])
        assert told.value.code == "SESSION_OF_ANOTHER_KEY"
        assert await hand.say(hello=True, running=[holding(lease)]) is not None
    assert await hand.report(hand.done(lease)) == ({1}, set())


@pytest.mark.parametrize(("is_own", "end"), [(True, "revoked_at"), (False, "expires_at")])
async def test_leases_of_a_key_that_ended_while_nobody_owned_them_end_at_once(
    world: World, end: str, *, is_own: bool
) -> None:
    """No server tells of a key any more that ended a minute ago; its worker says no hello."""
    hand, lease = await world.busy(is_own=is_own)
    statement = f"UPDATE api_keys SET {end} = now() - interval '1 minute' WHERE id = $1"
    await kill(world.first)
    await world.execute(statement, hand.api_key)
    second = await world.take_over()
    async with granted_anew(second, lease):
        assert hand.key not in second.dispatcher.sessions


@pytest.mark.parametrize("where", ["here", "on another server"])
async def test_a_key_revoked_after_the_take_over_ends_leases_of_who_was_not_heard(
    world: World, where: str
) -> None:
    hand, lease = await world.busy(is_own=True)
    second = await world.take_over()
    assert lease.job.id in second.dispatcher.leases
    async with granted_anew(second, lease):
        if where == "here":
            await second.directory.revoke_key(hand.api_key)
        else:  # all that this server can see of it
            statement = "UPDATE api_keys SET revoked_at = now() WHERE id = $1"
            await world.execute(statement, hand.api_key)
            await until(lambda: hand.key not in second.dispatcher.sessions)
        assert second.dispatcher.sessions._of_tenant == {}


async def test_a_session_that_the_store_knows_no_opener_of_is_nobodys(world: World) -> None:
    """Its row was written by an older server: then whoever may hold its leases claims it."""
    hand, lease = await world.busy(is_own=True)
    await kill(world.first)
    await world.execute("UPDATE worker_sessions SET tenant = NULL, opener = NULL")
    second = await world.take_over()
    session = second.dispatcher.sessions[hand.key]
    assert (session.is_known, session.tenant) == (False, None)
    await second.directory.revoke_key("another")
    assert lease.job.id in second.dispatcher.leases
    hand.platform = second
    assert await hand.say(hello=True, running=[holding(lease)]) is not None
    assert (session.opener, session.tenant) == (hand.api_key, world.acme.id)
    assert await hand.report(hand.done(lease)) == ({1}, set())


async def test_whose_a_session_is_is_written_before_its_first_lease(world: World) -> None:
    """The rescuer writes sessions down now and then, and a server may die before it did."""
    await world.first.loops["rescuer"].stop()
    hand, lease = await world.busy(is_own=True)
    second = await world.take_over()
    session = second.dispatcher.leases[lease.job.id].session
    assert (session.tenant, session.opener) == (world.acme.id, hand.api_key)


async def test_who_opened_its_name_at_the_next_owner_first_takes_nothing(world: World) -> None:
    """The store knows better: the thief's session is over, and the worker's lease stands."""
    hand, lease = await world.busy(is_own=True)
    mallory = await add_tenant(world.second, "mallory")
    thief = Hand(world.second, medium=1)
    thief.key, thief.api_key, thief.tenant = hand.key, "theirs", mallory.id
    await thief.say(hello=True, running=[])
    second = await world.take_over()
    with pytest.raises(Forbidden):
        await thief.say(hello=True, running=[])
    hand.platform = second
    news = await hand.say(hello=True, running=[holding(lease)])
    assert news is not None
    assert news.revoked == []
    assert second.dispatcher.leases[lease.job.id].session.tenant == world.acme.id


async def test_sessions_that_may_be_dead_leave_room_for_the_next_lives(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_table, "TENANT_SESSIONS_MAX", 1)
    hand, _ = await world.busy(is_own=True)
    second = await world.take_over()
    again = Hand(second, medium=1)
    again.api_key, again.tenant = hand.api_key, hand.tenant
    assert await again.say(hello=True, running=[]) is not None
