"""The pruner and the store's clock: partitions ahead, history behind, time from the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.services.platform_room import freeze, stored, submit
from tests.store.rows import new_job

from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.clock import ManualClock
from fairway.services.platform import Platform
from fairway.services.pruner import REST_SECONDS, Pruner
from fairway.services.store_clock import StoreClock
from fairway.store import partitions, submissions

OLD = datetime.now(UTC) - timedelta(days=30)


async def test_a_round_drops_what_is_past_and_keeps_what_lives(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    async with platform.database.calm() as connection:
        await partitions.make_ahead(connection, OLD)
        waiting, done = new_job(at=OLD), new_job(at=OLD)
        await submissions.insert_jobs(connection, 0, [waiting, done])
        await connection.execute(
            "UPDATE jobs SET state = 3, finished_at = $2 WHERE id = $1", done.id, OLD
        )
    (fresh,) = await submit(platform, tenant)
    pruner = Pruner(platform.database, platform.dispatcher, platform.store_clock, 7)
    assert await pruner.run_once(0) == REST_SECONDS
    async with platform.database.calm() as connection:
        left = {row["id"] for row in await connection.fetch("SELECT id::text AS id FROM jobs")}
        names = {partition.name for partition in await partitions.existing(connection)}
    assert left == {waiting.id, fresh}
    assert partitions.partition_at(OLD).name not in names
    assert partitions.partition_at(datetime.now(UTC)).name in names
    assert (await stored(platform, waiting.id))[0] is State.QUEUED


async def test_only_the_owner_prunes(platform: Platform) -> None:
    await freeze(platform)
    async with platform.database.calm() as connection:
        await partitions.make_ahead(connection, OLD)
    platform.dispatcher.close_shard(0)
    pruner = Pruner(platform.database, platform.dispatcher, platform.store_clock, 7)
    assert await pruner.run_once(0) == REST_SECONDS
    async with platform.database.calm() as connection:
        names = {partition.name for partition in await partitions.existing(connection)}
    assert partitions.partition_at(OLD).name in names


def test_the_stores_clock_is_carried_on_by_the_monotonic_one() -> None:
    clock = ManualClock()
    store_clock = StoreClock(clock)
    moment = datetime(2030, 5, 5, tzinfo=UTC)
    clock.advance(10)
    store_clock.was_read(moment, clock.now_us())
    clock.advance(2.5)
    assert store_clock.now() == moment + timedelta(seconds=2.5)
    assert store_clock.at_us(clock.now_us() - 1_000_000) == moment + timedelta(seconds=1.5)
