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
    until,
)

from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform
from fairway.services.sessions import Lease

ROOM = 50_000
RESULT = b'"' + b"x" * 29_998 + b'"'
PAYLOAD = b'{"text":"%b"}' % (b"x" * 10_000)


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    settings = replaced(
        QUICK, lease_seconds={}, term_seconds=3.0, results_waiting_bytes_max=ROOM,
        window_bytes=2 * len(PAYLOAD),
    )  # fmt: skip
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
    async with asyncio.timeout(10):
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


async def test_payloads_of_running_jobs_are_let_go_and_come_back_whole(
    platform: Platform, tenant: Tenant
) -> None:
    jobs = await submit(platform, tenant, *[new(payload=PAYLOAD)] * 6)
    hand = Hand(platform, short=6)
    leases = await hand.take(6)
    held = platform.dispatcher.leases

    def kept() -> int:
        return sum(bool(lease.job.payload) for lease in held.values())

    await until(lambda: kept() == 2)
    assert len(held) == 6
    assert all(leases[-n].job.payload for n in (1, 2)), "the youngest keep theirs"
    await hand.say(goodbye=True)  # its jobs are lost, and granted again
    again = Hand(platform, short=6)
    said: dict[str, bytes] = {}
    async with asyncio.timeout(10):
        news = await again.say(hello=True)
        while len(said) < 6:
            assert news is not None
            said |= {lease.job.id: lease.job.payload for lease in news.leases}
            news = await again.say(wait_seconds=0.2)
    assert said == dict.fromkeys(jobs, PAYLOAD)


async def test_a_lease_without_its_payload_is_sent_again_whole(
    platform: Platform, tenant: Tenant
) -> None:
    """Its reply was lost: the worker says hello and does not name it."""
    await submit(platform, tenant, *[new(payload=PAYLOAD)] * 6)
    hand = Hand(platform, short=6)
    leases = await hand.take(6)
    await until(lambda: not leases[0].job.payload)
    news = await hand.say(hello=True, running=[holding(one) for one in leases[1:]])
    assert news is not None
    found = list(news.leases)
    async with asyncio.timeout(10):
        while not found:
            news = await hand.say(wait_seconds=0.1)
            assert news is not None
            found += news.leases
    assert [(one.job.id, one.job.payload) for one in found] == [(leases[0].job.id, PAYLOAD)]
