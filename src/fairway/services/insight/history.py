"""Reads history for a graph: so many steps a statement, and others have their turn in between."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import TenantId
from fairway.core.insight.history import COLUMNS, STEP_SECONDS, Step, axis, columns
from fairway.core.unix_time import from_unix_us, to_unix_us
from fairway.runtime.loops import SLICE_REST_SECONDS, pause
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.insight import minutes as store
from fairway.store.insight.minutes import About

STEPS_AT_ONCE = 120  # a few milliseconds


class HistoryWish(NamedTuple):
    kind: int
    tenant: TenantId  # 0: everybody
    name: str
    since: datetime
    before: datetime
    step: Step


class Series(NamedTuple):
    step_seconds: int
    at: list[int]
    columns: dict[str, list[float | None]]


class HistoryReader:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, wish: HistoryWish, asker: TenantId | None) -> Series:
        """`asker`: the tenant whose question this is; the store shows it no other's lines."""
        steps = axis(_seconds(wish.since), _seconds(wish.before), wish.step)
        found: dict[str, list[float | None]] = {name: [] for name in COLUMNS}
        for first in range(0, len(steps), STEPS_AT_ONCE):
            some = steps[first : first + STEPS_AT_ONCE]
            for name, values in (await self._part(wish, some, asker)).items():
                found[name] += values
            await pause(SLICE_REST_SECONDS)
        return Series(STEP_SECONDS[wish.step], list(steps), found)

    async def _part(
        self, wish: HistoryWish, steps: range, asker: TenantId | None
    ) -> dict[str, list[float | None]]:
        about = About(wish.kind, wish.tenant, wish.name)
        since, before = _moment(steps.start), _moment(steps.stop)
        async with told_if_away, self._database.asked(asker) as connection:
            lines = await store.read_history(connection, wish.step, about, since, before)
        return columns(lines, steps)


def _seconds(moment: datetime) -> int:
    return to_unix_us(moment) // 1_000_000


def _moment(unix_s: int) -> datetime:
    return from_unix_us(unix_s * 1_000_000)
