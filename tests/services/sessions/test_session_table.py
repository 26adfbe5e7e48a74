"""Many workers: they may fall silent together, and there are not more of them than may be."""

from __future__ import annotations

import secrets
import time

import pytest
from tests.services.dispatch.test_dispatcher import Machine
from tests.services.platform_room import Hand, freeze

from fairway.core.errors import LimitReached, Unavailable
from fairway.core.fair_share.own_slots import TENANT_SLOTS_MAX
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.sessions import session_table
from fairway.services.sessions.session_table import (
    SESSIONS_MAX,
    TENANT_SESSIONS_MAX,
    TENANTS_SESSIONS_MAX,
)
from fairway.services.sessions.sessions import ENDED_LEASES
from fairway.services.workers.rescuer import Rescuer

SHORT = PoolId(1)


async def test_many_that_fall_silent_together_are_counted_once(platform: Platform) -> None:
    """A count of all workers and all their types for each one that ends took seconds."""
    await freeze(platform)
    dispatcher, clock = platform.dispatcher, platform.clock
    for number in range(600):
        session = dispatcher.session(secrets.token_hex(16), "w", None)
        session.types = frozenset(map(TypeId, range(number * 3, number * 3 + 1500)))
        dispatcher.equip(session, {SHORT: 1})
    rescuer = Rescuer(platform.database, dispatcher, platform.settings)
    await rescuer.run_once(clock.now_us())
    async with platform.database.background() as connection:
        await connection.execute("UPDATE worker_sessions SET seen_at = seen_at - interval '1 hour'")
    later_us = clock.now_us() + round(3600e6)
    used_before = time.thread_time()
    await rescuer.run_once(later_us)
    assert time.thread_time() - used_before < 2.0  # some tenths; it was seven
    assert dispatcher.sessions == {}
    assert dispatcher.shares[SHORT]._competitors.capacity == 0


def test_a_tenant_has_so_many_sessions_and_those_here_are_not_harmed() -> None:
    machine = Machine()
    for number in range(TENANT_SESSIONS_MAX):
        machine.worker(f"w{number}", tenant=TenantId(7))
    with pytest.raises(LimitReached) as refused:
        machine.worker("one more", tenant=TenantId(7))
    assert refused.value.code == "TOO_MANY_SESSIONS"
    assert "one more" not in machine.dispatcher.sessions
    machine.worker("w0", tenant=TenantId(7))
    machine.worker("of another", tenant=TenantId(8))
    machine.worker("shared")
    machine.dispatcher.end_session(machine.dispatcher.sessions["w1"])
    machine.worker("one more", tenant=TenantId(7))


def test_a_tenants_own_workers_have_so_many_slots_together() -> None:
    """Each slot is a lease in memory, and it is they who say how many they have."""
    machine = Machine()
    book, half = machine.dispatcher, TENANT_SLOTS_MAX // 2
    one, other, third = [
        machine.worker(name, tenant=TenantId(7)) for name in ("one", "other", "third")
    ]
    book.offer_slots(one, half)
    book.offer_slots(other, half)
    with pytest.raises(LimitReached) as refused:
        book.offer_slots(third, 1)
    assert refused.value.code == "TOO_MANY_SLOTS"
    assert refused.value.retry_after_seconds
    book.offer_slots(other, half)  # a hello again, as after a restart of the server
    book.offer_slots(machine.worker("of another", tenant=TenantId(8)), TENANT_SLOTS_MAX)
    book.offer_slots(machine.worker("shared"), TENANT_SLOTS_MAX + 1)
    book.offer_slots(other, half - 1)
    book.offer_slots(third, 1)
    book.end_session(one)
    book.offer_slots(third, half + 1)


async def test_a_hello_with_too_many_slots_is_refused_and_heard_later(
    platform: Platform, tenant: Tenant
) -> None:
    first, second = Hand(platform, short=TENANT_SLOTS_MAX), Hand(platform, short=1)
    first.tenant = second.tenant = tenant.id
    assert await first.say(hello=True) is not None
    with pytest.raises(LimitReached, match="slots in all"):
        await second.say(hello=True)
    await first.say(goodbye=True)
    assert await second.say(hello=True) is not None


def test_runs_that_ended_and_are_not_reported_are_bounded() -> None:
    """They have no slot: a worker that names all its runs as ended would be given all there is."""
    machine = Machine()
    worker = machine.worker(short=5)
    machine.arrive(*[machine.job() for _ in range(300)])
    taken = 0
    while leases := machine.take(worker):
        taken += len(leases)
        for lease in leases:
            machine.dispatcher.reported(lease)
    assert taken == len(worker.leases) == 2 * 5 + ENDED_LEASES
    for lease in list(worker.leases.values())[:3]:
        machine.dispatcher.lost([lease])
    assert len(machine.take(worker)) == 3


def test_tenants_workers_leave_room_for_shared_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TENANT_SESSIONS_MAX < TENANTS_SESSIONS_MAX < SESSIONS_MAX
    monkeypatch.setattr(session_table, "TENANTS_SESSIONS_MAX", 4)
    monkeypatch.setattr(session_table, "SESSIONS_MAX", 6)
    machine = Machine()
    for number in range(4):
        machine.worker(f"w{number}", tenant=TenantId(number))
    with pytest.raises(Unavailable):
        machine.worker("one more", tenant=TenantId(9))
    machine.worker("shared 1")
    machine.worker("shared 2")
    with pytest.raises(Unavailable):
        machine.worker("shared 3")
    machine.worker("shared 1")


async def test_only_a_hello_makes_a_session(platform: Platform) -> None:
    hand = Hand(platform)
    assert await hand.say() is None
    assert hand.key not in platform.dispatcher.sessions
