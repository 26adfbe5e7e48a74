"""Slow hot statements are noticed: counted by name, logged with their plan, statistics renewed."""

from __future__ import annotations

import asyncio
from typing import Any

from structlog.testing import capture_logs
from tests.postgres import connected
from tests.services.platform_room import Hand, new, submit, until

from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import Metrics
from fairway.services.maintenance.slow_statements import AGAIN_US, SlowStatements
from fairway.services.platform import Platform
from fairway.store import leadership
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.slow_calls import PLAN_LENGTH_MAX, SLOW_SECONDS, SlowCall
from fairway.store.schema.partitions import partition_at
from fairway.store.sql import load

OUTCOMES = load("outcomes.sql")


async def believed_rows(connection: Connection) -> float:
    today = partition_at(await leadership.database_now(connection)).name
    rows: float = await connection.fetchval(
        "SELECT reltuples FROM pg_class WHERE relname = $1", today
    )
    return rows


async def is_waited_for(holder: Connection) -> bool:
    waiting: int = await holder.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND application_name LIKE 'fairway-hot/%' AND datname = current_database()"
    )
    return waiting > 0


def counted(metrics: Metrics, name: str) -> float:
    value = metrics.registry.get_sample_value("fairway_slow_statements_total", {"statement": name})
    return value or 0.0


def said(entries: list[Any]) -> list[Any]:
    return [entry for entry in entries if entry["event"] == "hot statement was slow"]


async def test_a_statement_that_waits_for_a_lock_is_noticed_and_nobody_waits_for_that(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    (job,) = await submit(platform, tenant, new())
    hand = Hand(platform, short=1)
    (lease,) = await hand.take(1)
    awaited = OUTCOMES | load("leases.sql")  # the end, or the lease before it

    def found(entries: list[Any]) -> list[Any]:
        return [entry for entry in said(entries) if entry["statement"] in awaited]

    with capture_logs() as entries:
        async with connected(database_url) as holder:
            async with holder.transaction():
                await holder.fetch("SELECT FROM jobs WHERE id = $1 FOR UPDATE", job)
                report = asyncio.create_task(hand.report(hand.done(lease)))
                await until(lambda: is_waited_for(holder))
                await holder.execute(f"SELECT pg_sleep({SLOW_SECONDS + 0.1})")
            assert await report == ({1}, set())
            await until(lambda: bool(found(entries)))  # on a slow machine others are slow, too
            assert counted(platform.metrics, found(entries)[0]["statement"]) >= 1
            assert found(entries)[0]["seconds"] >= SLOW_SECONDS
            assert "Nested Loop" in found(entries)[0]["plan"]
            await until(lambda: any(one["event"] == "statistics renewed" for one in entries))
            assert await believed_rows(holder) >= 0


async def test_a_plan_and_an_analysis_at_most_once_a_minute(database: Database) -> None:
    metrics = Metrics()
    slow = SlowStatements(database, metrics)
    settle, ends = (SlowCall(OUTCOMES[name], 2.0) for name in ("settle", "read_ends"))
    with capture_logs() as entries:
        for moment in (0, AGAIN_US // 2, AGAIN_US):
            database.slow_calls.note(settle)
            database.slow_calls.note(settle)
            await slow.run_once(moment)
        assert [entry["statement"] for entry in said(entries)] == ["settle", "settle"]
        renewed = [entry for entry in entries if entry["event"] == "statistics renewed"]
        assert len(renewed) == 2
        database.slow_calls.note(ends)  # another one has its own minute
        await slow.run_once(AGAIN_US + 1)
        assert said(entries)[-1]["statement"] == "read_ends"
    assert counted(metrics, "settle") == 6
    assert all(len(entry["plan"]) <= PLAN_LENGTH_MAX for entry in said(entries))


async def test_quick_statements_and_calm_ones_are_nobodys_news(database: Database) -> None:
    async with database.background() as connection:
        await leadership.database_now(connection)
        assert connection.slow_calls is None
    async with database.hot() as connection:
        await leadership.database_now(connection)
        assert connection.slow_calls is database.slow_calls
    assert database.slow_calls.take() == []
    assert not database.slow_calls.news.is_set()
