"""Jobs in transactions of the tenant's own, while servers die: those that were committed run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.acceptance.house import House
from tests.acceptance.jobs import nap
from tests.acceptance.processes import until
from tests.logins import login_of
from tests.postgres import connected

import fairway.sql
from fairway.store.connections.database import Connection

#: Committed, as many rolled back, and how often a server is killed meanwhile.
FEW, MANY = (300, 2), (1000, 5)
PAUSE_SECONDS = 0.01  # so that the shop is open for longer than a server is away


@pytest.mark.parametrize(("count", "kills"), [FEW, pytest.param(*MANY, marks=pytest.mark.slow)])
@pytest.mark.timeout(600)
async def test_exactly_the_committed_ones_run_whatever_dies(
    house: House, figures: dict[str, str], count: int, kills: int
) -> None:
    await house.open(workers=1)
    async with connected(house.dsn) as owner:
        await owner.execute("CREATE TABLE orders (job uuid PRIMARY KEY)")
        await owner.execute("GRANT SELECT, INSERT ON orders TO PUBLIC")
    committed: set[str] = set()
    rolled_back: set[str] = set()

    async def keep_shop(dsn: str) -> None:
        async with connected(dsn) as shop:
            for _ in range(count):
                rolled_back.add(await order(shop, is_kept=False))
                committed.add(await order(shop, is_kept=True))
                await asyncio.sleep(PAUSE_SECONDS)

    waited, outages = [], []
    async with login_of(house.dsn, "acme") as dsn:
        shop = asyncio.create_task(keep_shop(dsn))
        for n in range(1, kills + 1):
            await until(is_past(committed, n * count // (kills + 1)), 60, "orders")
            await house.servers[0].kill()
            await until(is_past(committed, len(committed) + 10), 60, "orders without a server")
            waited.append(await in_outbox(house))
            outages.append(await house.restart(house.servers[0]).ready())
        await shop
    assert min(waited) > 0, "nobody noticed: the test proved nothing"

    async with asyncio.timeout(60):
        while await in_outbox(house):  # noqa: ASYNC110  # the database has no event for it
            await asyncio.sleep(0.05)
    verdict = await house.check(sorted(committed))
    assert len(committed) == len(rolled_back) == count
    assert set(await house.book.rows()) == committed
    ran = {line["job"] for line in house.ledger.lines()}
    assert ran == committed
    async with connected(house.dsn) as owner:
        orders = {str(row["job"]) for row in await owner.fetch("SELECT job FROM orders")}
    assert orders == committed
    figures["transactions, committed and rolled back"] = (
        f"{len(committed)} and {len(rolled_back)}, {kills} kills, {waited} waited meanwhile, ready"
        f" again after {max(outages):.1f} s at most, {verdict.ran_twice} jobs ran twice"
    )


async def order(shop: Connection, *, is_kept: bool) -> str:
    """A row of the tenant's own and a job, together."""
    transaction = shop.transaction()
    await transaction.start()
    handle = await fairway.sql.aenqueue(shop, nap, 0.0)
    await shop.execute("INSERT INTO orders VALUES ($1)", handle.id)
    await (transaction.commit() if is_kept else transaction.rollback())
    return handle.id


def is_past(found: set[str], count: int) -> Callable[[], bool]:
    return lambda: len(found) >= count


async def in_outbox(house: House) -> int:
    async with connected(house.dsn) as owner:
        count: int = await owner.fetchval("SELECT count(*) FROM outbox")
        return count
