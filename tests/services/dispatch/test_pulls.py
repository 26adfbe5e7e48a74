"""Degraded mode: jobs flow without an owner, and an owner that comes back finds all of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.postgres import connected
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    SHORT,
    Hand,
    add_tenant,
    holding,
    kill,
    new,
    owner_on,
    owns_all,
    platform_on,
    sight,
    stored,
    submit,
    until,
)
from tests.store.rows import add_jobs, new_job

from fairway.core.backlog.holds import Hold
from fairway.core.backlog.pulls import Ask
from fairway.core.backlog.streams import StreamKey, key_of
from fairway.core.ids import Epoch, PoolId, ShardId, TenantId, TypeId
from fairway.core.insight.health import health_of
from fairway.core.lifecycle import State
from fairway.core.run.lease import term_of
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.runtime.clock import SystemClock
from fairway.runtime.telemetry import value_of
from fairway.services.dispatch.pulls import Pulls
from fairway.services.jobs.far_runs import no_peers
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease
from fairway.store import backlog
from fairway.store.connections.database import Connection, Database

SHARD = ShardId(0)
#: A server that answers and passes on, and stands in soon.
API = replace(QUICK, owns_shards=False, degraded_after_seconds=0.2)
#: Its leases outlast a machine that stands still.
LASTING = dict.fromkeys(("short", "medium", "long"), 30.0)


@asynccontextmanager
async def standing_in(dsn: str, **changes: Any) -> AsyncIterator[Platform]:
    async with platform_on(dsn, replace(API, lease_seconds=LASTING, **changes)) as platform:
        await until(lambda: platform.dispatcher.pulled_shards() == [SHARD])
        yield platform


async def test_a_server_that_does_not_own_waits_for_one_that_does(database_url: str) -> None:
    patient = replace(API, degraded_after_seconds=3600)
    async with platform_on(database_url, patient) as api:
        looks = api.ownership._standing_in._unowned
        await until(lambda: bool(looks._absent_us))
        assert not api.dispatcher.owns_any()
        async with owner_on(database_url) as owner:
            await until(lambda: api.ownership.owner_url(SHARD) == owner.settings.url)
            await until(lambda: not looks._absent_us)
        assert not api.dispatcher.owns_any()


async def test_jobs_flow_and_everybody_can_see_how(database_url: str) -> None:
    async with standing_in(database_url) as api:
        tenant = await add_tenant(api)
        jobs = await submit(api, tenant, *[new() for _ in range(5)], new(pool=MEDIUM))
        hand = Hand(api, short=3, medium=1)
        first = await hand.take(4)
        states = {await stored(api, lease.job.id) for lease in first}
        assert states == {(State.RUNNING, first[0].epoch)}  # before its worker hears of it
        assert term_of(first[0].epoch) == api.dispatcher.terms()[SHARD]
        recorded, _ = await hand.report(*map(hand.done, first))
        rest = await hand.take(2)
        recorded |= (await hand.report(*map(hand.done, rest)))[0]
        assert (len(recorded), {lease.job.id for lease in first + rest}) == (6, set(jobs))
        assert api.dispatcher.windows().jobs_held() == 0
        await until(lambda: value_of(api.metrics.degraded) == 1)
        await until(lambda: _health(api) == ["DEGRADED"])


def _health(platform: Platform) -> list[str]:
    seen = platform.insight.board.seen
    return [] if seen is None else [one.code for one in health_of(seen, 1).reasons]


async def test_caps_and_pauses_hold_and_tenants_take_turns(database_url: str) -> None:
    async with standing_in(database_url) as api:
        capped, greedy, paused = [await add_tenant(api, name) for name in ("a", "b", "c")]
        await api.directory.change_tenant("a", {"cap": 1})
        api.holds.replace_for("test", {paused.id: (Hold(tenant=paused.id),)})
        for tenant in (greedy, capped, paused):
            await submit(api, tenant, *[new() for _ in range(6)])
        hand = Hand(api, short=4)
        leases = await hand.take(4)
        assert Counter(lease.job.tenant for lease in leases) == {capped.id: 1, greedy.id: 3}
        await hand.report(*map(hand.done, leases))
        api.holds.replace_for("test", {paused.id: ()})
        hand = Hand(api, short=6)
        leases = await hand.take(6)
        shares = Counter(lease.job.tenant for lease in leases)
        assert shares[capped.id] == 1
        assert {shares[greedy.id], shares[paused.id]} <= {2, 3}


async def test_one_slot_goes_round(database_url: str) -> None:
    async with standing_in(database_url) as api:
        tenants = [await add_tenant(api, name) for name in ("a", "b", "c")]
        for tenant in tenants:
            await submit(api, tenant, *[new() for _ in range(6)])
        hand, got = Hand(api, short=1), Counter[int]()
        for _ in range(6):
            (lease,) = await hand.take()
            got[lease.job.tenant] += 1
            await hand.report(hand.done(lease))
        assert got == {tenant.id: 2 for tenant in tenants}


async def test_streams_that_a_page_cuts_off_come_with_the_next(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.store.backlog.PULL_STREAMS", 4)
    async with standing_in(database_url) as api:
        first, second = [await add_tenant(api, name) for name in ("a", "b")]
        unserved = [new(f"nobodys-{n}") for n in range(3)]
        await submit(api, first, *unserved)
        (job,) = (await submit(api, second, unserved[0], new()))[1:]
        (lease,) = await Hand(api, short=1).take()
        assert lease.job.id == job


async def test_a_failed_run_is_tried_again(database_url: str) -> None:
    async with standing_in(database_url) as api:
        tenant = await add_tenant(api)
        (job,) = await submit(api, tenant)
        hand = Hand(api)
        (lease,) = await hand.take()
        gone = Outcome(OutcomeKind.FAILED, failure=FailureClass.WORKER_CRASH, error=b"{}")
        await hand.report(hand.done(lease, gone))
        (again,) = await hand.take()
        assert (again.job.id, again.epoch > lease.epoch) == (job, True)


async def test_what_an_owner_granted_stands_and_is_not_pulled(database_url: str) -> None:
    """One lease that was written (medium), and one that was not (short): its worker says so."""
    settings = replace(QUICK, lazy_running_ms=60_000, lease_seconds=LASTING)
    owner = await Platform.prepare(database_url, settings, SystemClock(), no_peers)
    await owner.start()
    await until(lambda: owns_all(owner))
    tenant = await add_tenant(owner)
    granted = await submit(owner, tenant, new(), new(pool=MEDIUM))
    hand = Hand(owner, short=1, medium=1)
    leases = await hand.take(2)
    (waiting,) = await submit(owner, tenant)
    await kill(owner)
    slow = replace(API, lease_seconds=LASTING, adoption_seconds=30.0)  # ends with its hello
    async with platform_on(database_url, slow) as api:
        await until(api.dispatcher.owns_any)
        await until(lambda: not api.dispatcher.is_restoring())
        hand.platform = api
        news = await hand.say(hello=True, running=[holding(lease) for lease in leases])
        assert news is not None
        assert news.revoked == []
        await until(lambda: api.dispatcher.pulled_shards() == [SHARD])
        other = Hand(api, short=4, medium=4)
        (pulled,) = await other.take()
        assert pulled.job.id == waiting
        recorded, refused = await hand.report(*map(hand.done, leases))
        assert (len(recorded), refused) == (2, set())
        assert all([(await sight(api, tenant, job)).record.state == 3 for job in granted])


async def test_an_owner_that_comes_back_while_jobs_are_pulled_doubles_nothing(
    database_url: str,
) -> None:
    async with standing_in(database_url) as api:
        tenant = await add_tenant(api)
        jobs = await submit(api, tenant, *[new(pool=(SHORT, MEDIUM)[n % 2]) for n in range(120)])
        hands = [Hand(api, short=4, medium=4) for _ in range(3)]
        ran: Counter[str] = Counter()
        working = [asyncio.create_task(_work(hand, ran)) for hand in hands]
        await until(lambda: sum(ran.values()) >= 20)
        lasting = replace(QUICK, lease_seconds=LASTING)
        async with platform_on(database_url, lasting) as owner:  # while they are at it
            await until(lambda: owns_all(owner))
            for hand in hands:
                hand.platform = owner
            await until(lambda: len(ran) == len(jobs))
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            await until(lambda: _all_over(owner))
            assert not api.dispatcher.owns_any()
            assert set(ran) == set(jobs)
            assert [job for job, times in ran.items() if times > 1] == []
    async with connected(database_url) as connection:
        rows = await connection.fetch("SELECT state, deliveries, attempts FROM jobs")
    assert {tuple(row) for row in rows} == {(int(State.SUCCEEDED), 1, 1)}


async def _all_over(platform: Platform) -> bool:
    async with platform.database.background() as connection:
        left = await connection.fetchval("SELECT count(*) FROM jobs WHERE state < 3")
    return bool(left == 0)


async def _work(hand: Hand, ran: Counter[str]) -> None:
    """As a worker does: runs each lease once, and reports it until it was heard."""
    held: dict[str, Any] = {}
    reports: dict[int, Any] = {}
    greeted = False
    while True:
        running = [holding(lease) for lease in held.values()]
        try:
            news = await hand.say(
                hello=not greeted,
                running=None if greeted else running,
                reports=list(reports.values()),
                wait_seconds=0.1,
            )
        except Exception:  # between two owners: said again, all of it
            greeted = False
            await asyncio.sleep(0.02)
            continue
        greeted = news is not None
        if news is None:
            continue
        for number in (*news.recorded, *news.refused):
            held.pop(getattr(reports.pop(number, None), "job", ""), None)
        for lease in news.leases:
            if lease.job.id in held:
                continue
            ran[lease.job.id] += 1
            held[lease.job.id] = lease
            report = hand.done(lease)
            reports[report.n] = report


async def test_whoever_stood_in_writes_nothing_once_an_owner_is_back(database_url: str) -> None:
    """Its loops stand still: it does not know yet, and a pull of its own finds another term."""
    async with standing_in(database_url) as api:
        tenant = await add_tenant(api)
        hand = Hand(api, short=2)
        await hand.say(hello=True)
        for name in ("ownership", "pulls"):
            await api.loops[name].stop()
        async with owner_on(database_url):
            (job,) = await submit(api, tenant)
            pulls = Pulls(api.database, api.dispatcher, api.store_clock, api.metrics)
            term = api.dispatcher.terms()[SHARD]
            await hand.say()
            await pulls._pull(SHARD, SHORT, term)
            assert (await stored(api, job))[1] >> 24 != term
            assert api.dispatcher.lease_on(job) is None


class Deaf:
    """A database whose last answer in a use is never heard."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def hot(self, at: ShardId) -> AsyncIterator[Connection]:
        async with self._database.hot(at=at) as connection:
            yield connection
        raise ConnectionResetError


async def test_a_pull_whose_end_nobody_heard_is_on_disk_and_reaches_its_worker(
    database_url: str,
) -> None:
    async with standing_in(database_url) as api:
        await api.loops["pulls"].stop()
        tenant = await add_tenant(api)
        (job,) = await submit(api, tenant)
        hand = Hand(api, short=2)
        await hand.say(hello=True)
        deaf: Any = Deaf(api.database)
        pulls = Pulls(deaf, api.dispatcher, api.store_clock, api.metrics)
        with pytest.raises(ConnectionResetError):
            await pulls._pull(SHARD, SHORT, api.dispatcher.terms()[SHARD])
        assert (await stored(api, job))[0] == State.RUNNING
        (lease,) = await hand.take()
        assert lease.job.id == job
        recorded, refused = await hand.report(hand.done(lease))
        assert (len(recorded), refused) == (1, set())


async def test_a_pull_that_fails_keeps_no_other_pool_from_its_jobs(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing_in(database_url) as api:
        tenant = await add_tenant(api)
        read, is_broken = backlog.pull_heads, True

        async def read_heads(
            connection: Connection, shard: ShardId, pool: PoolId, *given: Any
        ) -> Any:
            if is_broken and pool == SHORT:
                raise ConnectionResetError
            return await read(connection, shard, pool, *given)

        monkeypatch.setattr(backlog, "pull_heads", read_heads)
        hand = Hand(api, short=1, medium=1)
        short, medium = await submit(api, tenant, new(), new(pool=MEDIUM))
        with capture_logs() as lines:
            (lease,) = await hand.take()
            assert lease.job.id == medium
            is_broken = False
            assert {lease.job.id for lease in await hand.take(2)} == {short, medium}
        told = [line["event"] for line in lines if line["event"].startswith("pull")]
        assert told == ["pull failed", "pulls recovered"]
        assert api.loops["pulls"].failures_in_row == 0


async def test_a_lease_that_was_shown_while_its_job_was_pulled_is_over(database_url: str) -> None:
    """On disk the newer one is in force; what the older one took of a worker and a cap is free."""
    async with standing_in(database_url) as api:
        await api.loops["pulls"].stop()
        tenant = await add_tenant(api)
        (job,) = await submit(api, tenant)
        old, new_ = Hand(api, short=1), Hand(api, short=1)
        for hand in (old, new_):
            await hand.say(hello=True)
        was, now = (api.dispatcher.session_of(hand.key) for hand in (old, new_))
        assert was is not None
        assert now is not None
        room = api.dispatcher.share_of(SHORT).room(tenant.id)
        record = (await sight(api, tenant, job)).record
        key = StreamKey(tenant.id, SHORT, TypeId(record.type), record.priority, record.lane)
        async with api.database.hot() as connection:
            (queued,) = await backlog.pull_jobs(connection, SHARD, [Ask(key, 1)])
        older = Lease(queued, Epoch(1), "token", was, api.clock.now_us())
        api.dispatcher.leases.restore(older, api.clock.now_us())
        term = api.dispatcher.terms()[SHARD]
        pulled = api.dispatcher.pulls().new(now, queued, term)
        assert api.dispatcher.pulls().granted([pulled], SHORT, term) == []
        assert api.dispatcher.lease_on(job) is pulled
        assert (was.free(SHORT), was.leases, was.revoked) == (1, {}, {job: 1})
        assert api.dispatcher.share_of(SHORT).room(tenant.id) == room - 1


async def test_a_round_passes_every_stream_however_pages_fall(database_url: str) -> None:
    """The last tenant of a page has the rest of its streams on the next."""
    jobs = [
        new_job(tenant=TenantId(tenant), type=TypeId(type_id))
        for tenant in range(1, 19)
        for type_id in range(1, 16)
    ]
    anybody: Any = None
    dispatcher: Any = SimpleNamespace(pulls=lambda: None)
    pulls = Pulls(anybody, dispatcher, anybody, anybody)
    async with connected(database_url) as connection:
        await add_jobs(connection, *jobs)
        first, is_last = await pulls._next_heads(connection, SHARD, SHORT)
        assert not is_last
        second, is_last = await pulls._next_heads(connection, SHARD, SHORT)
        assert is_last
    assert Counter(first + second) == Counter(map(key_of, jobs))
