"""Alarms that were raised, and until when: one line each, which its end completes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.insight.alarm_lines import AlarmLine
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, execute, fetch_as
from fairway.store.sql import load

_SQL = load("alarm_history.sql")


class NewAlarm(NamedTuple):
    name: str
    severity: str
    subject: str
    text: str
    value: float
    threshold: float
    raised_at: datetime


async def open_alarms(connection: Connection, limit: int) -> list[AlarmLine]:
    return await fetch_as(AlarmLine, connection, _SQL["open_alarms"], limit=limit)


async def raise_alarms(connection: Connection, new: Sequence[NewAlarm]) -> list[AlarmLine]:
    """Without those that are raised already."""
    names = ("names", "severities", "subjects", "texts", "values", "thresholds", "moments")
    return await fetch_as(AlarmLine, connection, _SQL["raise_alarms"], **columns(new, *names))


async def end_alarms(
    connection: Connection, ids: Sequence[int], moment: datetime
) -> list[AlarmLine]:
    return await fetch_as(AlarmLine, connection, _SQL["end_alarms"], ids=ids, moment=moment)


async def list_alarms(connection: Connection, below: int, limit: int) -> list[AlarmLine]:
    return await fetch_as(AlarmLine, connection, _SQL["list_alarms"], below=below, limit=limit)


async def incidents(
    connection: Connection, since: datetime, before: datetime, limit: int
) -> list[AlarmLine]:
    asked = {"since": since, "before": before, "limit": limit}
    return await fetch_as(AlarmLine, connection, _SQL["incidents"], **asked)


async def forget_alarms(connection: Connection, before: datetime, kept: int, limit: int) -> int:
    asked = {"before": before, "kept": kept, "limit": limit}
    return await execute(connection, _SQL["forget_alarms"], **asked)
