"""Writes down what this server counted, a minute at a time and in one statement each.

A minute that cannot be written waits for the store, some of them at most. What a server counted of
the minute in which it stops is written then; of one that crashes it is lost. What waits, runs and
is offered is told at a minute's end, by whoever is there then: a server that stops leaves it to the
next one, else a restart would show all of it twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from fairway.core.ids import TypeId
from fairway.core.insight.activity import OTHER_TYPE
from fairway.core.insight.history import Stored, minute_bit, rolled_up
from fairway.core.insight.minutes import ActivityLine, LineKind, Minute, Subject
from fairway.core.insight.sight import Levels
from fairway.core.unix_time import from_unix_us
from fairway.runtime.loops import in_parts
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.insight.observer import Observer
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.store_clock import StoreClock
from fairway.store.connections.database import Database
from fairway.store.insight import minutes as store
from fairway.store.insight.minutes import About, MinuteLine

log = logger("insight")

MINUTE_MS = 60_000
WAITING_MAX = 10  # minutes that the store did not take yet
CLOSE_SECONDS = 2.0
BEHIND_SECONDS = 0.5  # past the end of a minute


class Waiting(NamedTuple):
    at: int
    lines: list[MinuteLine]


class MinuteWriter:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        metrics: Metrics,
        observer: Observer,
        store_clock: StoreClock,
        server: str,
    ) -> None:
        self._database = database
        self._directory = directory
        self._activity = metrics.activity
        self._observer = observer
        self._clock = store_clock
        self._server = server
        self._begun_ms = self._minute_ms()
        self._waiting: deque[Waiting] = deque(maxlen=WAITING_MAX)
        self._taken_ms = store_clock.unix_ms()
        self.last: Minute | None = None  # what was counted last,
        self.last_seconds = 0.0  # and in how long

    def _minute_ms(self) -> int:
        now_ms = self._clock.unix_ms()
        return now_ms - now_ms % MINUTE_MS

    async def run_once(self, now_us: int) -> float:
        if self._minute_ms() > self._begun_ms:
            await self._end_minute(self._observer.levels())
        while self._waiting:
            await self._write(self._waiting[0])
            self._waiting.popleft()
        left_ms = self._begun_ms + MINUTE_MS - self._clock.unix_ms()
        return max(left_ms / 1000, 0.0) + BEHIND_SECONDS

    async def close(self) -> None:
        """What was counted since the last minute; nothing of it may hold up who stops."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._end_minute({})
                while self._waiting:
                    await self._write(self._waiting.popleft())
            self._server += "+"  # what it counts of this minute from now on stands beside that
        except Exception as error:
            log.warning("the last minute is not in the history", error=repr(error))

    async def _end_minute(self, levels: Mapping[tuple[LineKind, Subject], Levels]) -> None:
        at, self._begun_ms = self._begun_ms // 1000, self._minute_ms()
        minute, taken_ms = Minute(), self._taken_ms
        self._taken_ms = self._clock.unix_ms()
        await in_parts(minute.adding(self._activity.take()))
        self.last, self.last_seconds = minute, (self._taken_ms - taken_ms) / 1000
        if len(self._waiting) == WAITING_MAX:
            log.warning("a minute of history is given up: the store took none for long")
        lines: list[ActivityLine] = []
        await in_parts(minute.telling(levels, lines))
        self._observer.minute_was(minute, lines)
        self._waiting.append(Waiting(at, self._named(at, lines)))

    async def _write(self, waiting: Waiting) -> None:
        if waiting.lines:
            async with self._database.background() as connection:
                at = from_unix_us(waiting.at * 1_000_000)
                await store.write_minute(connection, self._server, at, waiting.lines)

    def _named(self, at: int, lines: list[ActivityLine]) -> list[MinuteLine]:
        """By the names that people know; what nobody knows the name of is among the others."""
        found: dict[About, list[Stored]] = {}
        for line in lines:
            found.setdefault(self._about(line), []).append(_stored(at, line))
        return [
            MinuteLine(about, parts[0] if len(parts) == 1 else rolled_up(parts, 60))
            for about, parts in found.items()
        ]

    def _about(self, line: ActivityLine) -> About:
        pool, type_, tenant = line.subject
        if line.kind is LineKind.POOL:
            return About(line.kind, tenant, self._directory.pools.by_number[pool].name)
        return About(line.kind, tenant, self._type_name(type_))

    def _type_name(self, type_: TypeId) -> str:
        return "" if type_ == OTHER_TYPE else self._directory.type_names.get(type_, "")


def _stored(at: int, line: ActivityLine) -> Stored:
    tally = line.counts
    return Stored(
        at,
        minute_bit(at),
        tally.accepted,
        tally.started,
        tally.succeeded,
        tally.failed,
        tally.retried,
        tally.dead,
        *line.levels,
        tally.pickup,
        tally.run,
    )
