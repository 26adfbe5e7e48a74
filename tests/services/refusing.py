"""A store that refuses certain rows for ever: a trigger of the test's own, in real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from tests.postgres import connected

from fairway.services.platform import Platform
from fairway.store.connections.database import Connection

NUMBER_OUT_OF_RANGE = "22003"


@asynccontextmanager
async def refusing(
    platform: Platform, condition: str, code: str = NUMBER_OUT_OF_RANGE
) -> AsyncIterator[None]:
    """Meanwhile updates of jobs that meet the condition (over OLD and NEW) are errors."""
    async with connected(platform.database.dsn) as connection:
        await _change(
            connection,
            f"""CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN RAISE EXCEPTION 'not this row' USING ERRCODE = '{code}'; END $$;
                CREATE TRIGGER refuse BEFORE UPDATE ON jobs
                FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION refuse()""",
        )
        try:
            yield
        finally:  # databases are used again
            await _change(connection, "DROP TRIGGER refuse ON jobs; DROP FUNCTION refuse")


async def _change(connection: Connection, statements: str) -> None:
    """The table and its partitions are locked one by one: a statement at work may cross that."""
    async with asyncio.timeout(20):
        while True:
            try:
                await connection.execute(statements)
                return
            except asyncpg.DeadlockDetectedError:
                continue
