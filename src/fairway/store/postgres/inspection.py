"""Asking a server for the facts that `tuning.py` judges. It reads, and changes nothing."""

from __future__ import annotations

import re
import time

import asyncpg

from fairway.store.connections.hosts import NO_CONNECTION, Hosts, connect_for_once, no_connection
from fairway.store.postgres.tuning import Finding, inspect

CONNECT_SECONDS = 10.0
CLOCK_SAMPLES = 3
NO_SCHEMA = Finding(
    level="warning",
    what="There is no Fairway in this database yet.",
    remedy="`fairway init` makes its tables and the first operator's key; `fairway up` does, too.",
)

_UNITS = {
    "B": 1,
    "kB": 1024,
    "MB": 1024**2,
    "GB": 1024**3,
    "TB": 1024**4,
    "us": 0.001,
    "ms": 1,
    "s": 1000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


async def inspect_database(dsn: str, processes: int = 1) -> list[Finding]:
    """Everything wrong with the database at this address, errors first.

    For a server of so many processes.
    """
    try:
        connection = await Hosts(dsn).connect_any(timeout=CONNECT_SECONDS)
    except NO_CONNECTION as failure:
        what, remedy = no_connection(dsn, failure)
        return [Finding(level="error", what=what, remedy=remedy)]
    try:
        facts = await read_facts(connection)
        offset_seconds = await read_clock_offset_seconds(connection)
    finally:
        await connection.close()
    return inspect(facts, int(facts["server_version_num"]), offset_seconds, processes)


async def inspect_schema(dsn: str) -> list[Finding]:
    """Whether this database has the tables of a Fairway."""
    connection = await connect_for_once(dsn, "fairway-check")
    try:
        is_there = await connection.fetchval("SELECT to_regclass('migrations') IS NOT NULL")
    finally:
        await connection.close()
    return [] if is_there else [NO_SCHEMA]


async def read_tie(dsn: str) -> tuple[str, str | None] | None:
    """The cluster's secret and the marker of its object storage; None where there is none yet."""
    try:
        connection = await Hosts(dsn).connect_any(timeout=CONNECT_SECONDS)
    except NO_CONNECTION:
        return None  # which is said elsewhere
    try:
        # As JSON: a database that was not migrated yet has no such column.
        row = await connection.fetchrow(
            "SELECT secret, to_jsonb(cluster) ->> 'storage_marker' AS marker FROM cluster"
        )
    except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError):
        return None  # who may not read it hears that from the look at roles
    finally:
        await connection.close()
    return None if row is None else (row["secret"], row["marker"])


async def read_facts(connection: asyncpg.Connection) -> dict[str, str]:
    """Every setting as this role sees it: memory in bytes, time in milliseconds."""
    rows = await connection.fetch("SELECT name, setting, unit FROM pg_settings")
    return {row["name"]: plain(row["setting"] or "", row["unit"] or "") for row in rows}


async def read_clock_offset_seconds(connection: asyncpg.Connection) -> float:
    """How far the database's clock is ahead of ours, from the quickest of a few questions."""
    samples = [await _sample_clock(connection) for _ in range(CLOCK_SAMPLES)]
    return min(samples)[1]


def plain(setting: str, unit: str) -> str:
    """A setting without its unit, as in `16384` of `8kB` each: bytes or milliseconds."""
    parts = re.fullmatch(r"(\d*)([A-Za-z]+)", unit)
    if not parts or float(setting) < 0:  # -1 means "automatic" or "never" and has no size
        return setting
    return f"{float(setting) * int(parts[1] or 1) * _UNITS[parts[2]]:.15g}"


async def _sample_clock(connection: asyncpg.Connection) -> tuple[float, float]:
    before = time.time()
    there = float(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
    after = time.time()
    return after - before, there - (before + after) / 2
