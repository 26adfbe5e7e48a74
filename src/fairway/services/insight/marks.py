"""Marks beside graphs: what is seen for the first time is noted, and people add their own."""

from __future__ import annotations

from datetime import datetime

from fairway.core.audit import Act, Actor
from fairway.core.insight.marks import (
    FIRST_SEEN_MAX,
    ChartMark,
    FirstSeen,
    MarkKind,
    first_seen,
    with_incidents,
)
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.insight.alarm_ledger import SHARD
from fairway.services.insight.board import Board
from fairway.services.registry.audit_log import AuditLog
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.insight import alarm_history
from fairway.store.insight import marks as store

REST_SECONDS = 10.0
SEEN_AGAIN_US = 3600 * 1_000_000  # so often the store hears that something is still there
SHOWN_MAX = 1000  # marks, and incidents, in one answer


class Marks:
    def __init__(
        self, database: Database, dispatcher: Dispatcher, board: Board, audit_log: AuditLog
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._board = board
        self._audit_log = audit_log
        self._told: frozenset[FirstSeen] = frozenset()
        self._told_us = 0

    async def run_once(self, now_us: int) -> float:
        """A loop: what the owner of shard 0 sees of all servers and workers."""
        seen = self._board.seen
        if seen is None or self._dispatcher.term_of(SHARD) is None:
            return REST_SECONDS
        found = frozenset(first_seen(seen.versions, seen.builds))
        if found - self._told or now_us - self._told_us >= SEEN_AGAIN_US:
            async with self._database.background() as connection:
                await store.see_sources(connection, sorted(found), FIRST_SEEN_MAX)
            self._told, self._told_us = found | self._told_of(found), now_us
        return REST_SECONDS

    def _told_of(self, found: frozenset[FirstSeen]) -> frozenset[FirstSeen]:
        """A worker that is away for a moment is no news when it is back."""
        return self._told if len(self._told) <= 10 * FIRST_SEEN_MAX else found

    async def add(self, kind: MarkKind, text: str, actor: Actor) -> ChartMark:
        async with (
            told_if_away,
            self._database.people() as connection,
            connection.transaction(),
        ):
            made = await store.add_mark(connection, kind, text)
            act = Act("add_mark", kind, after={"text": text})
            await self._audit_log.add(connection, actor, act)
        return made

    async def between(self, since: datetime, before: datetime) -> list[ChartMark]:
        """The newest of them, in order."""
        async with told_if_away, self._database.people() as connection:
            marks = await store.list_marks(connection, since, before, SHOWN_MAX)
            lines = await alarm_history.incidents(connection, since, before, SHOWN_MAX)
        return with_incidents(marks, lines)
