"""Who finds the heavy lane taken stands in line: within bounds, and tenants in turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import LimitReached
from fairway.core.ids import TenantId
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Metrics
from fairway.services.backpressure.waiting_slots import (
    HEAVY_BYTES,
    HEAVY_SHARED_BYTES,
    HEAVY_TENANT_BYTES,
    HEAVY_TENANT_MAX,
    HeavyWork,
    Turns,
    waiting_room,
)

GREEDY, OTHER = TenantId(1), 2
MB = 1 << 20


class Held:
    """A lane that is taken until `release`, and who stands in line for it."""

    def __init__(self) -> None:
        self.lane = HeavyWork(waiting_room(Settings(), Metrics()))
        self.order: list[int] = []
        self._may_go = threading.Event()
        self._tasks = [asyncio.create_task(self.lane.run(TenantId(0), self._hold))]

    def _hold(self) -> None:
        self._may_go.wait(20)

    async def queue(self, tenant: int, size_bytes: int = 0) -> None:
        """Raises what refuses it; else it stands in line."""
        work = self.lane.run(TenantId(tenant), lambda: self.order.append(tenant), size_bytes)
        task = asyncio.create_task(work)
        await asyncio.sleep(0)
        if task.done():
            task.result()
        self._tasks.append(task)

    async def release(self) -> None:
        self._may_go.set()
        async with asyncio.timeout(20):
            await asyncio.gather(*self._tasks)


@pytest.fixture
async def held() -> AsyncIterator[Held]:
    held = Held()
    await asyncio.sleep(0)
    yield held
    await held.release()
    assert not held.lane._bytes
    assert not held.lane._turns._lines
    assert held.lane._total_bytes == 0


async def test_tenants_take_turns(held: Held) -> None:
    for tenant in [GREEDY] * 5 + [OTHER] * 2:
        await held.queue(tenant)
    await held.release()
    assert held.order == [GREEDY, OTHER, GREEDY, OTHER, GREEDY, GREEDY, GREEDY]


async def test_a_line_has_an_end_for_each_tenant(held: Held) -> None:
    for _ in range(HEAVY_TENANT_MAX):
        await held.queue(GREEDY)
    with pytest.raises(LimitReached, match=f"You have {HEAVY_TENANT_MAX}") as caught:
        await held.queue(GREEDY)
    assert (caught.value.code, caught.value.retry_after_seconds) == ("TOO_MANY_WAITING", 1)
    await held.queue(OTHER)


async def test_bytes_in_line_are_bounded_by_tenant_and_in_all(held: Held) -> None:
    await held.queue(GREEDY, HEAVY_TENANT_BYTES - MB)
    with pytest.raises(LimitReached, match="63 MB of your large bodies"):
        await held.queue(GREEDY, 2 * MB)
    for tenant in range(2, 2 + HEAVY_SHARED_BYTES // HEAVY_TENANT_BYTES):
        await held.queue(tenant, HEAVY_TENANT_BYTES - MB)
    with pytest.raises(LimitReached, match="This server has"):
        await held.queue(GREEDY, MB)
    for tenant in range(100, 104):  # who has none there yet still finds room
        await held.queue(tenant, 16 * MB)
    with pytest.raises(LimitReached, match="This server has"):
        await held.queue(104, 16 * MB)
    assert held.lane._total_bytes <= HEAVY_BYTES


async def test_who_leaves_the_line_passes_the_turn_on() -> None:
    turns = Turns()
    await turns.take(GREEDY)
    waiting = [
        asyncio.create_task(turns.take(TenantId(tenant))) for tenant in (GREEDY, OTHER, OTHER)
    ]
    await asyncio.sleep(0)
    waiting[1].cancel()  # it only waits
    turns.give_back()
    waiting[0].cancel()  # its turn has come, and it has not noticed yet
    async with asyncio.timeout(20):
        await waiting[2]
    turns.give_back()
    assert not turns._lines
    assert not turns._is_taken
    await asyncio.gather(*waiting, return_exceptions=True)


def test_tenants_leave_places_for_those_who_look_after_the_platform() -> None:
    rooms = waiting_room(Settings(streams_max=20, streams_per_tenant=10), Metrics())
    for tenant in range(1, 19):
        rooms.take("streams", TenantId(tenant))
    assert not rooms.has_slot("streams", TenantId(99))
    with pytest.raises(LimitReached):
        rooms.take("streams", TenantId(99))
    for _ in range(2):
        rooms.take("streams", STAFF)
    with pytest.raises(LimitReached):
        rooms.take("streams", STAFF)
    rooms.give_back("streams", TenantId(1))
    rooms.take("streams", TenantId(99))
