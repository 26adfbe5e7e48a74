"""Marks beside graphs: what people wrote, and what was seen for the first time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fairway.core.insight.marks import ChartMark, FirstSeen
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, execute, fetch_as
from fairway.store.sql import load

_SQL = load("marks.sql")


async def add_mark(connection: Connection, kind: str, text: str) -> ChartMark:
    (made,) = await fetch_as(ChartMark, connection, _SQL["add_mark"], mark_kind=kind, text=text)
    return made


async def see_sources(connection: Connection, seen: Sequence[FirstSeen], most: int) -> None:
    """Of what is new, so many an hour at most leave a mark."""
    await execute(connection, _SQL["see_sources"], **columns(seen, "texts", "sources"), most=most)


async def list_marks(
    connection: Connection, since: datetime, before: datetime, limit: int
) -> list[ChartMark]:
    asked = {"since": since, "before": before, "limit": limit}
    return await fetch_as(ChartMark, connection, _SQL["list_marks"], **asked)


async def forget_marks(connection: Connection, before: datetime, kept: int, limit: int) -> int:
    asked = {"before": before, "kept": kept, "limit": limit}
    return await execute(connection, _SQL["forget_marks"], **asked)
