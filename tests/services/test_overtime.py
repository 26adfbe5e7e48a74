"""Runs past their time limit: the server takes them back when their worker does not end them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.services.platform_room import MEDIUM, QUICK, SHORT, Hand, new, owner_on, sight, submit

from fairway.core.lease import longest_us
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform

SETTINGS = replaced(QUICK, lease_seconds={}, term_seconds=3.0, timeout_grace_seconds=0.3)


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    async with owner_on(database_url, SETTINGS) as platform:
        yield platform


async def revoked_at(hand: Hand) -> list[str]:
    """What a worker that only beats is told to stop."""
    async with asyncio.timeout(10):
        while True:
            news = await hand.say(wait_seconds=0.1)
            assert news is not None
            if news.revoked:
                return news.revoked


@pytest.mark.parametrize("pool", [SHORT, MEDIUM])
async def test_a_worker_that_beats_and_never_ends_a_job_loses_it(
    platform: Platform, tenant: Tenant, pool: int
) -> None:
    limited, free = await submit(platform, tenant, new(pool=pool, timeout_ms=200), new(pool=pool))
    hand = Hand(platform, short=2, medium=2)
    leases = {lease.job.id: lease for lease in await hand.take(2)}
    assert await revoked_at(hand) == [limited]
    await platform.recorder.drain()
    assert await hand.report(hand.done(leases[limited])) == (set(), {1}), "too late"
    record = (await sight(platform, tenant, limited)).record
    assert (record.state, record.attempts) == (State.SCHEDULED, 1), "tried once more"
    assert record.failures == [0, 1, 0, 0, 0]
    (note,) = [json.loads(text) for text in record.history or ()]
    assert (note["outcome"], note["error"]["failure"]) == ("failed", "timeout")
    assert note["ran_seconds"] >= 0.5
    assert (await sight(platform, tenant, free)).record.state == State.RUNNING, "no limit, no end"


@given(st.integers(1, 1 << 31), st.floats(0.1, 3600), st.integers(0, 1 << 40))
def test_the_platform_waits_longer_than_the_worker(
    timeout_ms: int, grace_seconds: float, large_bytes: int
) -> None:
    left_us = longest_us(timeout_ms, grace_seconds, large_bytes) - timeout_ms * 1000
    assert left_us >= round(grace_seconds * 1e6)
    assert left_us >= timeout_ms * 100
    assert left_us >= large_bytes
