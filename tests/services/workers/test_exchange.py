"""The exchange: hello, resync, reports judged, and calls that are held until there is news."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.services.platform_room import (
    MEDIUM,
    Hand,
    add_tenant,
    freeze,
    holding,
    new,
    stored,
    submit,
    until,
)

from fairway.core.errors import InvalidRequest
from fairway.core.ids import Epoch, ShardId
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime import loops
from fairway.services.platform import Platform


async def test_a_stranger_must_say_hello_first(platform: Platform) -> None:
    assert await Hand(platform).say() is None


async def test_an_unknown_pool_is_named(platform: Platform) -> None:
    with pytest.raises(InvalidRequest, match="tiny"):
        await Hand(platform, tiny=1).say(hello=True)


async def test_a_held_call_is_answered_by_an_arrival(platform: Platform, tenant: Tenant) -> None:
    hand = Hand(platform)
    await hand.say(hello=True)
    held = asyncio.create_task(hand.say(wait_seconds=5))
    await asyncio.sleep(0.01)
    (job,) = await submit(platform, tenant)
    news = await asyncio.wait_for(held, 1)
    assert news is not None
    assert [lease.job.id for lease in news.leases] == [job]


async def test_a_held_call_ends_with_its_time(platform: Platform) -> None:
    hand = Hand(platform)
    began = time.monotonic()
    news = await hand.say(hello=True, wait_seconds=0.1)
    assert news is not None
    assert (news.leases, news.recorded) == ([], [])
    assert 0.05 < time.monotonic() - began < 20


async def test_a_newer_call_answers_the_held_one(platform: Platform) -> None:
    hand = Hand(platform)
    await hand.say(hello=True)
    held = asyncio.create_task(hand.say(wait_seconds=5))
    await asyncio.sleep(0.01)
    await hand.say(wait_seconds=0.01)
    assert await asyncio.wait_for(held, 1) is not None


async def test_a_lease_whose_reply_was_lost_is_sent_again(
    platform: Platform, tenant: Tenant
) -> None:
    await submit(platform, tenant, new(), new())
    hand = Hand(platform)
    heard, missed = await hand.take(2)
    news = await hand.say(hello=True, running=[holding(heard)])
    assert news is not None
    assert news.leases == [missed]


async def test_a_call_that_a_hello_overtook_takes_nothing(
    platform: Platform, tenant: Tenant
) -> None:
    """Its worker has given it up: leases that left with its reply would be heard by nobody."""
    hand = Hand(platform)
    hand.call = 3
    await hand.say(hello=True)
    await submit(platform, tenant)
    hand.call = 2
    late = await hand.say()
    assert late is not None
    assert late.leases == []
    hand.call = 4
    news = await hand.say()
    assert news is not None
    assert len(news.leases) == 1


async def test_a_long_hello_that_another_overtook_changes_no_types(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read in parts, and a worker that gave it up may say another one meanwhile."""
    monkeypatch.setattr(loops, "PART_SECONDS", 0.0)
    hand = Hand(platform, types=[f"long{number}" for number in range(20)])
    await platform.directory.know_types(["work", *hand.types])
    long = asyncio.create_task(hand.say(hello=True))
    await asyncio.sleep(0.01)
    hand.types = ("work",)
    await hand.say(hello=True)
    await long
    types = platform.dispatcher.sessions[hand.key].types
    assert types == {platform.directory.type_ids["work"]}


async def test_reports_of_a_call_that_a_hello_overtook_are_asked_for_again(
    platform: Platform, tenant: Tenant
) -> None:
    """It may only have been slower than a hello beside it: then it is the one that says them."""
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    word = hand.done(lease)
    hand.call = 3
    await hand.say(hello=True, running=[holding(lease)])
    hand.call = 2
    assert await hand.say(reports=[word]) is None
    hand.call = 4
    await hand.say(hello=True, running=[holding(lease)], reports=[word])
    await until(lambda: lease.job.id not in platform.dispatcher.leases)
    hand.call = 0
    assert await hand.report(word) == ({word.number}, set())
    assert (await stored(platform, job))[0] is State.SUCCEEDED


async def test_a_held_call_that_a_hello_overtook_takes_nothing(
    platform: Platform, tenant: Tenant
) -> None:
    hand = Hand(platform)
    await hand.say(hello=True)
    held = asyncio.create_task(hand.say(wait_seconds=5))
    await asyncio.sleep(0.01)
    hello = asyncio.create_task(hand.say(hello=True, wait_seconds=5))
    await asyncio.sleep(0)
    await submit(platform, tenant)
    old, new_one = await asyncio.wait_for(held, 1), await asyncio.wait_for(hello, 1)
    assert old is not None
    assert new_one is not None
    assert (old.leases, len(new_one.leases)) == ([], 1)


async def test_what_a_worker_wrongly_believes_to_hold_is_revoked(
    platform: Platform, tenant: Tenant
) -> None:
    await submit(platform, tenant, new(), new())
    hand, thief = Hand(platform), Hand(platform, ["nothing"])
    lease, other = await hand.take(2)
    stale = holding(other)._replace(epoch=Epoch(other.epoch - 1))
    news = await hand.say(hello=True, running=[holding(lease), stale])
    assert news is not None
    assert (news.revoked, news.revoked_epochs) == ([other.job.id], [stale.epoch])
    news = await thief.say(hello=True, running=[holding(lease)])
    assert news is not None
    assert news.revoked == [lease.job.id]
    assert platform.dispatcher.leases[lease.job.id].session.key == hand.key


@pytest.mark.parametrize(
    "forgery",
    [{"epoch": 1}, {"token": "0" * 32}, {"job": "01890000-0000-7000-8000-000000000000"}],
    ids=["epoch", "token", "job"],
)
async def test_a_report_under_another_lease_is_refused(
    platform: Platform, tenant: Tenant, forgery: dict[str, Any]
) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    report = hand.done(lease, **forgery)
    assert await hand.report(report) == (set(), {report.number})
    assert not (await stored(platform, job))[0].is_final


async def test_an_end_that_was_told_while_its_shard_was_away_is_asked_for(
    platform: Platform, tenant: Tenant
) -> None:
    """Handed over whole and back before its worker heard of it: no list of owners changed."""
    await submit(platform, tenant, new(pool=MEDIUM))
    hand, shard = Hand(platform, medium=1), ShardId(0)
    (lease,) = await hand.take()
    await freeze(platform)
    dispatcher, end = platform.dispatcher, hand.done(lease)
    term = dispatcher.shards.terms[shard]
    dispatcher.close_shard(shard, is_whole=True)
    news = await hand.say(reports=[end])
    assert news is not None
    assert not [*news.recorded, *news.refused]
    dispatcher.claim_shard(shard, term, is_whole=True)
    await platform.ownership._takeover._restore(shard)
    assert await hand.say() is None  # say hello, and what is left to say with it
    dispatcher.close_shard(shard, is_whole=True)
    await hand.say(hello=True)
    dispatcher.claim_shard(shard, term, is_whole=True)
    assert await hand.say() is not None  # nothing was left


async def test_another_session_cannot_report_for_the_holder(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    hand, thief = Hand(platform), Hand(platform, ["nothing"])
    (lease,) = await hand.take()
    await thief.say(hello=True)
    forged = thief.done(lease, result=b'"stolen"')
    assert await thief.report(forged) == (set(), {forged.number})
    assert await hand.report(hand.done(lease)) == ({1}, set())
    assert await stored(platform, job) == (State.SUCCEEDED, lease.epoch)


async def test_a_report_that_names_no_job_of_ours_is_refused(
    platform: Platform, tenant: Tenant
) -> None:
    await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    odd = hand.done(lease, job="not-a-job")
    assert await hand.report(odd) == (set(), {odd.number})


async def test_a_tenants_worker_gets_its_tenants_jobs_alone(platform: Platform) -> None:
    mine, theirs = await add_tenant(platform, "mine"), await add_tenant(platform, "theirs")
    await submit(platform, theirs)
    (job,) = await submit(platform, mine)
    hand = Hand(platform)
    hand.tenant = mine.id
    assert [lease.job.id for lease in await hand.take()] == [job]
    news = await hand.say(wait_seconds=0.05)
    assert news is not None
    assert news.leases == []


async def test_a_draining_worker_gets_no_more_but_is_heard(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    await submit(platform, tenant)
    news = await hand.say(draining=True, wait_seconds=0.05)
    assert news is not None
    assert news.leases == []
    assert await hand.report(hand.done(lease)) == ({1}, set())
    assert (await stored(platform, job))[0] is State.SUCCEEDED
