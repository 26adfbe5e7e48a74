"""Runs past their time limit: the server takes them back when their worker does not end them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.postgres import connected
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    SHORT,
    Hand,
    add_tenant,
    holding,
    new,
    owner_on,
    sight,
    submit,
    until,
)

from fairway.core.lifecycle import State
from fairway.core.run.lease import is_overtime, longest_us
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease, Session

SETTINGS = replaced(QUICK, lease_seconds={}, term_seconds=3.0, timeout_grace_seconds=0.3)


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    async with owner_on(database_url, SETTINGS) as platform:
        yield platform


async def revoked_at(hand: Hand) -> list[str]:
    """What a worker that only beats is told to stop."""
    async with asyncio.timeout(30):
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


@given(
    st.integers(0, 1 << 40),
    st.integers(0, 1 << 40),
    st.one_of(st.none(), st.integers(0, 1 << 40)),
    st.integers(0, 1 << 40),
)
def test_only_who_had_the_time_to_report_loses_a_run(
    heard_us: int, limit_us: int, spoken_us: int | None, grace_us: int
) -> None:
    is_over = is_overtime(heard_us, limit_us, spoken_us, grace_us)
    assert is_over == (spoken_us is not None and spoken_us > grace_us and heard_us > limit_us)


@given(
    st.integers(1, 1 << 30),
    st.lists(st.integers(0, 1 << 34), min_size=1),
    st.integers(0, 1 << 34),
)
def test_however_often_a_worker_beats_it_cannot_put_the_end_off(
    grace_us: int, pauses_us: list[int], hello_us: int
) -> None:
    """A silence is long only if the grace fits into it: the next such silence ends the wait."""
    session = Session("s", hello_us)
    session.there_since_us = now_us = hello_us
    waited_us = 0
    for pause_us in pauses_us:
        waited_us = max(waited_us, now_us + pause_us - session.there_since_us)
        now_us += pause_us
        session.heard(now_us, grace_us)
        assert session.seen_us == now_us
    if sum(pauses_us) > grace_us:
        assert waited_us > grace_us


# -- what came late to its worker ------------------------------------------------------------------


async def beats_on(hand: Hand, lease: Lease, seconds: float) -> None:
    """A worker that runs this, and is told nothing of it."""
    until_us = hand.platform.clock.now_us() + round(seconds * 1e6)
    while hand.platform.clock.now_us() < until_us:
        news = await hand.say(wait_seconds=0.05)
        assert news is not None
        assert not news.revoked, "it has only just begun"


async def test_a_lease_that_waited_for_the_store_has_its_whole_time(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    (job,) = await submit(platform, tenant, new(pool=MEDIUM, timeout_ms=1_500))
    hand = Hand(platform, medium=1)
    async with connected(database_url) as other, other.transaction():
        await other.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", job)
        await hand.say(hello=True)
        await until(lambda: job in platform.dispatcher.leases)
        await beats_on(hand, platform.dispatcher.leases[job], 2.2)
    (lease,) = await hand.take()
    await beats_on(hand, lease, 0.8)
    assert await hand.report(hand.done(lease)) == ({1}, set())


async def test_a_lease_that_was_sent_again_has_its_whole_time(
    platform: Platform, tenant: Tenant
) -> None:
    await submit(platform, tenant, new(timeout_ms=1_500))
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    await rounds(platform, tenant, lease)
    assert await hand.take() == [lease], "the first reply was lost"
    await beats_on(hand, lease, 0.8)
    assert await hand.report(hand.done(lease)) == ({1}, set())


# -- who could not speak ---------------------------------------------------------------------------


async def rounds(platform: Platform, tenant: Tenant, lease: Lease) -> None:
    """Time passes until the run is long past its limit, and the server looks several times."""
    limit_us = longest_us(lease.job.timeout_ms or 0, SETTINGS.timeout_grace_seconds, 0)
    await until(lambda: platform.clock.now_us() > lease.granted_us + 2 * limit_us)
    other = Hand(platform, short=1)
    (due,) = await submit(platform, tenant, new(timeout_ms=1))
    (seen,) = await other.take()
    assert seen.job.id == due
    assert await revoked_at(other) == [due], "it does look"


async def test_a_worker_whose_link_was_away_reports_what_ended_in_time(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant, new(pool=MEDIUM, timeout_ms=200))
    hand = Hand(platform, medium=1)
    (lease,) = await hand.take()
    await rounds(platform, tenant, lease)
    news = await hand.say(hello=True, running=[holding(lease)])
    assert news is not None
    assert not news.revoked, "its heavy report comes in a call of its own"
    assert await hand.report(hand.done(lease)) == ({1}, set())
    assert (await sight(platform, tenant, job)).record.state == State.SUCCEEDED


async def test_a_run_that_ended_while_the_server_was_away_is_not_late(database_url: str) -> None:
    async with owner_on(database_url, SETTINGS) as first:
        tenant = await add_tenant(first)
        (job,) = await submit(first, tenant, new(pool=MEDIUM, timeout_ms=200))
        hand = Hand(first, medium=1)
        (lease,) = await hand.take()
    async with owner_on(database_url, SETTINGS) as second:
        await rounds(second, tenant, lease)
        hand.platform = second
        report = hand.done(lease)
        news = await hand.say(hello=True, reports=[report], wait_seconds=5, draining=True)
        assert news is not None
        assert (news.recorded, news.refused) == ([1], [])
        record = (await sight(second, tenant, job)).record
        assert (record.state, record.attempts) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize("hello", [False, True])
async def test_a_run_that_is_said_to_have_ended_waits_for_its_report(
    platform: Platform, tenant: Tenant, hello: bool
) -> None:
    await submit(platform, tenant, new(timeout_ms=200))
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    await hand.say(hello=hello, running=[holding(lease)._replace(ended=True)])
    await rounds(platform, tenant, lease)
    await hand.say()
    await rounds(platform, tenant, lease)
    news = await hand.say()
    assert news is not None
    assert not news.revoked
    assert await hand.report(hand.done(lease)) == ({1}, set())
