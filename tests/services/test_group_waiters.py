"""Those who wait for a group's work are answered in time, each as the work or the clock says."""

from __future__ import annotations

import asyncio
import time

import pytest

from fairway.core.errors import Unavailable
from fairway.services.group_waiters import CROWD, GroupWaiters


async def test_everybody_is_answered_within_the_time() -> None:
    waiters, loop = GroupWaiters(0.4, Unavailable), asyncio.get_running_loop()
    began = time.monotonic()
    answered: asyncio.Future[int] = loop.create_future()
    forgotten: list[asyncio.Future[int]] = []
    waiters.add(answered)
    for _ in range(4):
        forgotten.append(loop.create_future())
        waiters.add(forgotten[-1])
        await asyncio.sleep(0.03)
    answered.set_result(1)
    async with asyncio.timeout(30):
        for waiter in forgotten:
            with pytest.raises(Unavailable):
                await waiter
    assert time.monotonic() - began >= 0.25  # nobody is sent away long before it
    assert await answered == 1


async def test_who_was_answered_or_left_is_forgotten() -> None:
    waiters, loop = GroupWaiters(0.08, Unavailable), asyncio.get_running_loop()
    for _ in range(2):  # the second time the look must begin anew
        left: asyncio.Future[int] = loop.create_future()
        waiters.add(left)
        left.cancel()
        late: asyncio.Future[int] = loop.create_future()
        waiters.add(late)
        async with asyncio.timeout(30):
            with pytest.raises(Unavailable):
                await late
            while waiters._timer is not None:  # noqa: ASYNC110  # a timer tells nobody
                await asyncio.sleep(0.01)


async def test_who_was_answered_is_let_go_early_and_the_rest_in_time() -> None:
    waiters, loop = GroupWaiters(0.4, Unavailable), asyncio.get_running_loop()
    forgotten: list[asyncio.Future[int]] = []
    for number in range(20 * CROWD):
        waiter: asyncio.Future[int] = loop.create_future()
        waiters.add(waiter)
        if number % 10:
            waiter.set_result(number)
        else:
            forgotten.append(waiter)
    assert len(waiters._fresh) < 2 * len(forgotten) + 2 * CROWD
    async with asyncio.timeout(30):
        heard = await asyncio.gather(*forgotten, return_exceptions=True)
    assert all(isinstance(one, Unavailable) for one in heard)
