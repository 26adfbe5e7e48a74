"""The pruner and the store's clock: partitions ahead, history behind, time from the database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.postgres import connected
from tests.services.platform_room import (
    QUICK,
    freeze,
    owner_on,
    platform_on,
    stored,
    submit,
    until,
)
from tests.store.rows import new_job

from fairway.core.audit import PLATFORM, Act, line_of
from fairway.core.backlog.tombstones import KEEP_US
from fairway.core.ids import ShardId
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.clock import ManualClock
from fairway.services.maintenance.pruner import KEYS_AT_ONCE, REST_SECONDS, Pruner
from fairway.services.platform import Platform
from fairway.services.store_clock import StoreClock
from fairway.store import submissions
from fairway.store.connections.database import Connection
from fairway.store.registry.audit import add_audit
from fairway.store.schema import partitions

OLD = datetime.now(UTC) - timedelta(days=30)


def pruner_of(platform: Platform) -> Pruner:
    return Pruner(
        platform.database, platform.dispatcher, platform.store_clock, platform.instruments, QUICK
    )


async def prune(pruner: Pruner) -> None:
    """Rounds until one finds nothing to do."""
    async with asyncio.timeout(60):
        while await pruner.run_once(0) < REST_SECONDS:
            pass


async def test_a_round_drops_what_is_past_and_keeps_what_lives(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    async with platform.database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
        waiting, done = new_job(at=OLD), new_job(at=OLD)
        await submissions.insert_jobs(connection, ShardId(0), [waiting, done])
        await connection.execute(
            "UPDATE jobs SET state = 3, finished_at = $2 WHERE id = $1", done.id, OLD
        )
    (fresh,) = await submit(platform, tenant)
    pruner = pruner_of(platform)
    await prune(pruner)
    async with platform.database.upkeep() as connection:
        left = {row["id"] for row in await connection.fetch("SELECT id::text AS id FROM jobs")}
        names = {partition.name for partition in await partitions.existing(connection)}
    assert left == {waiting.id, fresh}
    assert partitions.partition_at(OLD).name not in names
    assert partitions.partition_at(datetime.now(UTC)).name in names
    assert (await stored(platform, waiting.id))[0] is State.QUEUED


async def test_only_the_owner_prunes(platform: Platform) -> None:
    await freeze(platform)
    async with platform.database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
    platform.dispatcher.close_shard(ShardId(0))
    pruner = pruner_of(platform)
    assert await pruner.run_once(0) == REST_SECONDS
    async with platform.database.upkeep() as connection:
        names = {partition.name for partition in await partitions.existing(connection)}
    assert partitions.partition_at(OLD).name in names


async def test_a_clock_that_jumped_drops_no_history(platform: Platform) -> None:
    """Neither the store's clock nor ours is believed alone: what is dropped is gone for good."""
    await freeze(platform)
    old = datetime.now(UTC) - timedelta(days=2)
    async with platform.database.upkeep() as connection:
        await partitions.make_ahead(connection, old)
        done = new_job(at=old)
        await submissions.insert_jobs(connection, ShardId(0), [done])
        await connection.execute(
            "UPDATE jobs SET state = 3, finished_at = $2 WHERE id = $1", done.id, old
        )
        await add_audit(connection, line_of(PLATFORM, Act("put_pool", "gpu")))
        await add_keys(connection, 1, expired=True)
    ahead = datetime.now(UTC) + timedelta(days=400)
    platform.store_clock.was_read(ahead, platform.clock.now_us())
    pruner = pruner_of(platform)
    for _ in range(3):
        await pruner.run_once(0)
    assert (await stored(platform, done.id))[0] is State.SUCCEEDED
    async with platform.database.upkeep() as connection:
        assert await connection.fetchval("SELECT count(*) FROM audit") == 1
        assert await connection.fetchval("SELECT count(*) FROM idempotency") == 1
    skew = platform.metrics.registry.get_sample_value("fairway_clock_skew_seconds")
    assert skew == pytest.approx(400 * 86400, rel=0.01)
    platform.store_clock.was_read(datetime.now(UTC), platform.clock.now_us())
    await prune(pruner)
    async with platform.database.upkeep() as connection:
        assert await connection.fetchval("SELECT count(*) FROM idempotency") == 0


async def test_a_step_that_fails_stops_no_other(platform: Platform, database_url: str) -> None:
    await freeze(platform)
    async with platform.database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
        await add_keys(connection, 10, expired=True)
        await connection.execute(
            f"DROP TABLE {partitions.partition_at(datetime.now(UTC) + timedelta(days=2)).name}"
        )
    async with connected(database_url) as reader, reader.transaction():
        await reader.execute("LOCK TABLE jobs IN ACCESS SHARE MODE")  # a long report
        assert await pruner_of(platform).run_once(0) < REST_SECONDS
    async with platform.database.upkeep() as connection:
        assert await connection.fetchval("SELECT count(*) FROM idempotency") == 0
        names = {partition.name for partition in await partitions.existing(connection)}
    assert partitions.partition_at(OLD).name in names, "its turn comes when the report is done"


async def test_keys_of_a_shard_are_forgotten_by_its_owner(database_url: str) -> None:
    async with owner_on(database_url, replace(QUICK, shard_count=2)) as platform:
        await freeze(platform)
        platform.dispatcher.close_shard(ShardId(0))
        async with platform.database.upkeep() as connection:
            await add_keys(connection, 5, expired=True, shard=0)
            await add_keys(connection, 5, expired=True, shard=1)
        await pruner_of(platform).run_once(0)
        async with platform.database.upkeep() as connection:
            left = await connection.fetch("SELECT DISTINCT shard FROM idempotency")
        assert [row["shard"] for row in left] == [0]


async def test_two_owners_leave_nothing_of_any_shard(database_url: str) -> None:
    """Once only the owner of shard 0 pruned, and only its own shards: another's kept all."""
    lasting = replace(QUICK, shard_count=2, term_seconds=30.0)
    async with owner_on(database_url, lasting) as first:
        await freeze(first)
        async with first.database.upkeep() as connection:
            await connection.execute(
                "UPDATE shards SET term = term + 1, expires_at = now() - interval '1 second'"
                " WHERE shard = 1"
            )
        async with platform_on(database_url, lasting) as second:
            await until(lambda: second.dispatcher.open_shards() == [1])
            await freeze(second)
            await first.ownership.run_once(first.clock.now_us())  # notices what it lost
            assert first.dispatcher.open_shards() == [0]
            async with first.database.upkeep() as connection:
                for shard in (0, 1):
                    await add_keys(connection, 5, expired=True, shard=shard)
                    await add_past(connection, shard)
            await pruner_of(first).run_once(0)
            assert await shards_left(first) == [{1}, {1}, {1}], "another's shard is not ours"
            await pruner_of(second).run_once(0)
            assert await shards_left(first) == [set(), set(), set()]


async def test_keys_go_as_quickly_as_they_come(platform: Platform) -> None:
    """A round removed five thousand, once a second: fewer than a busy server takes."""
    await freeze(platform)
    async with platform.database.upkeep() as connection:
        await add_keys(connection, 3 * KEYS_AT_ONCE + 1, expired=True)
        await add_keys(connection, 7, expired=False)
    await pruner_of(platform).run_once(0)
    async with platform.database.upkeep() as connection:
        assert await connection.fetchval("SELECT count(*) FROM idempotency") == 7


async def test_the_audit_is_kept_for_its_days(platform: Platform) -> None:
    await freeze(platform)
    async with platform.database.upkeep() as connection:
        for days in (QUICK.audit_days + 1, QUICK.audit_days - 1):
            await connection.execute(
                "INSERT INTO audit (at, actor, action, subject, detail)"
                " VALUES (now() - make_interval(days => $1), '', '', '', '')",
                days,
            )
    await prune(pruner_of(platform))
    async with platform.database.upkeep() as connection:
        assert await connection.fetchval("SELECT count(*) FROM audit") == 1


async def test_stones_are_cleared_when_nobody_cancels_any_more(platform: Platform) -> None:
    await freeze(platform)
    platform.dispatcher.tombstones.raise_for("job", 0)
    await pruner_of(platform).run_once(KEEP_US)
    assert len(platform.dispatcher.tombstones) == 0


async def add_keys(connection: Connection, count: int, *, expired: bool, shard: int = 0) -> None:
    await connection.execute(
        "INSERT INTO idempotency (shard, tenant, key, body_hash, job, expires_at)"
        " SELECT $1, 1, $2::boolean || '-' || n, '', gen_random_uuid(),"
        "        now() + make_interval(hours => CASE WHEN $2::boolean THEN -1 ELSE 1 END)"
        " FROM generate_series(1, $3) AS n",
        shard,
        expired,
        count,
    )


async def add_past(connection: Connection, shard: int) -> None:
    """An action and a run of a schedule that nobody has to remember any more."""
    await connection.execute(
        "INSERT INTO bulk_actions (shard, tenant, id, act, state, since, before,"
        "                          per_second, matched, cursor, finished_at)"
        " SELECT $1, 1, id, 'discard', 'done', id, id, 1, 1, id, $2"
        " FROM gen_random_uuid() AS id",
        shard,
        OLD,
    )
    await connection.execute(
        "INSERT INTO schedule_runs (shard, tenant, name, tick, cause, outcome, recorded_at)"
        " VALUES ($1, 1, 'nightly', $2, 0, 1, $2)",
        shard,
        OLD,
    )


async def shards_left(platform: Platform) -> list[set[int]]:
    """Whose keys, actions and runs are still there."""
    tables = ("idempotency", "bulk_actions", "schedule_runs")
    async with platform.database.upkeep() as connection:
        return [
            {row["shard"] for row in await connection.fetch(f"SELECT DISTINCT shard FROM {table}")}
            for table in tables
        ]


def test_the_stores_clock_is_carried_on_by_the_monotonic_one() -> None:
    clock = ManualClock()
    store_clock = StoreClock(clock)
    moment = datetime(2030, 5, 5, tzinfo=UTC)
    clock.advance(10)
    store_clock.was_read(moment, clock.now_us())
    clock.advance(2.5)
    assert store_clock.now() == moment + timedelta(seconds=2.5)
    assert store_clock.at_us(clock.now_us() - 1_000_000) == moment + timedelta(seconds=1.5)
