"""A key that is revoked ends what goes on under it, and nothing of anybody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    Hand,
    add_tenant,
    another_directory,
    freeze,
    new,
    owner_on,
    stored,
    submit,
    until,
)

from fairway.core.errors import Forbidden
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.clock import ManualClock
from fairway.runtime.random_ids import new_api_key
from fairway.services.platform import Platform
from fairway.services.registry.type_names import Brought
from fairway.services.sessions.sessions import Lease
from fairway.services.workers.revocation import REMEMBERED_US, Revocation

SECONDS = 5.0


async def wait_under(platform: Platform, key_id: str) -> None:
    async with platform.revocation.held(key_id):
        await asyncio.sleep(60)


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    """Silent workers keep their leases for longer than a test takes."""
    patient = replace(QUICK, lease_seconds={"short": 60, "medium": 60, "long": 60})
    async with owner_on(database_url, patient) as platform:
        yield platform


async def idle(platform: Platform, tenant: Tenant | None = None) -> Hand:
    """A worker with a key of its own, of one tenant or of all."""
    key, whose = new_api_key("worker"), tenant.id if tenant else None
    await platform.directory.add_key(key, whose)
    hand = Hand(platform, medium=1)
    hand.api_key, hand.tenant = key.id, whose
    await hand.say(hello=True)
    return hand


async def busy(platform: Platform, tenant: Tenant | None) -> tuple[Hand, list[Lease]]:
    """The same, with a job that it runs."""
    hand = await idle(platform, tenant)
    return hand, await hand.take()


# -- what waits ------------------------------------------------------------------------------------


async def test_whoever_waits_under_a_key_is_stopped_and_nobody_else(platform: Platform) -> None:
    waits = [asyncio.create_task(wait_under(platform, key)) for key in ("a", "a", "b")]
    await asyncio.sleep(0)
    await platform.revocation.revoked({"a", "nobodys"})
    await platform.revocation.revoked({"a"})  # the store says it again
    done, _ = await asyncio.wait(waits[:2], timeout=SECONDS)
    assert [type(one.exception()) for one in done] == [Forbidden, Forbidden]
    assert all(getattr(one.exception(), "code", "") == "UNAUTHENTICATED" for one in done)
    assert not waits[2].done()
    waits[2].cancel()
    await asyncio.wait(waits)
    assert platform.revocation._held.names() == set()


async def test_a_wait_that_ends_by_itself_is_no_revocation(platform: Platform) -> None:
    with pytest.raises(TimeoutError):
        async with platform.revocation.held("a"), asyncio.timeout(0.01):
            await asyncio.sleep(60)
    with pytest.raises(ZeroDivisionError):
        async with platform.revocation.held("a"):
            raise ZeroDivisionError
    async with platform.revocation.held("a"):
        pass
    assert platform.revocation._held.names() == set()
    await platform.revocation.revoked({"a"})  # nobody is there


async def test_who_showed_the_key_before_it_was_revoked_begins_nothing_under_it(
    platform: Platform,
) -> None:
    """A body may be minutes on its way."""
    clock = ManualClock()
    revocation = Revocation(platform.dispatcher, clock)
    revocation.check("a")
    await revocation.revoked({"a"})
    revocation.check("b")
    with pytest.raises(Forbidden):
        revocation.check("a")
    with pytest.raises(Forbidden):
        async with revocation.held("a"):
            pass
    clock.advance(REMEMBERED_US / 1e6)  # one that had only run out may be good again by then
    revocation.check("a")
    await revocation.revoked({"b"})
    assert revocation._told_us.keys() == {"b"}


# -- workers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_own", [True, False])
async def test_the_sessions_of_a_workers_key_end_with_it(
    platform: Platform, tenant: Tenant, *, is_own: bool
) -> None:
    (job,) = await submit(platform, tenant, new(pool=MEDIUM))
    hand, (lease,) = await busy(platform, tenant if is_own else None)
    held = asyncio.create_task(hand.say(wait_seconds=15))
    await until(lambda: platform.dispatcher.sessions[hand.key].poll is not None)
    async with asyncio.timeout(SECONDS):
        await platform.directory.revoke_key(hand.api_key)
        with pytest.raises(Forbidden) as told:
            await held
        assert told.value.code == "UNAUTHENTICATED"
        assert hand.key not in platform.dispatcher.sessions
        heir, (again,) = await busy(platform, None)
    assert again.job.id == job
    assert again.epoch > lease.epoch
    assert (again.job.attempts, again.job.deliveries) == (0, 1), "it cost a delivery, no attempt"
    word = heir.done(again)
    assert await heir.report(word) == ({word.number}, set())


async def test_what_other_keys_run_goes_on(platform: Platform, tenant: Tenant) -> None:
    other = await add_tenant(platform, "other")
    await submit(platform, tenant, new(pool=MEDIUM))
    revoked, (lost,) = await busy(platform, tenant)
    await submit(platform, other, new(pool=MEDIUM))
    stays, (lease,) = await busy(platform, other)
    await platform.directory.revoke_key(revoked.api_key)
    assert lost.job.id not in platform.dispatcher.leases
    assert platform.dispatcher.leases[lease.job.id] is lease
    word = stays.done(lease)
    assert await stays.report(word) == ({word.number}, set())


async def test_a_call_under_way_when_its_key_is_revoked_is_given_nothing(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = await idle(platform)
    (job,) = await submit(platform, tenant, new("late", MEDIUM))
    asked, go = asyncio.Event(), asyncio.Event()
    names = platform.directory.names
    bring = names.bring

    async def slowly(*given: Any, **more: Any) -> Brought:
        asked.set()
        await go.wait()
        return await bring(*given, **more)

    monkeypatch.setattr(names, "bring", slowly)
    hand.types = ("late",)
    call = asyncio.create_task(hand.say(hello=True, wait_seconds=1))
    await asked.wait()
    await platform.directory.revoke_key(hand.api_key)
    go.set()
    with pytest.raises(Forbidden):
        await call
    assert await stored(platform, job) == (State.QUEUED, 0)
    assert job not in platform.dispatcher.leases


async def test_a_key_that_was_revoked_elsewhere_ends_with_the_next_look(
    platform: Platform, tenant: Tenant
) -> None:
    await submit(platform, tenant, new(pool=MEDIUM))
    hand, (lease,) = await busy(platform, tenant)
    waiting = asyncio.create_task(wait_under(platform, hand.api_key))
    await asyncio.sleep(0)
    await another_directory(platform.database).revoke_key(hand.api_key)  # of another server
    async with asyncio.timeout(SECONDS):  # its loop looks every two
        await until(lambda: hand.key not in platform.dispatcher.sessions)
        with pytest.raises(Forbidden):
            await waiting
    assert lease.job.id not in platform.dispatcher.leases


async def test_a_key_that_runs_out_ends_as_if_it_were_revoked(
    platform: Platform, tenant: Tenant
) -> None:
    await submit(platform, tenant, new(pool=MEDIUM))
    hand, (lease,) = await busy(platform, tenant)
    async with platform.database.background() as connection:
        await connection.execute(
            "UPDATE api_keys SET expires_at = now() WHERE id = $1", hand.api_key
        )
    async with asyncio.timeout(SECONDS):
        await until(lambda: hand.key not in platform.dispatcher.sessions)
    assert lease.job.id not in platform.dispatcher.leases


# -- keys of tenants that are not known ------------------------------------------------------------


@pytest.mark.parametrize("scope", ["worker", "tenant"])
async def test_a_key_whose_tenant_is_unknown_here_opens_nothing(
    platform: Platform, tenant: Tenant, scope: str
) -> None:
    """C23.5: without a tenant a worker's key is one for all of them."""
    await freeze(platform)
    key = new_api_key(scope)
    made = await another_directory(platform.database).add_tenant("elsewhere")
    assert made is not None
    await platform.directory.add_key(key, made.id)
    async with platform.database.background() as connection:  # a commit that came very late, say
        await connection.execute("UPDATE tenants SET updated_at = '2001-01-01' WHERE name = $1",
                                 made.name)  # fmt: skip
    assert await platform.directory.authenticate(key.text) is None
    assert platform.directory.known(key.text) is None
    async with platform.database.background() as connection:
        await connection.execute("UPDATE tenants SET updated_at = now() WHERE name = $1", made.name)
    principal = await platform.directory.authenticate(key.text)
    assert principal is not None
    assert principal.tenant is not None
    assert principal.tenant.id == made.id
