"""Large results while storage is away: bounded in memory, kept at their workers, none lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.services.platform_room import (
    HANG_SECONDS,
    QUICK,
    SHORT,
    Hand,
    Word,
    add_tenant,
    new,
    owner_on,
    sight,
    submit,
    until,
)

from fairway.core.failure.circuits import Circuit, CircuitSettings
from fairway.core.ids import Epoch, ShardId
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Holding, Lease

INLINE, ROOM = 1_000, 10_000  # so each tenant's part is 2 500
LARGE = b'"' + b"x" * 1_998 + b'"'


@pytest.fixture
async def platform(database_url: str, tmp_path: Path) -> AsyncIterator[Platform]:
    settings = replaced(
        QUICK, lease_seconds={}, term_seconds=30.0, data_dir=tmp_path, inline_bytes_max=INLINE,
        results_waiting_bytes_max=ROOM, timeout_grace_seconds=0.1,
    )  # fmt: skip
    async with owner_on(database_url, settings) as platform:
        yield platform


def holding(word: Word, tenant: Tenant) -> Holding:
    return Holding(word.job, tenant.id, Epoch(word.epoch), word.token)


def block(folder: Path) -> Path:
    """Storage that cannot be written to, until the file is removed."""
    in_the_way = folder / "objects" / "results"
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.write_text("a file where a folder must be: storage is away")
    return in_the_way


class Teller:
    """A worker that says what is new once, and all that is not heard of when it is asked to."""

    def __init__(self, hand: Hand, tenant: Tenant, words: list[Word]) -> None:
        self.hand, self.tenant, self.unheard = hand, tenant, {word.n: word for word in words}
        self.fresh = words
        self.resyncs = 0

    async def speak(self) -> None:
        words, self.fresh = self.fresh, []
        news = await self.hand.say(reports=words, wait_seconds=0.1)
        while news is None:  # also to a hello, should there be room again while it is heard
            self.resyncs += 1
            words = list(self.unheard.values())
            held = [holding(word, self.tenant) for word in words]
            news = await self.hand.say(hello=True, running=held, reports=words)
        assert not news.refused
        for number in news.recorded:
            self.unheard.pop(number, None)


async def test_what_finds_no_room_stays_at_its_worker_until_there_is_some(
    platform: Platform, tenant: Tenant, tmp_path: Path
) -> None:
    """Its time limit passes meanwhile, and is nobody's business any more: the run has ended."""
    in_the_way = block(tmp_path)
    await platform.loops["overtime"].stop()  # until the ends are told, however long that takes
    limited = new(timeout_ms=100)
    jobs = await submit(platform, tenant, *[limited] * 5)
    hand = Hand(platform, short=5)
    *many, small = await hand.take(5)
    teller = Teller(hand, tenant, [hand.done(one, result=LARGE) for one in many])
    await teller.speak()
    assert await hand.report(hand.done(small)) == ({5}, set()), "a small one needs no storage"
    platform.loops["overtime"].start()
    other = await add_tenant(platform, "other")
    (theirs,) = await submit(platform, other)
    neighbour = Hand(platform, short=1)
    (lease,) = await neighbour.take()
    their_teller = Teller(neighbour, other, [neighbour.done(lease, result=LARGE)])
    await their_teller.speak()
    assert theirs not in platform.dispatcher.leases, "taken: each tenant has its own part"
    for _ in range(10):
        await teller.speak()
    assert teller.resyncs == 0, "there is no room: nothing is asked for"
    assert platform.recorder.large_results.bytes_held == 2 * len(LARGE)
    assert sum(job in platform.dispatcher.leases for job in jobs) == 3, "not taken, not lost"
    explained = await platform.explainer.explain(other.id, theirs, platform.clock.now_us())
    assert explained.reason == "running"
    assert "waits to be stored" in explained.note
    in_the_way.unlink()
    async with asyncio.timeout(HANG_SECONDS):
        while teller.unheard or their_teller.unheard:
            await teller.speak()
            await their_teller.speak()
    assert teller.resyncs > 0
    assert platform.recorder.large_results.bytes_held == 0
    assert platform.recorder.large_results.waiting == {}
    for job in jobs:
        assert (await sight(platform, tenant, job)).record.state == State.SUCCEEDED


async def test_a_run_that_ended_holds_no_slot_though_its_result_finds_no_room(
    platform: Platform, tenant: Tenant, tmp_path: Path
) -> None:
    block(tmp_path)
    jobs = await submit(platform, tenant, *[new()] * 4)
    hand = Hand(platform, short=4)
    teller = Teller(hand, tenant, [hand.done(one, result=LARGE) for one in await hand.take(4)])
    await teller.speak()
    assert sum(job in platform.dispatcher.leases for job in jobs) == 3, "only one found room"
    other = await add_tenant(platform, "other")
    theirs = await submit(platform, other, *[new()] * 4)
    leases: list[Lease] = []
    async with asyncio.timeout(HANG_SECONDS):
        while len(leases) < 4:
            news = await hand.say(wait_seconds=0.2)
            assert news is not None
            leases += news.leases
    assert {lease.job.id for lease in leases} == set(theirs)
    words = [hand.done(lease) for lease in leases]
    assert (await hand.report(*words))[0] == {word.n for word in words}
    session = platform.dispatcher.sessions[hand.key]
    assert session.in_use[SHORT] == 0
    for one in list(session.leases.values()):
        platform.dispatcher.lost([one])
    assert session.in_use[SHORT] == 0, "given back once, not twice"
    assert platform.dispatcher.shares[SHORT].standings.running(tenant.id) == 0


async def test_what_storage_does_not_take_for_long_is_tried_again_later(
    platform: Platform,
    tenant: Tenant,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    in_the_way = block(tmp_path)
    platform.recorder.large_results.patience = lambda ran_us: 1.0
    jobs = await submit(platform, tenant, *[new()] * 4)
    hand = Hand(platform, short=4)
    teller = Teller(hand, tenant, [hand.done(one, result=LARGE) for one in await hand.take(4)])
    async with asyncio.timeout(HANG_SECONDS):
        while teller.unheard:  # nothing waits for ever, neither here nor at its worker
            await teller.speak()
    assert platform.recorder.large_results.bytes_held == 0
    for job in jobs:
        found = (await sight(platform, tenant, job)).record
        assert not State(found.state).is_final, "it may run again already"
        error = json.loads(found.error or b"{}")
        assert (error["failure"], error["dependency"]) == ("dependency", "object storage")
    told = [line for line in capsys.readouterr().out.splitlines() if "results wait" in line]
    assert 1 <= len(told) <= 4, "not a line for every result and every try"
    in_the_way.unlink()


async def test_a_result_that_storage_does_not_have_is_no_success_of_storage(
    platform: Platform, tenant: Tenant, tmp_path: Path
) -> None:
    """Or its circuit would close, and let the next jobs run in vain."""
    in_the_way = block(tmp_path)
    (job,) = await submit(platform, tenant, new())
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    failure_policy = platform.dispatcher.failure_policy
    circuit = Circuit(CircuitSettings(calls_min=1, failures_percent=60))
    failure_policy.circuits.put(tenant.id, lease.job.type, "object storage", circuit)
    failure_policy.watched.add(tenant.id)
    await hand.say(reports=[hand.done(lease, result=LARGE)])
    assert job not in platform.dispatcher.leases, "its report was taken"
    assert circuit.failed(platform.clock.now_us(), 0), "one call, one failure: it opens"
    in_the_way.unlink()
    await until(lambda: platform.recorder.large_results.bytes_held == 0)


async def test_a_result_is_not_recorded_once_its_shard_went_and_came_back(
    platform: Platform, tenant: Tenant, tmp_path: Path
) -> None:
    """Its worker says it again; what it said to the owner of another term proves nothing."""
    (job,) = await submit(platform, tenant)
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    in_the_way = block(tmp_path)
    await hand.say(reports=[hand.done(lease, result=LARGE)])
    await until(lambda: job in platform.recorder.large_results.waiting)
    await platform.loops["ownership"].stop()
    async with platform.database.background() as connection:
        await connection.execute("UPDATE shards SET term = term + 1")
        term = await connection.fetchval("SELECT term FROM shards")
    platform.dispatcher.close_shard(ShardId(0))
    platform.dispatcher.claim_shard(ShardId(0), term)
    in_the_way.unlink()
    await until(lambda: not platform.recorder.large_results.bytes_held)
    await platform.recorder.drain()
    assert (await sight(platform, tenant, job)).record.state != State.SUCCEEDED
