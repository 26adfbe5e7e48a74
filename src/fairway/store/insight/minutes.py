"""History: what a server counted in a minute, kept by the minute and added up by the hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import TenantId
from fairway.core.insight.history import Step, Stored
from fairway.store.arrays import columns, numbers
from fairway.store.connections.database import Connection, execute, fetch_as
from fairway.store.sql import load

_SQL = load("minutes.sql")

_FORGET = {"minute": _SQL["forget_minutes"], "hour": _SQL["forget_hours"]}
_READ = {"minute": _SQL["read_minutes"], "hour": _SQL["read_hours"]}


class About(NamedTuple):
    """What a line tells of: the kind, whose it is (0: everybody's), and the name."""

    kind: int
    tenant: TenantId
    name: str


class MinuteLine(NamedTuple):
    about: About
    counts: Stored


async def write_minute(
    connection: Connection, server: str, at: datetime, lines: Sequence[MinuteLine]
) -> None:
    """One statement; a minute that was written before is not added to its hour again."""
    rows = [
        (*line.about, *line.counts[2:-2], numbers(line.counts.pickup), numbers(line.counts.run))
        for line in sorted(lines, key=lambda one: one.about)
    ]
    names = ("kinds", "tenants", "names", "accepted", "started", "succeeded", "failed", "retried")
    more = ("dead", "queued", "running", "slots", "oldest_ms", "pickups", "runs")
    values = columns(rows, *names, *more)
    await execute(connection, _SQL["write_minute"], server=server, at=at, **values)


async def read_history(
    connection: Connection, step: Step, about: About, since: datetime, before: datetime
) -> list[Stored]:
    """Every server's lines, in no order."""
    return await fetch_as(
        Stored,
        connection,
        _READ[step],
        line_kind=about.kind,
        tenant=about.tenant,
        name=about.name,
        since=since,
        before=before,
    )


async def forget_history(connection: Connection, step: Step, before: datetime, limit: int) -> int:
    """Remove lines past their time; answers how many."""
    return await execute(connection, _FORGET[step], before=before, limit=limit)
