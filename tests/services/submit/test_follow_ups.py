"""Jobs that a run starts: they are there exactly if its success is, and let in as any other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.postgres import connected
from tests.services.gate import gate_to
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    SHORT,
    Hand,
    add_tenant,
    holding,
    new,
    open_pair,
    owner_on,
    owns_all,
    sight,
    stopped,
    stored,
    submit,
    until,
)
from tests.services.platform_room import kill as killed
from tests.services.refusing import refusing

from fairway.core.backlog.key_limits import KeyLimit, pack
from fairway.core.ids import JobId, unix_ms_of
from fairway.core.job import NO_MARKS, JobMarks
from fairway.core.lifecycle import State
from fairway.core.run.follow_up_ids import AHEAD_MS_MAX, follow_up_ids
from fairway.core.run.follow_ups import FollowUp, WantedFollowUps
from fairway.core.scheduling.timing import Wish
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease
from fairway.store.registry.type_names import take_turns

MARKS = JobMarks(["nightly", "customer:17"], b'{"k":"v"}')


def follow_up(job_type: str = "work", **changes: Any) -> FollowUp:
    return FollowUp(job_type, SHORT, 5, None, b'{"n":1}')._replace(**changes)


def wants(lease: Lease, *jobs: FollowUp, late_ms: int = 5) -> WantedFollowUps:
    return WantedFollowUps(unix_ms_of(lease.job.id) + late_ms, jobs or (follow_up(),))


def ids_of(lease: Lease, wanted: WantedFollowUps) -> list[JobId]:
    return follow_up_ids(lease.job.id, lease.epoch, wanted.at_ms, len(wanted.jobs))


async def is_there(platform: Platform, job: str) -> bool:
    async with platform.database.background() as connection:
        return bool(await connection.fetchval("SELECT count(*) FROM jobs WHERE id = $1", job))


async def run_of(platform: Platform, tenant: Tenant, **slots: int) -> tuple[Hand, Lease]:
    await submit(platform, tenant, new(pool=MEDIUM if "medium" in slots else SHORT))
    hand = Hand(platform, ("work",), **slots)
    (lease,) = await hand.take()
    return hand, lease


async def test_what_a_run_starts_belongs_to_its_tenant_and_runs_at_once(
    platform: Platform, tenant: Tenant
) -> None:
    hand, lease = await run_of(platform, tenant)
    wanted = wants(lease, follow_up(), follow_up(wish=Wish(delay_ms=600_000)))
    report = hand.done(lease, wants=wanted)
    assert await hand.report(report) == ({report.number}, set())
    # By the announcement; a sweep that counts at this moment may have counted it, too.
    assert 1 <= platform.dispatcher.depth_of(tenant.id) <= 2
    now, later = ids_of(lease, wanted)
    parent, first = await sight(platform, tenant, lease.job.id), await sight(platform, tenant, now)
    assert (parent.record.state, parent.record.children) == (State.SUCCEEDED, 2)
    assert (first.record.parent, first.record.payload) == (lease.job.id, b'{"n":1}')
    assert (await stored(platform, later))[0] is State.SCHEDULED
    (granted,) = await hand.take()
    assert (granted.job.id, granted.job.tenant) == (now, tenant.id)


async def test_limits_and_tags_of_follow_ups_hold(platform: Platform, tenant: Tenant) -> None:
    hand, lease = await run_of(platform, tenant, short=4)
    marked = follow_up(limits=pack([KeyLimit("customer-1", 1)]), marks=MARKS)
    wanted = wants(lease, marked, marked, follow_up())
    await hand.report(hand.done(lease, wants=wanted))
    first, second, plain = ids_of(lease, wanted)
    granted = {one.job.id: one for one in await hand.take(2)}
    assert set(granted) == {first, plain}
    news = await hand.say(wait_seconds=0.05)
    assert news is not None
    assert news.leases == []
    await hand.report(*map(hand.done, granted.values()))
    assert [one.job.id for one in await hand.take()] == [second]
    for job, marks in ((first, MARKS), (second, MARKS), (plain, NO_MARKS)):
        record = (await sight(platform, tenant, job)).record
        assert (record.tags, record.metadata) == marks[:2]


async def test_a_report_heard_again_doubles_nothing(platform: Platform, tenant: Tenant) -> None:
    hand, lease = await run_of(platform, tenant)
    report = hand.done(lease, wants=wants(lease, follow_up(), follow_up()))
    together = await asyncio.gather(hand.say(reports=[report]), hand.say(reports=[report]))
    assert all(news is not None for news in together)
    await hand.report(report)
    await hand.report(report)
    async with platform.database.background() as connection:
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 3


async def test_a_run_that_lost_its_lease_starts_nothing(platform: Platform, tenant: Tenant) -> None:
    hand, lease = await run_of(platform, tenant)
    platform.dispatcher.lost([lease])
    wanted = wants(lease)
    report = hand.done(lease, wants=wanted)
    assert await hand.report(report) == (set(), {report.number})
    assert not await is_there(platform, ids_of(lease, wanted)[0])


async def test_a_new_name_is_made_for_the_tenant_of_the_run(
    platform: Platform, tenant: Tenant
) -> None:
    hand, lease = await run_of(platform, tenant)
    wanted = wants(lease, follow_up("new.name"))
    report = hand.done(lease, wants=wanted)
    assert await hand.report(report, report) == ({report.number}, set())
    assert await is_there(platform, ids_of(lease, wanted)[0])
    assert platform.directory.names.namers["new.name"] == {tenant.id: False}


async def test_a_worker_that_begins_anew_while_a_name_is_made_is_asked_for_its_report(
    database_url: str,
) -> None:
    """Its next life says the report again meanwhile: one of the two must be heard."""
    async with owner_on(database_url, replaced(QUICK, lease_seconds={})) as platform:
        tenant = await add_tenant(platform)
        hand, lease = await run_of(platform, tenant)
        wanted = wants(lease, follow_up("new.name"))
        next_life = Hand(platform)
        report = next_life.done(lease, wants=wanted, n=7)
        async with connected(database_url) as connection, connection.transaction():
            await take_turns(connection, tenant.id)
            await hand.say(reports=[hand.done(lease, wants=wanted)])
            await next_life.say(hello=True, running=[], reports=[report])
            assert lease.session.key == next_life.key
            assert hand_is_greeted(platform, next_life)
        await until(lambda: "new.name" in platform.directory.names.ids)
        await until(lambda: not hand_is_greeted(platform, next_life), seconds=10)
        await next_life.say(hello=True, running=[], reports=[report])
        assert await next_life.report(report) == ({7}, set())
        assert await is_there(platform, ids_of(lease, wanted)[0])


async def test_a_full_queue_fails_the_run_by_name(platform: Platform) -> None:
    tenant = await add_tenant(platform, "small", depth_limit=2)
    hand, lease = await run_of(platform, tenant)
    wanted = wants(lease, *[follow_up()] * 3)
    report = hand.done(lease, wants=wanted)
    assert await hand.report(report) == ({report.number}, set())
    seen = (await sight(platform, tenant, lease.job.id)).record
    error = msgspec.json.decode(seen.error or b"{}")
    assert error["type"] == "FollowUpsRefused"
    assert "QUEUE_DEPTH_EXCEEDED" in error["message"]
    assert (seen.state, seen.attempts, seen.children) == (State.SCHEDULED, 1, None)
    assert not await is_there(platform, ids_of(lease, wanted)[0])
    assert platform.admission.refusals(tenant) == {"QUEUE_DEPTH_EXCEEDED": 1}


async def test_a_clock_that_is_far_ahead_is_named(platform: Platform, tenant: Tenant) -> None:
    hand, lease = await run_of(platform, tenant)
    wanted = wants(lease, late_ms=AHEAD_MS_MAX + 60_000)
    await hand.report(hand.done(lease, wants=wanted))
    seen = (await sight(platform, tenant, lease.job.id)).record
    assert seen.state == State.DEAD
    assert b"clock" in (seen.error or b"")


async def test_a_tenant_over_its_rate_fails_by_name_and_only_then(platform: Platform) -> None:
    tenant = await add_tenant(platform, "slow")
    tenant = tenant._replace(rate_per_second=1, burst=1)
    admission = platform.admission
    admission.admit_follow_ups(tenant, 50)  # more than a burst, once
    with pytest.raises(Exception, match="1 a second"):
        admission.admit_follow_ups(tenant, 1)


async def test_the_store_goes_away_in_the_middle(database_url: str) -> None:
    """After the report was taken, before it is known to be on disk: then it is there, once."""
    async with gate_to(database_url) as gate, owner_on(gate.dsn) as platform:
        tenant = await add_tenant(platform)
        hand, lease = await run_of(platform, tenant)
        wanted = wants(lease, follow_up(), follow_up())
        gate.silence()  # what is sent gets through or not; no answer does
        report = hand.done(lease, wants=wanted)
        await hand.say(reports=[report])
        await asyncio.sleep(0.2)
        await gate.close()
        gate.speak()
        await gate.open()
        assert await hand.report(report) == ({report.number}, set())
        async with platform.database.background() as connection:
            count = await connection.fetchval(
                "SELECT count(*) FROM jobs WHERE parent = $1", lease.job.id
            )
        assert count == 2


@pytest.mark.parametrize("is_heard", [True, False])
async def test_a_server_that_dies_after_it_heard_the_report(
    database_url: str, is_heard: bool
) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    await second.directory.run_once(0)
    hand, lease = await run_of(first, tenant, medium=2)
    wanted = wants(lease, follow_up(), follow_up())
    report = hand.done(lease, wants=wanted)
    if is_heard:
        await hand.report(report)  # its worker hears nothing of it
    await killed(first)
    await until(lambda: owns_all(second))
    hand.platform = second
    await hand.say(hello=True, running=[], reports=[report])
    assert await hand.report(report) == ({report.number}, set())
    async with second.database.background() as connection:
        count = await connection.fetchval(
            "SELECT count(*) FROM jobs WHERE parent = $1", lease.job.id
        )
    assert count == 2
    assert (await stored(second, lease.job.id))[0] is State.SUCCEEDED
    await stopped(second)


async def test_a_success_that_the_store_refuses_starts_nothing(
    platform: Platform, tenant: Tenant
) -> None:
    hand, lease = await run_of(platform, tenant)
    wanted = wants(lease)
    async with refusing(platform, f"NEW.id = '{lease.job.id}' AND NEW.state = 3"):
        report = hand.done(lease, wants=wanted)
        assert await hand.report(report) == (set(), {report.number})
    assert (await stored(platform, lease.job.id))[0] is State.DEAD
    assert not await is_there(platform, ids_of(lease, wanted)[0])


async def test_one_that_is_refused_at_first_is_found_all_the_same(
    platform: Platform, tenant: Tenant
) -> None:
    """Written beside the lanes, on the second try: what it started is brought by a read."""
    hand, lease = await run_of(platform, tenant)
    wanted = wants(lease)
    report = hand.done(lease, wants=wanted)
    async with refusing(platform, f"NEW.id = '{lease.job.id}' AND NEW.state = 3"):
        await hand.say(reports=[report])
        await until(lambda: bool(platform.recorder.refused_ends._deciding))
    assert await hand.report(report) == ({report.number}, set())
    (granted,) = await hand.take()
    assert granted.job.id == ids_of(lease, wanted)[0]


async def test_a_large_result_is_stored_first_and_its_room_given_back(
    database_url: str, tmp_path: Path
) -> None:
    settings = replaced(QUICK, data_dir=tmp_path, inline_bytes_max=1000)
    async with owner_on(database_url, settings) as platform:
        tenant = await add_tenant(platform, depth_limit=3)
        large = b'"' + b"x" * 2000 + b'"'
        for count in (1, 9):  # let in, and refused
            hand, lease = await run_of(platform, tenant)
            report = hand.done(
                lease, wants=wants(lease, *[follow_up("other")] * count), result=large
            )
            assert await hand.report(report) == ({report.number}, set())
            await hand.say(goodbye=True)
            assert platform.recorder.large_results.bytes_held == 0
            seen = (await sight(platform, tenant, lease.job.id)).record
            assert (seen.state, seen.children) == (
                (State.SUCCEEDED, 1) if count == 1 else (State.SCHEDULED, None)
            )


async def test_while_the_store_is_behind_their_worker_keeps_them(database_url: str) -> None:
    async with owner_on(database_url, replaced(QUICK, lease_seconds={})) as platform:
        tenant = await add_tenant(platform)
        hand, lease = await run_of(platform, tenant)
        report = hand.done(lease, wants=wants(lease))
        platform.recorder.bytes_waiting += 1 << 40
        assert await hand.say(reports=[report]) is not None
        assert platform.dispatcher.stands(lease)
        await until(lambda: not hand_is_greeted(platform, hand))  # it is asked to say it again
        platform.recorder.bytes_waiting -= 1 << 40
        await hand.say(hello=True, running=[holding(lease)], reports=[report])
        assert await hand.report(report) == ({report.number}, set())
        assert (await sight(platform, tenant, lease.job.id)).record.children == 1


def hand_is_greeted(platform: Platform, hand: Hand) -> bool:
    session = platform.dispatcher.session_of(hand.key)
    return session is not None and session.greeted


async def test_a_child_that_runs_is_asked_to_stop(platform: Platform, tenant: Tenant) -> None:
    hand, lease = await run_of(platform, tenant)
    wanted = wants(lease, follow_up(), follow_up("nobody.runs.this"))
    await hand.report(hand.done(lease, wants=wanted))
    (running,) = await hand.take()
    assert await platform.families.cancel(tenant.id, lease.job.id)
    news = await hand.say()
    assert news is not None
    assert news.cancels == [running.job.id]
    assert (await stored(platform, ids_of(lease, wanted)[1]))[0] is State.CANCELLED


async def test_who_starts_one_does_not_stand_behind_who_start_hundreds(database_url: str) -> None:
    async with owner_on(database_url, replaced(QUICK, lease_seconds={})) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant, *[new()] * 4)
        hand = Hand(platform)
        *large, small = await hand.take(4)
        words = [hand.done(one, wants=wants(one, *[follow_up()] * 60)) for one in large]
        async with connected(database_url) as connection, connection.transaction():
            ids = [one.job.id for one in large]
            await connection.execute("SELECT FROM jobs WHERE id = ANY($1) FOR UPDATE", ids)
            for word in words:  # each takes a lane, until there is none
                await hand.say(reports=[word])
                await asyncio.sleep(0.3)
            light = hand.done(small, wants=wants(small))
            assert await hand.report(light, seconds=20) == ({light.number}, set())
            assert (await stored(platform, ids[0]))[0] is not State.SUCCEEDED
        recorded, _ = await hand.report(*words)
        assert recorded == {word.number for word in words}
