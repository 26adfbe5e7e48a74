"""Leases on disk: durable ones before their worker hears, lazy ones when they still run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
from tests.locked import held_rows
from tests.services.platform_room import (
    LONG,
    MEDIUM,
    Hand,
    add_tenant,
    new,
    owner_on,
    sight,
    stored,
    submit,
    until,
)
from tests.services.recording.test_refused_outcomes import PATIENT, is_dead
from tests.services.refusing import refusing

from fairway.core.ids import ShardId, shard_of
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.clock import SystemClock
from fairway.runtime.telemetry import Instruments, Metrics
from fairway.services.dispatch.lease_table import StaleLeases
from fairway.services.platform import Platform
from fairway.services.recording import row_writer
from fairway.services.recording.lease_writer import LeaseWriter
from fairway.store import leases as store


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    async with owner_on(database_url, PATIENT) as platform:
        yield platform


@pytest.mark.parametrize("pool", [MEDIUM, LONG])
async def test_durable_leases_are_on_disk_before_the_worker_hears(
    platform: Platform, tenant: Tenant, pool: int
) -> None:
    (job,) = await submit(platform, tenant, new(pool=pool))
    hand = Hand(platform, medium=1, long=1)
    (lease,) = await hand.take()
    async with platform.database.background() as connection:
        row = await connection.fetchrow(
            "SELECT state, epoch, replace(token::text, '-', '') FROM jobs WHERE id = $1", job
        )
    assert tuple(row) == (State.RUNNING, lease.epoch, lease.token)


async def test_a_lazy_lease_is_written_when_the_job_still_runs(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    (lease,) = await Hand(platform).take()
    await until(lambda: lease.written)
    assert await stored(platform, job) == (State.RUNNING, lease.epoch)


async def test_a_run_began_when_it_was_granted_whenever_that_is_written(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    (lease,) = await Hand(platform).take()
    seen = [await sight(platform, tenant, job)]
    await until(lambda: lease.written)
    seen.append(await sight(platform, tenant, job))
    granted = platform.store_clock.at_us(lease.granted_us)
    for one in seen:
        assert one.record.state == State.RUNNING
        assert one.record.started_at is not None
        # the two clocks are compared anew with every renewal of the term
        assert abs(one.record.started_at - granted) < timedelta(milliseconds=20)


async def test_a_lease_that_the_store_refuses_ends_its_job(
    platform: Platform, tenant: Tenant
) -> None:
    bad, good = await submit(platform, tenant, new(pool=MEDIUM), new(pool=MEDIUM))
    async with refusing(platform, f"NEW.id = '{bad}' AND NEW.state = 2"):
        hand = Hand(platform, medium=2)
        (lease,) = await hand.take()
        assert lease.job.id == good
        await until(lambda: is_dead(platform, bad))
        assert bad not in platform.dispatcher.leases


async def test_a_store_that_takes_no_lease_at_all_costs_no_job(
    platform: Platform, tenant: Tenant
) -> None:
    """An index that is damaged, say: they wait until it is mended."""
    count = 2 * row_writer.WIDESPREAD
    jobs = await submit(platform, tenant, *[new(pool=MEDIUM) for _ in range(count)])
    hand = Hand(platform, medium=count)
    async with refusing(platform, "NEW.state = 2", "XX002"):
        await hand.say(hello=True)
        news = await hand.say(wait_seconds=2)
        assert news is not None
        assert not news.leases
        for job in jobs:
            assert (await stored(platform, job))[0] is State.QUEUED
    assert {lease.job.id for lease in await hand.take(count)} == set(jobs)


async def test_a_run_whose_lease_is_refused_later_is_stopped(
    platform: Platform, tenant: Tenant
) -> None:
    """The short pool writes its leases while the jobs run."""
    async with refusing(platform, "NEW.state = 2"):
        (job,) = await submit(platform, tenant)
        hand = Hand(platform, short=1)
        (lease,) = await hand.take()
        revoked: list[str] = []
        async with asyncio.timeout(30):
            while not revoked:
                news = await hand.say(wait_seconds=0.2)
                assert news is not None
                revoked += news.revoked
        assert revoked == [job]
        await until(lambda: is_dead(platform, job))
    assert await hand.report(hand.done(lease)) == (set(), {1})


async def test_who_stands_at_a_row_keeps_no_other_of_its_group_from_its_worker(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were on disk, and their workers heard of them when that row was let go."""
    write = store.write_leases

    async def held(connection: Any, terms: Any, rows: Any) -> set[str]:
        if any(row.job == stuck for row in rows):
            raise asyncpg.LockNotAvailableError("canceling statement due to lock timeout")
        return await write(connection, terms, rows)

    async with owner_on(database_url, replace(PATIENT, shard_count=2)) as platform:
        tenants = [await add_tenant(platform, name) for name in ("acme", "bolt")]
        ids = [(await submit(platform, one, new(pool=MEDIUM)))[0] for one in tenants]
        assert {*map(shard_of, ids)} == {0, 1}
        stuck, free = ids
        with monkeypatch.context() as patch:
            patch.setattr(store, "write_leases", held)
            hand = Hand(platform, medium=2)
            (lease,) = await hand.take()
            assert lease.job.id == free
        news = await hand.say(wait_seconds=20)
        assert news is not None
        assert [one.job.id for one in news.leases] == [stuck]


async def test_a_row_that_somebody_holds_keeps_no_other_lazy_lease_from_disk(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    (held,) = await submit(platform, tenant)
    hand = Hand(platform, short=2)
    async with held_rows(database_url, held):
        await hand.take()
        await until(lambda: platform.lease_writer._lazily._group(None).jobs_waiting == 1)
        await submit(platform, tenant)
        news = await hand.say(wait_seconds=20)
        assert news is not None
        (later,) = news.leases
        await until(lambda: later.written, seconds=10)


async def test_rows_that_somebody_holds_stop_no_other_durable_grant(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    """There are two lanes: two such rows kept every job of the pool from its worker."""
    hand = Hand(platform, medium=5)
    await hand.say(hello=True)
    stuck, beside = await submit(platform, tenant, new(pool=MEDIUM), new(pool=MEDIUM))
    (also_stuck,) = await submit(platform, tenant, new(pool=MEDIUM))
    came: set[str] = set()

    async def come(wanted: set[str]) -> None:
        async with asyncio.timeout(20):
            while not wanted <= came:
                news = await hand.say(wait_seconds=1)
                assert news is not None
                came.update(lease.job.id for lease in news.leases)

    async with held_rows(database_url, stuck, also_stuck):
        (free,) = await submit(platform, tenant, new(pool=MEDIUM))
        await come({beside, free})
        assert came == {beside, free}
        (later,) = await submit(platform, tenant, new(pool=MEDIUM))
        await come({later})
        assert (await stored(platform, stuck))[0] is State.QUEUED
    await come({stuck, also_stuck})
    assert (await stored(platform, stuck))[0] is State.RUNNING


async def test_of_shards_that_are_handed_over_those_with_held_rows_alone_are_not_whole(
    database_url: str,
) -> None:
    async with owner_on(database_url, replace(PATIENT, shard_count=2)) as platform:
        tenants = [await add_tenant(platform, name) for name in ("acme", "bolt")]
        ids = [(await submit(platform, one))[0] for one in tenants]
        stuck, free = map(shard_of, ids)
        dispatcher, writer = platform.dispatcher, platform.lease_writer
        async with held_rows(database_url, ids[0]):
            await Hand(platform, short=2).take(2)
            await until(lambda: bool(writer._held), seconds=10)
            await asyncio.wait_for(writer.write_all({stuck, free}), 1)
            assert dispatcher.letting_go().whole_on_disk(()) == {free}
        await until(lambda: dispatcher.letting_go().whole_on_disk(()) == {stuck, free})
        assert not writer._held


async def test_a_run_whose_shard_another_took_is_not_stopped_by_us(
    platform: Platform, tenant: Tenant
) -> None:
    """Its worker tells the new owner of it; we hear last that we are not it any more."""
    await platform.loops["lease_writer"].stop()
    (job,) = await submit(platform, tenant)
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    for name in ("ownership", "rescuer"):
        await platform.loops[name].stop()
    async with platform.database.background() as connection:
        await connection.execute("UPDATE shards SET term = term + 1")
    writer = platform.lease_writer
    await writer.run_once(platform.clock.now_us() + 60_000_000)
    await writer._lazily.drain()
    assert (await stored(platform, job))[0] is State.QUEUED
    assert platform.dispatcher.stands(lease)
    assert lease.session.revoked == {}


class SlowLeases:
    """A lease writer whose store is slow, and the moments of what it does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.disk = asyncio.Event()
        self.due: list[Any] = []
        self.over: list[Any] = []
        self.under_way: list[Any] = []
        self.written: list[Any] = []
        self.withdrawn_beside: list[int] = []
        monkeypatch.setattr(LeaseWriter, "_write", self._write)
        letting_go = SimpleNamespace(unwritten=self._unwritten)
        dispatcher: Any = SimpleNamespace(
            terms=dict,
            take_stale_leases=lambda _: StaleLeases([self.due.pop(0)], None),
            letting_go=lambda: letting_go,
            stands=lambda lease: lease not in self.over,
            written_late=lambda lease, is_written: self.written.append(lease),
        )
        database: Any = SimpleNamespace(placement=None, by_shard=False)
        nobody: Any = SimpleNamespace()
        instruments = Instruments(SystemClock(), Metrics())
        self.writer = LeaseWriter(
            database, dispatcher, nobody, instruments, nobody, lazy_after_ms=100
        )

    def grant(self, name: str) -> Any:
        job = SimpleNamespace(id=name)
        self.due.append(SimpleNamespace(job=job, shard=ShardId(0), written=False))
        return self.due[-1]

    async def _write(self, leases: list[Any], tell: Any) -> None:
        assert leases, "a statement without rows has no shard"
        self.under_way += leases
        await self.disk.wait()
        await asyncio.sleep(0.01)
        self.under_way = [one for one in self.under_way if one not in leases]
        for lease in leases:
            tell(lease, True)

    def _unwritten(self, _: Any) -> list[Any]:
        self.withdrawn_beside.append(len(self.under_way))
        return []


async def test_nothing_is_withdrawn_while_it_is_on_its_way_to_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hand-over and the lazy write at one moment."""
    slow = SlowLeases(monkeypatch)
    first, second = slow.grant("a"), slow.grant("b")
    await slow.writer.run_once(0)
    handing_over = asyncio.create_task(slow.writer.write_all({ShardId(0)}))
    await asyncio.sleep(0)
    looking = asyncio.create_task(slow.writer.run_once(0))
    await asyncio.sleep(0.01)
    slow.disk.set()
    await asyncio.gather(handing_over, looking)
    assert slow.withdrawn_beside == [0]
    await until(lambda: slow.written == [first, second])


async def test_what_is_over_before_its_turn_comes_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = SlowLeases(monkeypatch)
    first, second, third = map(slow.grant, "abc")
    for _ in range(3):
        await slow.writer.run_once(0)
    slow.over.append(second)
    slow.disk.set()
    await until(lambda: slow.written == [first, third])


async def test_where_all_are_written_by_then_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a row there is no shard: it was tried again and again, and held up all others."""
    slow = SlowLeases(monkeypatch)
    slow.disk.set()
    lease = slow.grant("a")
    lease.written = True
    await slow.writer._write_late([lease])
    assert slow.written == []
