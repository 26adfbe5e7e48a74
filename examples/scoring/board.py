"""The board: one row a scored application, in SQLite, written once and never changed.

The row's key is the job's id, so a job that runs twice writes once: the first score stands. A
connection is open for the millisecond of a statement; nothing is held while anybody thinks.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SCHEMA = """
CREATE TABLE IF NOT EXISTS scores (
    id TEXT PRIMARY KEY, candidate TEXT NOT NULL, score INTEGER NOT NULL, reason TEXT NOT NULL,
    model TEXT NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,
    dollars REAL NOT NULL, scored_at REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS ranking ON scores (score DESC, id);
"""
BUSY_SECONDS = 10.0


class Score(NamedTuple):
    """What a scorer found out."""

    score: int  # 0 to 100
    reason: str = ""
    model: str = "simulated"
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0


class Row(NamedTuple):
    id: str
    candidate: str
    score: int
    reason: str
    model: str
    tokens_in: int
    tokens_out: int
    dollars: float
    scored_at: float


class Place(NamedTuple):
    """A row with its rank; equal scores share one, the earlier application stands first."""

    rank: int
    row: Row


class Totals(NamedTuple):
    scored: int
    dollars: float


class Board:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "board.sqlite"
        with self._open() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(SCHEMA)

    def record(self, application: str, candidate: str, found: Score) -> Row:
        """Write this score unless there is one; answers the one that stands. On disk on return."""
        row = Row(application, candidate, *found, scored_at=time.time())
        with self._open() as connection:
            connection.execute(
                f"INSERT INTO scores VALUES ({','.join('?' * len(row))}) ON CONFLICT DO NOTHING",
                row,
            )
        stands = self.find(application)
        assert stands is not None  # it was there, or it is now
        return stands

    def find(self, application: str) -> Row | None:
        with self._open() as connection:
            found = connection.execute("SELECT * FROM scores WHERE id = ?", (application,))
            row = found.fetchone()
        return Row(*row) if row else None

    def ranking(self, limit: int, after: Row | None = None) -> list[Place]:
        """The best first; of equal ones the one handed in first (ids are in order of time)."""
        with self._open() as connection:
            if after is None:
                found = connection.execute(
                    "SELECT * FROM scores ORDER BY score DESC, id LIMIT ?", (limit,)
                )
            else:
                found = connection.execute(
                    "SELECT * FROM scores WHERE score < ?1 OR (score = ?1 AND id > ?2)"
                    " ORDER BY score DESC, id LIMIT ?3",
                    (after.score, after.id, limit),
                )
            rows = [Row(*row) for row in found]
            return _ranked(connection, rows)

    def totals(self) -> Totals:
        with self._open() as connection:
            found = connection.execute("SELECT count(*), coalesce(sum(dollars), 0) FROM scores")
            return Totals(*found.fetchone())

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS)
        try:
            connection.execute("PRAGMA synchronous=FULL")  # a score that was told is on disk
            with connection:
                yield connection
        finally:
            connection.close()


def _ranked(connection: sqlite3.Connection, rows: list[Row]) -> list[Place]:
    places: list[Place] = []
    for row in rows:
        if places and places[-1].row.score == row.score:
            places.append(Place(places[-1].rank, row))
            continue
        better = connection.execute("SELECT count(*) FROM scores WHERE score > ?", (row.score,))
        places.append(Place(1 + int(better.fetchone()[0]), row))
    return places
