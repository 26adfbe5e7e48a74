"""Tells a house that is slow from one that gets nowhere: the law of liveness, for any history.

When faults are over, every accepted job ends within a bound that grows with what is left to do. A
house that makes no headway at all is told much earlier, with what it was busy with.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

import asyncpg

LEAST_PER_SECOND = 100.0  # ends of short jobs: a tenth of what a loaded machine does
STILL_SECONDS_MAX = 20.0  # without a single end: several leases and terms long


class Headway(NamedTuple):
    """What is left, and since when it has not become less."""

    unfinished: int
    since: float

    def after(self, unfinished: int, now: float) -> Headway:
        return Headway(unfinished, now) if unfinished < self.unfinished else self


def complaint(first: Headway, last: Headway, now: float, patience_seconds: float) -> str | None:
    """Why a house must be called stuck at this moment; None while it may still get there."""
    bound_seconds = patience_seconds + first.unfinished / LEAST_PER_SECOND
    if now - last.since > STILL_SECONDS_MAX:
        return f"no job ended for {now - last.since:.0f} s"
    if now - first.since > bound_seconds:
        ended = first.unfinished - last.unfinished
        return f"{ended} of {first.unfinished} jobs ended in {bound_seconds:.0f} s"
    return None


async def unfinished(connection: Any) -> int:
    """Jobs that are not final."""
    return int(await connection.fetchval("SELECT count(*) FROM jobs WHERE state < 3"))


async def drained(dsn: str, patience_seconds: float) -> float:
    """Wait until every job is final; answers how long it took, or says what is stuck and why."""
    connection = await asyncpg.connect(dsn, timeout=5)
    try:
        began = time.monotonic()
        first = last = Headway(await unfinished(connection), began)
        while last.unfinished:
            now = time.monotonic()
            if (why := complaint(first, last, now, patience_seconds)) is not None:
                raise AssertionError(f"{why}; {await _diagnosis(connection)}")
            await asyncio.sleep(0.1)
            last = last.after(await unfinished(connection), time.monotonic())
        return time.monotonic() - began
    finally:
        await connection.close()


async def _diagnosis(connection: Any) -> str:
    """States, some jobs, terms, and the statements that take long: where to look first."""
    states = await connection.fetch("SELECT state, count(*) FROM jobs GROUP BY 1 ORDER BY 1")
    stuck = await connection.fetch(
        "SELECT id::text, state, attempts, deliveries, epoch, session::text FROM jobs"
        " WHERE state < 3 LIMIT 5"
    )
    owners = await connection.fetch("SELECT shard, term, owner, expires_at < now() FROM shards")
    busy = await connection.fetch(
        "SELECT now() - query_start, wait_event, left(query, 90) FROM pg_stat_activity"
        " WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()"
        " ORDER BY query_start LIMIT 6"
    )
    return f"states {states}; for example {stuck}; owners {owners}; statements {busy}"
