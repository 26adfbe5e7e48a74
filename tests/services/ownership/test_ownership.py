"""Ownership: two servers on one database, one owner at a time, and nothing lost in between."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from structlog.testing import capture_logs
from tests.postgres import connected
from tests.services.gate import gate_to
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    TERM_SECONDS,
    Hand,
    add_tenant,
    freeze,
    holding,
    kill,
    new,
    open_pair,
    owner_on,
    owns_all,
    platform_on,
    sight,
    stored,
    submit,
    until,
)

from fairway.core.ids import ShardId
from fairway.core.lifecycle import State
from fairway.runtime.clock import SystemClock
from fairway.services.jobs.far_runs import no_peers
from fairway.services.ownership.lost_shards import LET_GO, LOST
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import End
from fairway.store.connections.database import Connection
from fairway.store.registry import tenant_moves


async def test_there_is_one_owner_and_both_know_who(database_url: str) -> None:
    async with owner_on(database_url) as first, platform_on(database_url) as second:
        await until(lambda: second.ownership.has_peers)
        assert owns_all(first)
        assert second.dispatcher.shards.terms == {}
        assert second.ownership.owner_url(ShardId(0)) == first.settings.url
        assert first.ownership.owner_url(ShardId(0)) is None
        assert all((await second.readiness.checks()).values())


async def test_a_clean_stop_hands_over_at_once(database_url: str) -> None:
    settings = replace(QUICK, term_seconds=120.0, adoption_seconds=0.05)
    async with platform_on(database_url, settings) as first:
        await until(lambda: owns_all(first))
        second = await Platform.prepare(database_url, settings, SystemClock(), no_peers)
        await second.start()
    second.loops["ownership"].wake()
    began = time.monotonic()
    await until(lambda: owns_all(second))
    assert time.monotonic() - began < 60
    await second.stop()


async def test_after_a_hand_over_nobody_waits_for_workers_to_speak(database_url: str) -> None:
    """All they run is on disk: one lease as ever (medium), one because of it (short)."""
    patient = replace(QUICK, term_seconds=60.0, adoption_seconds=60.0, lazy_running_ms=60_000)
    async with owner_on(database_url, patient) as first:
        second = await Platform.prepare(database_url, patient, SystemClock(), no_peers)
        await second.start()
        await until(lambda: second.ownership.has_peers)
        tenant = await add_tenant(first)
        await submit(first, tenant, new(), new(pool=MEDIUM))
        hand, silent = Hand(first, short=1, medium=1), Hand(first, short=1)
        leases = await hand.take(2)
        await silent.say(hello=True)  # a worker that dies now, and never speaks again
        await first.let_go()
        assert first.dispatcher.shards.terms == {}  # what still comes here is passed on
        await until(lambda: owns_all(second))
        await until(lambda: first.ownership.owner_url(ShardId(0)) == second.settings.url)
        hand.platform = second
        news = await hand.say(hello=True, running=[holding(lease) for lease in leases])
        assert news is not None
        assert (news.leases, news.revoked) == ([], [])
        recorded, refused = await hand.report(*map(hand.done, leases))
        assert (len(recorded), refused) == (2, set())
        await second.stop()


async def test_what_a_tenant_is_moved_to_is_let_go_of_without_a_warning(database_url: str) -> None:
    """It is nobody's then; what another has taken is lost."""
    async with owner_on(database_url, replace(QUICK, shard_count=2)) as platform:
        await until(lambda: len(platform.dispatcher.open_shards()) == 2)
        with capture_logs() as lines:
            async with platform.database.background() as connection:
                await tenant_moves._take_away(connection, ShardId(0))
                await connection.execute(
                    "UPDATE shards SET term = 9, owner = 'other', expires_at = 'infinity'"
                    " WHERE shard = 1"
                )
            await until(lambda: 1 not in platform.dispatcher.terms())
            await until(lambda: any(line["event"] == LOST for line in lines))
        told = [(line["log_level"], line["event"], line.get("which")) for line in lines]
        assert ("info", LET_GO, "0") in told
        assert ("warning", LOST, "1") in told
        assert not [one for one in told if one[0] == "warning" and one[2] == "0"]


async def test_a_grant_that_no_worker_heard_of_is_not_handed_over(database_url: str) -> None:
    async with owner_on(database_url) as first:
        tenant = await add_tenant(first)
        hand = Hand(first, short=1)
        await hand.say(hello=True)
        (job,) = await submit(first, tenant)
        await until(lambda: first.dispatcher.backlog.windows.jobs_held == 1)
        first.dispatcher.serve(first.dispatcher.sessions[hand.key])  # its call is about to come
        assert job in first.dispatcher.leases
        await first.let_go()
        assert await stored(first, job) == (State.QUEUED, 0)


async def test_a_grant_that_no_worker_heard_of_waits_again_where_its_shard_stays(
    database_url: str,
) -> None:
    async with owner_on(database_url) as first:
        tenant = await add_tenant(first)
        hand = Hand(first, short=1)
        await hand.say(hello=True)
        (job,) = await submit(first, tenant)
        await until(lambda: first.dispatcher.backlog.windows.jobs_held == 1)
        first.dispatcher.serve(first.dispatcher.sessions[hand.key])
        letting_go, shards = first.dispatcher.letting_go(), {ShardId(0)}
        letting_go.suspend(shards)
        assert letting_go.unwritten(shards) == []
        assert first.dispatcher.depth_of(tenant.id) == 1
        letting_go.resume(shards)
        (lease,) = await hand.take()
        assert lease.job.id == job


async def test_a_lease_that_was_written_and_not_sent_is_sent_by_the_next_owner(
    database_url: str,
) -> None:
    """To a worker that speaks with both and never names what it runs: nobody told it before."""
    patient = replace(QUICK, lease_seconds=dict.fromkeys(QUICK.lease_seconds, 60.0))
    first, second = await open_pair(database_url, patient)
    tenant = await add_tenant(first)
    hand, there = Hand(first, medium=1), Hand(second, medium=1)
    there.key = hand.key
    assert await hand.say(hello=True) is not None
    assert await there.say(hello=True) is not None
    (job,) = await submit(first, tenant, new(pool=MEDIUM))
    await until(lambda: first.dispatcher.backlog.windows.jobs_held == 1)
    first.dispatcher.serve(first.dispatcher.sessions[hand.key])  # its call is about to come
    await until(lambda: first.dispatcher.leases[job].written)
    await first.let_go()
    await until(lambda: owns_all(second))
    async with asyncio.timeout(20):
        while (news := await there.say(wait_seconds=1)) is not None:
            assert news.leases == []
    (lease,) = await there.take()
    assert (lease.job.id, lease.job.payload) == (job, b"{}")
    assert await there.report(there.done(lease)) == ({1}, set())
    await asyncio.gather(first.stop(), second.stop())


async def test_a_killed_owner_is_replaced_within_its_term_and_a_second(database_url: str) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    (job,) = await submit(first, tenant)
    old_term = first.dispatcher.shards.terms[ShardId(0)]
    began = time.monotonic()
    await kill(first)
    await until(lambda: owns_all(second))
    assert time.monotonic() - began < TERM_SECONDS + 1
    assert second.dispatcher.shards.terms[ShardId(0)] == old_term + 1
    (lease,) = await Hand(second).take()
    assert lease.job.id == job
    await second.stop()


async def test_after_a_promotion_an_owner_reads_anew_what_is_running(database_url: str) -> None:
    """A standby that lagged has a job running whose end we had written down elsewhere."""
    async with owner_on(database_url) as platform, connected(database_url) as connection:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(pool=MEDIUM))
        hand = Hand(platform, medium=1)
        (lease,) = await hand.take()
        before = await connection.fetchrow("SELECT epoch, session, token FROM jobs")
        await hand.report(hand.done(lease))
        old_term = platform.dispatcher.shards.terms[ShardId(0)]
        await connection.execute(
            "UPDATE jobs SET state = 2, finished_at = NULL, epoch = $1, session = $2, token = $3",
            *before,
        )
        platform.database.hosts.timeline = 1
        platform.loops["ownership"].wake()
        await asyncio.sleep(0.05)
        platform.database.hosts.timeline = 2
        await until(lambda: platform.dispatcher.shards.terms.get(ShardId(0), 0) > old_term)
        await until(lambda: owns_all(platform))
        await hand.say(hello=True)  # and runs nothing
        (again,) = await hand.take()
        assert again.job.id == job


async def test_an_owner_that_was_suspended_grants_and_writes_nothing(database_url: str) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    waiting, mine = await submit(first, tenant, new(), new(pool=MEDIUM))
    hand = Hand(first, medium=1)
    (lease,) = await hand.take()
    await freeze(first)
    await until(lambda: owns_all(second))
    before = [await stored(second, job) for job in (waiting, mine)]

    first.dispatcher.succeeded([End(lease, 1, 10, b'"too late"')])  # it wakes up, goes on
    await first.recorder.drain()
    late = Hand(first)
    news = await late.say(hello=True)
    assert news is not None
    assert news.leases == []
    assert [await stored(second, job) for job in (waiting, mine)] == before

    await first.ownership.run_once(0)  # now it learns what happened
    assert first.dispatcher.shards.terms == {}
    assert first.dispatcher.leases == {}
    await kill(first)
    await second.stop()


async def test_the_only_server_never_takes_a_shard_from_itself(database_url: str) -> None:
    """Its own writes may take longer than a term, and its renewals may come late."""
    patient = replace(QUICK, lease_seconds={"short": 60.0, "medium": 60.0, "long": 60.0})
    async with owner_on(database_url, patient) as platform, connected(database_url) as slow:
        tenant = await add_tenant(platform)
        await submit(platform, tenant, new(), new(pool=MEDIUM))
        hand = Hand(platform, short=1, medium=1)
        assert len(await hand.take(2)) == 2
        before = dict(platform.dispatcher.shards.terms)
        for lock in ("FOR KEY SHARE", "FOR UPDATE"):  # a write of its own; somebody in the way
            async with slow.transaction():
                await slow.fetch(f"SELECT FROM shards {lock}")
                await held_for(2 * TERM_SECONDS, hand)
        await until(lambda: platform.clock.now_us() < platform.dispatcher.shards.trusted_until_us)
        assert platform.dispatcher.shards.terms == before
        assert await hand.say() is not None, "nobody has to say hello again"
        assert len(platform.dispatcher.leases) == 2


async def held_for(seconds: float, hand: Hand) -> None:
    """A worker beats meanwhile."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        assert await hand.say() is not None
        await asyncio.sleep(0.1)


async def test_running_jobs_are_adopted_not_run_again(database_url: str) -> None:
    """One lease was never written (short), one was (medium): both go on under their epoch."""
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    jobs = await submit(first, tenant, new(), new(pool=MEDIUM))
    hand = Hand(first, short=1, medium=1)
    leases = await hand.take(2)
    await kill(first)

    hand.platform = second
    while True:
        news = await hand.say(hello=True, running=[holding(lease) for lease in leases])
        assert news is not None
        assert (news.leases, news.revoked) == ([], [])
        if owns_all(second):
            break
        await asyncio.sleep(0.05)
    news = await hand.say(hello=True, running=[holding(lease) for lease in leases])
    assert news is not None
    assert (news.leases, news.revoked) == ([], [])
    recorded, refused = await hand.report(*[hand.done(lease, result=b'"once"') for lease in leases])
    assert (len(recorded), refused) == (2, set())
    for job, lease in zip(jobs, sorted(leases, key=lambda lease: lease.job.id), strict=True):
        seen = (await sight(second, tenant, job)).record
        assert (seen.state, seen.epoch, seen.deliveries) == (State.SUCCEEDED, lease.epoch, 1)
    await second.stop()


async def test_a_worker_that_came_a_moment_before_its_owner_died_is_waited_for(
    database_url: str,
) -> None:
    """It was written down within a second: who died before that left a job to run twice."""
    seconds = dict.fromkeys(QUICK.lease_seconds, 60.0)
    patient = replace(QUICK, lease_seconds=seconds, adoption_seconds=60.0, lazy_running_ms=60_000)
    first, second = await open_pair(database_url, patient)
    tenant = await add_tenant(first)
    await first.loops["rescuer"].stop()
    await submit(first, tenant)
    hand = Hand(first, short=1)
    (lease,) = await hand.take()
    assert not lease.written
    await kill(first)
    dispatcher = second.dispatcher
    await until(lambda: dispatcher.restored_shards() == [ShardId(0)])
    await asyncio.sleep(0.3)
    assert not dispatcher.is_open(ShardId(0))
    hand.platform = second
    assert await hand.say(hello=True, running=[holding(lease)]) is not None
    await until(lambda: owns_all(second))
    assert await hand.report(hand.done(lease)) == ({1}, set())
    await second.stop()


async def test_a_job_that_ran_when_its_owner_died_runs_again_when_its_worker_died_too(
    database_url: str,
) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    await submit(first, tenant, new(), new(pool=MEDIUM))
    leases = await Hand(first, short=1, medium=1).take(2)
    await kill(first)
    await until(lambda: owns_all(second))
    again = await Hand(second, short=2, medium=2).take(2)
    old = {lease.job.id: lease.epoch for lease in leases}
    assert {lease.job.id for lease in again} == set(old)
    assert all(lease.epoch > old[lease.job.id] for lease in again)
    assert all(lease.job.attempts == 0 for lease in again)
    await second.stop()


async def test_an_owner_cut_off_from_the_store_stops_granting_before_its_term_ends(
    database_url: str,
) -> None:
    async with gate_to(database_url) as gate, owner_on(gate.dsn) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant, *[new()] * 3)
        hand = Hand(platform, short=1)
        (lease,) = await hand.take()
        asked = time.monotonic()
        await gate.close()
        await until(lambda: SystemClock().now_us() >= platform.dispatcher.shards.trusted_until_us)
        assert time.monotonic() - asked <= TERM_SECONDS
        platform.dispatcher.revoke(lease)
        news = await hand.say()
        assert news is not None
        assert news.leases == []
        await gate.open()
        assert len(await hand.take()) == 1


async def test_shards_are_taken_all_and_every_tenant_finds_its_home(database_url: str) -> None:
    async with owner_on(database_url, replace(QUICK, shard_count=4)) as platform:
        assert platform.dispatcher.shards.open == {0, 1, 2, 3}
        tenants = [await add_tenant(platform, f"t{n}") for n in range(5)]
        jobs = [(await submit(platform, tenant))[0] for tenant in tenants]
        leases = await Hand(platform, short=8).take(5)
        assert {lease.job.id for lease in leases} == set(jobs)
        assert {lease.shard for lease in leases} == {0, 1, 2, 3}


async def clock_went_back(look: Connection) -> None:
    """What the owner wrote before the database's clock was set back by hours."""
    await look.execute(
        "UPDATE shards SET expires_at = expires_at + interval '5 hours'"
        " WHERE expires_at < now() + interval '1 hour'"
    )


async def test_a_dead_owner_is_replaced_soon_although_the_stores_clock_went_back(
    database_url: str,
) -> None:
    first, second = await open_pair(database_url)
    await kill(first)
    async with connected(database_url) as look:
        await clock_went_back(look)
    began = time.monotonic()
    await until(lambda: owns_all(second), 20)
    assert time.monotonic() - began > TERM_SECONDS, "the owner's own trust in it is over by then"
    await second.stop()


async def test_a_living_owner_keeps_its_shards_when_the_stores_clock_goes_back(
    database_url: str,
) -> None:
    first, second = await open_pair(database_url)
    before, times_seen = dict(first.dispatcher.shards.terms), 0
    ends = time.monotonic() + 5 * TERM_SECONDS
    async with connected(database_url) as look:
        while time.monotonic() < ends or not times_seen:
            await clock_went_back(look)
            # It looks oftener than the owner renews: so it sees ends that stand, for a while.
            second.loops["ownership"].wake()
            await asyncio.sleep(0.02)
            times_seen += bool(second.ownership._shards.overlong_terms._seen)
    assert (first.dispatcher.shards.terms, second.dispatcher.shards.terms) == (before, {})
    await second.stop()
    await first.stop()


async def test_what_started_of_late_in_words_that_nobody_reads_keeps_no_shard_closed(
    database_url: str,
) -> None:
    """As an owner of a later build may have left it."""
    async with owner_on(database_url) as platform, connected(database_url) as connection:
        async with connection.transaction():
            term = await connection.fetchval(
                "UPDATE shards SET term = term + 1, expires_at = now() RETURNING term"
            )
            await connection.execute(
                "INSERT INTO rate_windows (shard, term, saved_at, windows)"
                " VALUES (0, $1, now(), '!') ON CONFLICT (shard) DO UPDATE"
                " SET term = excluded.term, windows = excluded.windows",
                term,
            )

        def is_open() -> bool:
            now = platform.dispatcher.term_of(ShardId(0))
            return now is not None and now > term and owns_all(platform)

        await until(is_open)
