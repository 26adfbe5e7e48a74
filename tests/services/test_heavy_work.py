"""The lane for heavy work: one thread at a time, also when whoever asked has gone away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import LimitReached
from fairway.core.ids import TenantId
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Metrics
from fairway.services.backpressure.waiting_slots import HEAVY_TENANT_MAX, HeavyWork, waiting_room

MOMENT_SECONDS = 0.3
OUTER_SECONDS = 20


class Work:
    """Lasts until it is let go."""

    def __init__(self) -> None:
        self.has_begun, self.may_end, self.has_ended = (threading.Event() for _ in range(3))

    def __call__(self) -> None:
        self.has_begun.set()
        self.may_end.wait(OUTER_SECONDS)
        self.has_ended.set()


@pytest.fixture
def lane() -> HeavyWork:
    return HeavyWork(waiting_room(Settings(), Metrics()))


@pytest.fixture
def work() -> Iterator[Work]:
    work = Work()
    yield work
    work.may_end.set()


async def abandon(lane: HeavyWork, holder: int, work: Work) -> None:
    """Ask for it, and go away while it is under way."""
    asking = asyncio.create_task(lane.run(TenantId(holder), work))
    assert await asyncio.to_thread(work.has_begun.wait, OUTER_SECONDS)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize("holder", [1, STAFF], ids=["tenant", "staff"])
async def test_the_next_waits_for_work_that_nobody_wants_any_more(
    lane: HeavyWork, work: Work, holder: int
) -> None:
    await abandon(lane, holder, work)
    following = asyncio.create_task(lane.run(TenantId(holder), work.has_ended.is_set))
    await asyncio.wait({following}, timeout=MOMENT_SECONDS)
    work.may_end.set()
    async with asyncio.timeout(OUTER_SECONDS):
        assert await following, "two ran at a time"


async def test_work_that_nobody_wants_keeps_its_place(lane: HeavyWork, work: Work) -> None:
    await abandon(lane, 1, work)
    others = [asyncio.create_task(lane.run(TenantId(1), int)) for _ in range(HEAVY_TENANT_MAX - 1)]
    await asyncio.sleep(0)
    with pytest.raises(LimitReached):
        await lane.run(TenantId(1), int)
    others[0].cancel()  # one that only waits gives its place back at once
    await asyncio.wait({others[0]})
    others[0] = asyncio.create_task(lane.run(TenantId(1), int))
    await asyncio.sleep(0)
    work.may_end.set()
    async with asyncio.timeout(OUTER_SECONDS):
        assert await asyncio.gather(*others) == [0] * len(others)


async def test_an_error_is_heard_and_frees_the_lane(lane: HeavyWork) -> None:
    for _ in range(HEAVY_TENANT_MAX + 1):
        with pytest.raises(ZeroDivisionError):
            await lane.run(TenantId(1), lambda: 1 // 0)
