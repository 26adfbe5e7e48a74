"""Months are closed once, a step at a time, and a statement that was kept is the last word."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.services.platform_room import QUICK, add_tenant, freeze, owner_on
from tests.store.rows import SHARD

from fairway.core.audit import PLATFORM
from fairway.core.billing.periods import Month, month_of
from fairway.core.billing.pricing import ANY_POOL, Price
from fairway.core.errors import Conflict, InvalidRequest, NotFound
from fairway.core.ids import ShardId, TenantId
from fairway.core.tenant import Tenant
from fairway.runtime.loops import Loop
from fairway.services.billing.prices import NewPrice
from fairway.services.billing.statements import Statement
from fairway.services.platform import Platform
from fairway.services.registry import tenant_moves
from fairway.services.registry.tenant_moves import Wanted
from fairway.store.billing import prices, statements, usage
from fairway.store.connections.database import Connection

THIS = month_of(datetime.now(UTC))
LAST = month_of(THIS.begins - timedelta(days=1))
DAY = timedelta(days=1)
SUM_MAX = (1 << 63) - 1


async def add_price(platform: Platform, pool: str, begins: datetime, base: int, slot: int) -> None:
    """Also one that began long ago."""
    async with platform.database.people() as connection:
        await connection.execute(
            "INSERT INTO prices VALUES ($1, $2, $3, $4)", pool, begins, base, slot
        )


async def use(platform: Platform, tenant: Tenant, at: datetime, us: int, pool: int = 1) -> None:
    """As the end of a run leaves it; none is run in a month that is over."""
    async with platform.database.people() as connection:
        await connection.execute(
            "INSERT INTO usage_log (shard, recorded_at, tenant_ids, pool_ids, type_ids, billed_us)"
            " VALUES (0, $1, ARRAY[$2::int], ARRAY[$3::smallint], ARRAY[1], ARRAY[$4::bigint])",
            at, tenant.id, pool, us,
        )  # fmt: skip
        await connection.execute(
            "UPDATE tenants SET created_at = least(created_at, $1) WHERE id = $2", at, tenant.id
        )


async def turn_back(platform: Platform, to: Month) -> None:
    """The books are as they were while that month was open."""
    async with platform.database.people() as connection:
        await usage.begin_billing(connection, [SHARD])
        await connection.execute(
            "UPDATE billing_shards SET closed_until = $1, stated_until = $1", to.begins
        )


async def close_all(platform: Platform) -> None:
    while await platform.billing.month_closer.run_once(0) < 1:
        pass


@pytest.fixture
async def still(platform: Platform) -> Platform:
    """Its loops do nothing by themselves."""
    await freeze(platform)
    await turn_back(platform, LAST)
    return platform


async def statement(platform: Platform, tenant: Tenant, month: Month = LAST) -> Statement:
    return await platform.billing.statements.of(tenant.id, month, tenant.id)


async def test_a_month_by_pool_type_and_price(still: Platform, tenant: Tenant) -> None:
    await add_price(still, ANY_POOL, LAST.begins - DAY, 5_000_000, 25)
    await add_price(still, ANY_POOL, LAST.begins + DAY, 9, 50)
    await add_price(still, "medium", LAST.begins - DAY, 700, 100)
    await add_price(still, "long", LAST.begins - DAY, 800, 1)
    for days, us, pool in ((0, 1_000_000, 1), (0, 20_001, 1), (2, 3_000_000, 1), (2, 7, 2)):
        await use(still, tenant, LAST.begins + days * DAY, us, pool)
    found = await statement(still, tenant)
    told = [(one.kind, one.pool, one.price_micros, one.amount_micros) for one in found.lines]
    assert told == [
        ("base_fee", "*", 5_000_000, 5_000_000),
        ("base_fee", "medium", 700, 700),
        ("usage", "medium", 100, 0),
        ("usage", "short", 25, 26),
        ("usage", "short", 50, 150),
    ]
    assert (found.is_closed, found.total_micros) == (False, 5_000_876)


async def test_a_closed_month_never_changes(still: Platform, tenant: Tenant) -> None:
    """Its jobs are gone, its hours are gone, prices were added: it says what it said."""
    await add_price(still, ANY_POOL, LAST.begins, 100, 25)
    await use(still, tenant, LAST.begins + DAY, 4_000_000)
    open_ = await statement(still, tenant)
    await close_all(still)
    closed = await statement(still, tenant)
    assert (closed.lines, closed.is_closed) == (open_.lines, True)
    assert closed.closed_at is not None
    await use(still, tenant, LAST.begins + DAY, 1_000_000)  # a straggler
    await close_all(still)
    await still.billing.roll_up.drain(SHARD)
    async with still.database.people() as connection:
        await connection.execute("UPDATE prices SET slot_second_micros = 99")
        await connection.execute("DELETE FROM jobs")
        late = await connection.fetchval("SELECT min(hour) FROM usage_hours WHERE billed_us < 2e6")
        assert await usage.forget_usage(connection, THIS.begins, 100) == 1
    assert late == THIS.begins, "it is booked into the first hour that is open"
    assert await statement(still, tenant) == closed


async def test_closing_goes_on_where_it_was_cut_short(still: Platform, tenant: Tenant) -> None:
    """After each step another server may have to go on: it finds what is done, and doubles none."""
    other = await add_tenant(still, "other")
    await add_price(still, ANY_POOL, LAST.begins, 100, 25)
    for one in (tenant, other):
        await use(still, one, LAST.begins + DAY, 4_000_000)
    before = [(await statement(still, one)).lines for one in (tenant, other)]
    closer = still.billing.month_closer
    await closer.run_once(0)  # it is closed
    assert [(await statement(still, one)).lines for one in (tenant, other)] == before
    await still.billing.statements.keep(tenant.id, LAST)  # and the server died here
    await close_all(still)
    await still.billing.statements.keep(tenant.id, LAST)
    assert [(await statement(still, one)).lines for one in (tenant, other)] == before
    async with still.database.people() as connection:
        assert await connection.fetchval("SELECT count(*) FROM statements") == 2
        (books,) = await statements.read_books(connection, [SHARD])
    assert books.stated_until == books.closed_until == THIS.begins


async def test_a_statement_that_cannot_be_made_keeps_no_other_from_its_own(
    still: Platform, tenant: Tenant
) -> None:
    """Sums beyond all numbers; when they are mended, the month goes on."""
    other = await add_tenant(still, "other")
    for one in (tenant, other):
        await use(still, one, LAST.begins + DAY, 1)
    await still.billing.roll_up.drain(SHARD)
    spoil = "UPDATE usage_hours SET jobs_ended = $1 WHERE tenant = $2"
    async with still.database.people() as connection:
        await connection.execute(
            "INSERT INTO usage_hours SELECT tenant, hour + interval '1 hour', pool, type,"
            " 1, 0, 0, 0 FROM usage_hours"
        )
        await connection.execute(spoil, SUM_MAX, tenant.id)
    await close_all(still)
    kept = "SELECT array_agg(tenant ORDER BY tenant) FROM statements"
    async with still.database.people() as connection:
        assert await connection.fetchval(kept) == [other.id]
        await connection.execute(spoil, 1, tenant.id)
    await close_all(still)
    async with still.database.people() as connection:
        assert await connection.fetchval(kept) == [tenant.id, other.id]


async def test_a_statement_that_cannot_be_made_stops_no_shard_behind_that_book(
    database_url: str,
) -> None:
    """Shard 9 is logged in the book of shard 1, whose only tenant cannot be stated."""
    first = month_of(LAST.begins - DAY)
    async with owner_on(database_url, replace(QUICK, shard_count=10)) as platform:
        await freeze(platform)
        tenant = await add_tenant(platform)
        assert platform.tenant_shards.of(tenant.id) == 1
        async with platform.database.people() as connection:
            await usage.begin_billing(connection, [ShardId(shard) for shard in range(10)])
            await connection.execute(
                "UPDATE billing_shards SET closed_until = $1, stated_until = $1", first.begins
            )
            await connection.execute(
                "INSERT INTO usage_hours SELECT $1, $2::timestamptz + n * interval '1 hour', 1, 1,"
                " $3, 0, 0, 0 FROM generate_series(1, 2) AS n", tenant.id, first.begins, SUM_MAX,
            )  # fmt: skip
            await connection.execute("UPDATE tenants SET created_at = $1", first.begins)
        for _ in range(8):
            await platform.billing.month_closer.run_once(0)
        async with platform.database.people() as connection:
            books = await statements.read_books(connection, [ShardId(n) for n in range(10)])
        assert {one.closed_until for one in books} == {THIS.begins}
        assert {one.shard for one in books if one.stated_until < THIS.begins} == {1}
        move = Wanted(tenant.name, ShardId(4))  # neither would state it; it need not stand still
        with pytest.raises(Conflict, match="log says which statement is not kept"):
            await tenant_moves.ask(platform.database, platform.audit_log, move, PLATFORM)


async def test_a_stop_amid_statements_is_heeded_where_a_month_cannot_be_closed(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes wrong while a month is closed must not stand in the place of the stop: the loop
    went on with the next shard then, and the stop took all the time that it may."""
    first, reached, failed = month_of(LAST.begins - DAY), asyncio.Event(), list[ShardId]()
    async with owner_on(database_url, replace(QUICK, shard_count=2)) as platform:
        await freeze(platform)
        await add_tenant(platform)
        await add_tenant(platform, "other")
        async with platform.database.people() as connection:
            await usage.begin_billing(connection, [SHARD, ShardId(1)])
            await connection.execute(
                "UPDATE billing_shards SET closed_until = $1, stated_until = $2",
                LAST.begins, first.begins,
            )  # fmt: skip
            await connection.execute("UPDATE tenants SET created_at = $1", first.begins)
        keep, drain = platform.billing.statements.keep, platform.billing.roll_up.drain

        async def slow(tenant: TenantId, month: Month) -> None:
            if not reached.is_set():
                reached.set()
                await asyncio.Event().wait()
            await keep(tenant, month)

        async def sometimes(shard: ShardId) -> bool:
            if not failed:
                failed.append(shard)
                raise LookupError("more rows than may be set aside")
            return await drain(shard)

        monkeypatch.setattr(platform.billing.statements, "keep", slow)
        monkeypatch.setattr(platform.billing.roll_up, "drain", sometimes)
        loop = Loop("months", platform.billing.month_closer.run_once, platform.clock)
        loop.start()
        await reached.wait()
        stopping = asyncio.create_task(loop.stop())
        done, _ = await asyncio.wait({stopping}, timeout=5)
        assert done, "it does not stop"


async def test_several_months_are_closed_in_order(still: Platform, tenant: Tenant) -> None:
    first = month_of(LAST.begins - DAY)
    await turn_back(still, first)
    await add_price(still, ANY_POOL, first.begins, 0, 25)
    await use(still, tenant, first.begins + DAY, 1_000_000)
    await use(still, tenant, LAST.begins + DAY, 2_000_000)
    await close_all(still)
    sums = [(await statement(still, tenant, month)).total_micros for month in (first, LAST)]
    assert sums == [25, 50]


async def test_no_month_is_closed_while_clocks_are_apart(
    still: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is closed stays closed: a database's clock that jumps a month ahead for a moment would
    have closed one that has just begun, and every tenant's statement of it were kept for good."""
    wall, behind_ms = type(still.clock).unix_ms, 40 * 86_400_000
    with monkeypatch.context() as patched:
        patched.setattr(type(still.clock), "unix_ms", lambda self: wall(self) - behind_ms)
        await close_all(still)
        assert not (await statement(still, tenant)).is_closed
    await close_all(still)
    assert (await statement(still, tenant)).is_closed


async def test_this_month_stays_open_and_the_next_is_not_there(
    still: Platform, tenant: Tenant
) -> None:
    await close_all(still)
    assert not (await statement(still, tenant, THIS)).is_closed
    with pytest.raises(NotFound):
        await statement(still, tenant, THIS.next)


async def test_whoever_came_later_owes_no_base_fee(still: Platform) -> None:
    await add_price(still, ANY_POOL, LAST.begins - DAY, 5, 25)
    late = await add_tenant(still, "late")
    assert (await statement(still, late)).lines == []
    assert (await statement(still, late, THIS)).total_micros == 5


async def test_prices_lie_ahead_and_are_not_changed(platform: Platform) -> None:
    book, hour = (
        platform.billing.prices,
        datetime.now(UTC).replace(minute=0, second=0, microsecond=0),
    )
    ahead = NewPrice("short", hour + timedelta(hours=5), 1, 2)
    added = await book.add(ahead, PLATFORM)
    assert added == Price("short", hour + timedelta(hours=5), 1, 2)
    with pytest.raises(Conflict):
        await book.add(ahead._replace(slot_second_micros=3), PLATFORM)
    for wrong in (hour, hour - DAY, hour + timedelta(hours=2, minutes=1)):
        with pytest.raises(InvalidRequest, match="price begins"):
            await book.add(ahead._replace(valid_from=wrong), PLATFORM)
    with pytest.raises(InvalidRequest):
        await book.add(ahead._replace(pool="nowhere"), PLATFORM)
    soon = await book.add(NewPrice("*", None, 1, 2), PLATFORM)
    assert soon.valid_from > datetime.now(UTC)
    async with platform.database.people() as connection:
        assert await prices.list_prices(connection) == [soon, added]


async def test_a_shard_that_cannot_be_closed_holds_up_none_behind_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owner_on(database_url, replace(QUICK, shard_count=2)) as platform:
        await freeze(platform)
        async with platform.database.people() as connection:
            await usage.begin_billing(connection, [SHARD, ShardId(1)])
            await connection.execute(
                "UPDATE billing_shards SET closed_until = $1, stated_until = $1", LAST.begins
            )
        close, sick = statements.close_until, {SHARD}

        async def sometimes(connection: Connection, shard: ShardId, *times: datetime) -> bool:
            if shard in sick:
                raise LookupError("not to be closed")
            return await close(connection, shard, *times)

        monkeypatch.setattr(statements, "close_until", sometimes)
        await platform.billing.month_closer.run_once(0)
        await platform.billing.month_closer.run_once(0)
        async with platform.database.people() as connection:
            stated = await connection.fetch("SELECT * FROM billing_shards ORDER BY shard")
        assert [row["stated_until"] > LAST.begins for row in stated] == [False, True]
        sick.add(ShardId(1))
        await turn_back(platform, LAST)
        with pytest.raises(LookupError):  # of all: the loop tells of it, and rests longer
            await platform.billing.month_closer.run_once(0)
