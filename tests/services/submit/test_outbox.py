"""Jobs committed by tenants' own transactions are moved: in turns, under their limits, once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg
import pytest
from tests.logins import login_of
from tests.postgres import connected
from tests.services.platform_room import (
    Hand,
    add_tenant,
    new,
    open_pair,
    owner_on,
    stopped,
    told_events,
    until,
)

from fairway.core.errors import InvalidRequest
from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.core.lifecycle import State
from fairway.core.scheduling.timing import Wish
from fairway.core.tenant import Tenant, TenantSettings
from fairway.services.platform import Platform
from fairway.services.submit import outbox as outbox_service
from fairway.services.submit.outbox_watch import OutboxWatch
from fairway.services.submit.submission_group import NewJob
from fairway.store import outbox as store
from fairway.store.connections.database import Connection
from fairway.store.registry import sql_logins

Enqueue = Callable[..., Awaitable[list[JobId]]]
SHARD = ShardId(0)
MANY = "SELECT fairway_enqueue($1) FROM generate_series(1, $2)"


async def read(tenant: Tenant, request: bytes) -> NewJob:
    """As the edge does, as far as these tests need it."""
    said = json.loads(request)
    if "pool" in said:
        raise InvalidRequest("There is no such pool.", code="UNKNOWN_POOL", field="/pool")
    if "delay" in said["payload"]:
        raise RuntimeError("a mistake of ours")
    return new(said["type"])


@asynccontextmanager
async def shop_of(dsn: str, tenant: Tenant) -> AsyncIterator[Enqueue]:
    async with login_of(dsn, tenant.name) as login, connected(login) as shop:

        async def enqueue(count: int = 1, **request: object) -> list[JobId]:
            text = json.dumps({"type": "work", "payload": {}} | request)
            return [row[0] for row in await shop.fetch(MANY, text, count)]

        yield enqueue


async def in_jobs(platform: Platform) -> list[str]:
    async with platform.database.background() as connection:
        rows = await connection.fetch("SELECT id::text FROM jobs ORDER BY id")
    return [row["id"] for row in rows]


async def left(platform: Platform, tenant: Tenant) -> int:
    async with platform.database.background() as connection:
        return (await store.measure_waiting(connection, SHARD, tenant.id, 10_000)).jobs


async def test_what_was_committed_runs_and_nothing_stays_behind(database_url: str) -> None:
    async with owner_on(database_url) as platform:
        acme = await add_tenant(platform)
        async with shop_of(database_url, acme) as enqueue:
            ids = await enqueue(30)
        assert await platform.outbox.run_once(read, 0) == 0, "there may be more"
        assert await platform.outbox.run_once(read, 0) > 0
        assert await in_jobs(platform) == ids
        assert await left(platform, acme) == 0
        leases = await Hand(platform, short=50).take(30)
        assert [lease.job.id for lease in leases] == ids


async def test_what_comes_too_late_to_where_a_tenant_was_is_left_to_be_brought_along(
    database_url: str,
) -> None:
    """Let in there, it would be granted as a job of a shard that another server may own."""
    async with owner_on(database_url) as platform:
        acme, other = await add_tenant(platform), await add_tenant(platform, "other")
        async with shop_of(database_url, acme) as enqueue:
            await enqueue(3)
        async with shop_of(database_url, other) as enqueue:
            (theirs,) = await enqueue()
        platform.tenant_shards.learn(acme.id, ShardId(1), [SHARD])  # its transaction was open
        while await platform.outbox.run_once(read, 0) == 0:
            pass
        assert await in_jobs(platform) == [theirs]
        assert await left(platform, acme) == 3
        (lease,) = await Hand(platform, short=50).take()
        assert lease.job.id == theirs


async def test_a_commit_is_heard_of(database_url: str) -> None:
    async with owner_on(database_url) as platform:
        acme = await add_tenant(platform)
        await until(lambda: bool(platform.ownership.owners))
        async with shop_of(database_url, acme) as enqueue:
            assert not platform.outbox.news.is_set()
            await enqueue()
            await asyncio.wait_for(platform.outbox.news.wait(), 20)


async def test_tenants_take_turns(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_service, "PAGE_JOBS", 10)
    monkeypatch.setattr(outbox_service, "TENANTS_PER_ROUND", 2)
    async with owner_on(database_url) as platform:
        tenants = [await add_tenant(platform, name) for name in ("loud", "b", "c")]
        for tenant, count in zip(tenants, (500, 3, 3), strict=True):
            async with shop_of(database_url, tenant) as enqueue:
                await enqueue(count)
        for _ in range(2):
            assert await platform.outbox.run_once(read, 0) == 0
        assert [await left(platform, tenant) for tenant in tenants] == [490, 0, 0]


async def test_beyond_its_rate_a_tenant_waits_and_loses_nothing(database_url: str) -> None:
    async with owner_on(database_url) as platform:
        slow = await platform.directory.add_tenant(
            "slow", TenantSettings(rate_per_second=1, burst=5)
        )
        assert slow is not None
        async with shop_of(database_url, slow) as enqueue:
            ids = await enqueue(8)
        await platform.outbox.run_once(read, 0)
        assert await platform.outbox.run_once(read, 0) <= outbox_service.REST_LIMITED_SECONDS
        assert 5 <= len(await in_jobs(platform)) < 8

        async def are_all_in() -> bool:
            await platform.outbox.run_once(read, 0)
            return await in_jobs(platform) == ids

        await until(are_all_in)


async def test_what_can_be_no_job_is_set_aside_and_told(database_url: str) -> None:
    async with owner_on(database_url) as platform:
        acme = await add_tenant(platform)
        async with shop_of(database_url, acme) as enqueue:
            bad = [*await enqueue(pool="huge"), *await enqueue(payload={"delay": 1})]
            good = await enqueue(3)
        await platform.outbox.run_once(read, 0)
        assert await in_jobs(platform) == good
        assert await left(platform, acme) == 0
        (event,) = await told_events(platform, acme)
        assert event.kind == "outbox.refused"
        detail = str(event.data["detail"])
        assert f"{bad[0]}: UNKNOWN_POOL: There is no such pool. (at /pool)" in detail
        assert f"{bad[1]}: INTERNAL" in detail
        assert platform.admission.refusals(acme)["UNKNOWN_POOL"] == 1


async def test_a_row_that_the_store_refuses_holds_up_no_other(database_url: str) -> None:
    async with owner_on(database_url) as platform:
        acme = await add_tenant(platform)
        async with shop_of(database_url, acme) as enqueue:
            ids = await enqueue(5)
        async with connected(database_url) as owner:
            await owner.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE check_violation USING MESSAGE = 'not this one'; END $$"
            )
            await owner.execute(
                f"CREATE TRIGGER refuse BEFORE INSERT ON jobs FOR EACH ROW"
                f" WHEN (NEW.id = '{ids[2]}') EXECUTE FUNCTION refuse()"
            )
        await platform.outbox.run_once(read, 0)
        assert await in_jobs(platform) == [*ids[:2], *ids[3:]]
        (event,) = await told_events(platform, acme)
        assert "not this one" in str(event.data["detail"])
        async with connected(database_url) as owner:
            await owner.execute("DROP FUNCTION refuse CASCADE")


async def test_a_move_that_breaks_in_the_middle_leaves_everything_where_it_was(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut_off(*job: object, **more: object) -> None:
        raise OSError("cut off")

    async with owner_on(database_url) as platform:
        acme = await add_tenant(platform)
        async with shop_of(database_url, acme) as enqueue:
            ids = await enqueue(5)
        with monkeypatch.context() as broken:
            broken.setattr(outbox_service, "insert_jobs", cut_off)
            with pytest.raises(OSError, match="cut off"):
                await platform.outbox.run_once(read, 0)
        assert (await left(platform, acme), await in_jobs(platform)) == (5, [])
        await platform.outbox.run_once(read, 0)
        assert (await left(platform, acme), await in_jobs(platform)) == (0, ids)


async def test_a_tenant_whose_rows_cannot_be_read_holds_up_no_other(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owner_on(database_url) as platform:
        broken, acme = await add_tenant(platform, "broken"), await add_tenant(platform)
        reading = store.read_waiting

        async def read_page(connection: Connection, shard: ShardId, tenant: TenantId, *page: int):  # type: ignore[no-untyped-def]
            if tenant == broken.id:
                raise asyncpg.DataCorruptedError("invalid page")
            return await reading(connection, shard, tenant, *page)

        for tenant in (broken, acme):
            async with shop_of(database_url, tenant) as enqueue:
                ids = await enqueue(2)
        monkeypatch.setattr(store, "read_waiting", read_page)
        await platform.outbox.run_once(read, 0)
        assert await in_jobs(platform) == ids
        assert await left(platform, broken) == 2


async def test_only_the_owner_moves_and_only_under_its_term(
    database_url: str, connection: Connection
) -> None:
    owner, standby = await open_pair(database_url)
    try:
        acme = await add_tenant(owner)
        async with shop_of(database_url, acme) as enqueue:
            (job,) = await enqueue()
        await standby.outbox.run_once(read, 0)
        assert await left(owner, acme) == 1
        term = owner.dispatcher.term_of(SHARD)
        assert term is not None
        past = Term(term - 1)
        assert await store.take_waiting(connection, SHARD, past, acme.id, [job]) == set()
        await owner.outbox.run_once(read, 0)
        assert await in_jobs(owner) == [job]
    finally:
        await stopped(standby)
        await stopped(owner)


async def test_too_much_waiting_closes_the_door_until_half_is_gone(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.core.backpressure.outbox_room.WAITING_JOBS_MAX", 10)
    async with owner_on(database_url) as platform:
        acme = await add_tenant(platform)
        watch, now_us = OutboxWatch(platform.database), 0

        async def full() -> set[TenantId]:
            nonlocal now_us
            now_us += 20_000_000
            await watch.look(SHARD, [acme.id], now_us)
            async with platform.database.background() as connection:
                return await sql_logins.full_tenants(connection, SHARD)

        async with shop_of(database_url, acme) as enqueue:
            await enqueue(10)
            assert await full() == set()
            await enqueue(1)
            assert await full() == {acme.id}
            with pytest.raises(Exception, match="Too many of your jobs"):
                await enqueue(1)
        await platform.outbox.run_once(read, 0)
        assert await full() == set()


async def test_a_job_for_later_is_scheduled(database_url: str) -> None:
    async def read_later(tenant: Tenant, request: bytes) -> NewJob:
        return new(wish=Wish(delay_ms=600_000))

    async with owner_on(database_url) as platform:
        acme = await add_tenant(platform)
        async with shop_of(database_url, acme) as enqueue:
            (job,) = await enqueue()
        await platform.outbox.run_once(read_later, 0)
        async with platform.database.background() as connection:
            state = await connection.fetchval("SELECT state FROM jobs WHERE id = $1", job)
        assert State(state) == State.SCHEDULED
