"""The log of usage is rolled up; a row that cannot be booked holds up neither others nor months."""

from __future__ import annotations

from datetime import timedelta

import asyncpg
import pytest
from tests.services.billing.test_statements import LAST, close_all, turn_back, use
from tests.services.platform_room import freeze
from tests.store.rows import SHARD

from fairway.core.tenant import Tenant
from fairway.services.billing import roll_up
from fairway.services.billing.roll_up import RollUp
from fairway.services.platform import Platform

AT = LAST.begins + timedelta(days=3)


@pytest.fixture
async def still(platform: Platform) -> Platform:
    """Its loops do nothing by themselves."""
    await freeze(platform)
    await turn_back(platform, LAST)
    return platform


def another(platform: Platform) -> RollUp:
    """As the next owner has it."""
    return RollUp(platform.database, platform.dispatcher, platform.clock, platform.metrics)


async def add_bad_row(platform: Platform) -> int:
    """Of nobody, as no statement of ours writes it."""
    async with platform.database.people() as connection:
        number: int = await connection.fetchval(
            "INSERT INTO usage_log (shard, recorded_at, tenant_ids, pool_ids, type_ids, billed_us)"
            " VALUES (0, $1, ARRAY[NULL::int], ARRAY[1::smallint], ARRAY[1], ARRAY[1::bigint])"
            " RETURNING id",
            AT,
        )
    return number


async def test_the_book_of_a_shard_that_a_tenant_moves_to_is_kept(
    still: Platform, tenant: Tenant
) -> None:
    """Nobody owns it until then, and ends of other shards are logged there: the move itself may
    wait for them."""
    moved_to, books = 5, still.billing.roll_up
    await execute(
        still,
        "INSERT INTO usage_log (shard, recorded_at, tenant_ids, pool_ids, type_ids, billed_us)"
        " VALUES ($1, now(), ARRAY[$2::int], ARRAY[1::smallint], ARRAY[1], ARRAY[7::bigint])",
        moved_to,
        tenant.id,
    )
    await books.run_once(0)
    assert await rows_in_log(still) == 1, "it is another's"
    await execute(
        still,
        "INSERT INTO tenant_moves (tenant, from_shard, to_shard, wait_seconds)"
        " VALUES ($1, 13, $2, 60)",
        tenant.id,
        moved_to,
    )
    await books.run_once(0)
    assert await rows_in_log(still) == 0
    assert moved_to in await books.kept_here()
    await execute(still, "UPDATE tenant_moves SET finished_at = now(), state = 'done'")
    assert moved_to not in await books.kept_here()


async def execute(platform: Platform, statement: str, *values: object) -> None:
    async with platform.database.people() as connection:
        await connection.execute(statement, *values)


async def rows_in_log(platform: Platform) -> int:
    async with platform.database.people() as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM usage_log")
    return found


async def in_log(platform: Platform) -> dict[int, str | None]:
    async with platform.database.people() as connection:
        rows = await connection.fetch("SELECT id, refused FROM usage_log WHERE shard = 0")
    return {row["id"]: row["refused"] for row in rows}


async def booked_us(platform: Platform, tenant: Tenant) -> int:
    async with platform.database.people() as connection:
        found: int = await connection.fetchval(
            "SELECT coalesce(sum(billed_us), 0)::bigint FROM usage_hours WHERE tenant = $1",
            tenant.id,
        )
    return found


def counted(platform: Platform) -> float:
    found = platform.metrics.registry.get_sample_value("fairway_set_aside_total", {"what": "usage"})
    return found or 0.0


async def test_a_row_that_cannot_be_booked_is_set_aside_and_all_others_are_booked(
    still: Platform, tenant: Tenant
) -> None:
    bad = []
    for number in range(9):
        await use(still, tenant, AT, 10)
        if number in (2, 7):
            bad.append(await add_bad_row(still))
    assert await still.billing.roll_up.drain(SHARD)
    found = await in_log(still)
    assert sorted(found) == bad
    assert all("tenant" in (why or "") for why in found.values()), "with the store's reason"
    assert (await booked_us(still, tenant), counted(still)) == (90, 2)
    await use(still, tenant, AT, 1)
    assert await still.billing.roll_up.drain(SHARD), "and no part of it is tried again"
    assert (await booked_us(still, tenant), counted(still)) == (91, 2)


async def test_what_was_set_aside_holds_up_no_month_and_is_booked_once_it_is_mended(
    still: Platform, tenant: Tenant
) -> None:
    await add_bad_row(still)
    await use(still, tenant, AT, 10)
    await close_all(still)
    async with still.database.people() as connection:
        closed = await connection.fetchval("SELECT closed_until FROM billing_shards")
        assert closed == LAST.ends
        await connection.execute("UPDATE usage_log SET tenant_ids = ARRAY[$1::int]", tenant.id)
    await still.billing.roll_up.drain(SHARD)
    assert await booked_us(still, tenant) == 10, "nobody has tried it again"
    await another(still).run_once(0)
    assert (await booked_us(still, tenant), await in_log(still)) == (11, {})


async def test_more_than_so_many_are_not_set_aside(
    still: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is not the rows that are at fault; what can be booked is, all the same."""
    monkeypatch.setattr(roll_up, "ASIDE_MAX", 1)
    for _ in range(2):
        await add_bad_row(still)
    await use(still, tenant, AT, 10)
    with pytest.raises(asyncpg.NotNullViolationError):
        await still.billing.roll_up.drain(SHARD)
    assert set((await in_log(still)).values()) == {None}
    assert await booked_us(still, tenant) == 10
