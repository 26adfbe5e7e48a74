"""What gathers in memory while the store or a worker is slow: bounded in bytes, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.services.platform_room import (
    QUICK,
    Hand,
    Word,
    holding,
    new,
    owner_on,
    sight,
    submit,
)

from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease

ROOM = 50_000
RESULT = b'"' + b"x" * 29_998 + b'"'


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    settings = replaced(QUICK, lease_seconds={}, term_seconds=3.0, results_waiting_bytes_max=ROOM)
    async with owner_on(database_url, settings) as platform:
        yield platform


# -- small results ---------------------------------------------------------------------------


async def test_results_wait_at_their_workers_while_the_store_is_behind(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    jobs = await submit(platform, tenant, *[new()] * 4)
    hand = Hand(platform, short=4)
    leases = await hand.take(4)
    words = [hand.done(lease, result=RESULT) for lease in leases[:3]]
    other = await asyncpg.connect(database_url)
    try:
        async with other.transaction():
            await other.execute("LOCK TABLE jobs IN SHARE ROW EXCLUSIVE MODE")
            for word in words:
                await hand.say(reports=[word])
            assert platform.recorder.bytes_waiting == 2 * len(RESULT), "over the bound by one"
            assert set(hand_jobs(hand)) == {words[2].job, leases[3].job.id}, "not taken"
            await hand.say(reports=[hand.done(leases[3])])
            assert hand_jobs(hand) == [words[2].job], "what is small is heard all the same"
    finally:
        await other.close()
    await until_heard(hand, leases[:3], words)
    for job in jobs:
        assert (await sight(platform, tenant, job)).record.state == State.SUCCEEDED
    await platform.recorder.drain()
    assert platform.recorder.bytes_waiting == 0


def hand_jobs(hand: Hand) -> list[str]:
    return list(hand.platform.dispatcher.sessions[hand.key].leases)


async def until_heard(hand: Hand, leases: list[Lease], words: list[Word]) -> None:
    """As a worker: it says what is not heard of when it is asked who it is."""
    unheard = {word.n: word for word in words}
    async with asyncio.timeout(30):
        while unheard:
            news = await hand.say(wait_seconds=0.1)
            if news is None:
                held = [holding(one) for one in leases]
                news = await hand.say(hello=True, running=held, reports=list(unheard.values()))
            assert news is not None
            assert not news.refused
            for number in news.recorded:
                unheard.pop(number, None)


# -- payloads of running jobs ------------------------------------------------------------------
