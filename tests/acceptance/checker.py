"""Judges a history: what clients were told, what runs signed, what the database went through.

What the database went through is in `trace.py`. The rules here are written anew rather than taken
from the product, so that they cannot share its mistakes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
from tests.acceptance import progress
from tests.acceptance.processes import until
from tests.acceptance.trace import begin_trace, read_trace

SCHEDULED, QUEUED, RUNNING, SUCCEEDED, DEAD, CANCELLED, EXPIRED = range(7)
FINAL = {SUCCEEDED, DEAD, CANCELLED, EXPIRED}
LEGAL = {
    (None, QUEUED), (None, SCHEDULED), (SCHEDULED, QUEUED), (SCHEDULED, CANCELLED),
    (QUEUED, RUNNING), (QUEUED, SUCCEEDED), (QUEUED, SCHEDULED), (QUEUED, QUEUED), (QUEUED, DEAD),
    (QUEUED, CANCELLED), (RUNNING, SUCCEEDED), (RUNNING, SCHEDULED), (RUNNING, QUEUED),
    (RUNNING, DEAD), (RUNNING, CANCELLED),
}  # fmt: skip
TERM_SHIFT = 24  # the upper part of an epoch is the term of the owner that granted it


class Change(NamedTuple):
    seq: int
    at: float
    job: str
    before: int | None
    after: int
    epoch: int
    attempts: int
    deliveries: int
    started: float | None  # when the run was granted, as its row says
    term: int
    writer: str


class Row(NamedTuple):
    id: str
    type: str
    state: int
    attempts: int
    deliveries: int
    epoch: int
    result: Any
    error: Any
    crashes: int  # deliveries that ended with their worker


class Verdict(NamedTuple):
    """What a clean history looked like, for the figures."""

    jobs: int
    runs: int
    ran_twice: int  # jobs that began more than once
    lost_leases: int  # deliveries that a crash cost


class Book:
    """The database's side of a history."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    async def trace(self) -> None:
        """Begin to write changes down; the schema must be there."""
        await self._ask(begin_trace)

    async def changes(self) -> list[Change]:
        return [Change(*row) for row in await self._ask(read_trace)]

    async def rows(self) -> dict[str, Row]:
        sql = """SELECT jobs.id::text, job_types.name, state, attempts, deliveries, epoch, result,
                        error, coalesce(failures[5], 0)
                 FROM jobs JOIN job_types ON job_types.id = jobs.type"""
        found = [Row(*row) for row in await self._ask(lambda c: c.fetch(sql))]
        return {
            row.id: row._replace(result=_json(row.result), error=_json(row.error)) for row in found
        }

    async def owner(self) -> tuple[int, str]:
        """The term in force and where its owner is reached."""
        sql = "SELECT term, owner_url FROM shards"
        (row,) = await self._ask(lambda c: c.fetch(sql))
        return row[0], row[1]

    async def unfinished(self) -> int:
        return int(await self._ask(progress.unfinished))

    async def drained(self, within_seconds: float) -> None:
        """Wait until every job is final; says what is stuck otherwise."""
        await progress.drained(self.dsn, within_seconds)

    async def _ask(self, question: Callable[[Any], Any]) -> Any:
        connection = await asyncpg.connect(self.dsn, timeout=5)
        try:
            return await question(connection)
        finally:
            await connection.close()


class Ledger:
    """The runs' side of a history."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def begun(self, job: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["job"] == job and line["event"] == "begin"]

    def ended(self, job: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["job"] == job and line["event"] == "end"]

    async def begins(self, job: str, times: int = 1, within_seconds: float = 30.0) -> list[Any]:
        await until(lambda: len(self.begun(job)) >= times, within_seconds, f"run {times} of {job}")
        return self.begun(job)


def _json(text: bytes | None) -> Any:
    return None if text is None else json.loads(text)


async def check(book: Book, ledger: Ledger, accepted: Iterable[str]) -> Verdict:
    """Every accepted job succeeded once, at its first attempt, with the winning run's result."""
    rows, changes = await book.rows(), await book.changes()
    accepted = set(accepted)
    assert accepted - rows.keys() == set(), "accepted and lost"
    assert rows.keys() - accepted == set(), "made without being asked for"
    check_legality(changes)
    return check_rows(rows, ledger)


def check_rows(rows: dict[str, Row], ledger: Ledger) -> Verdict:
    """Each succeeded at its first attempt, with the result of the run that won."""
    signed = _by_run(ledger)
    for row in rows.values():
        assert row.state == SUCCEEDED, row
        assert row.attempts == 1, f"a crash used up an attempt: {row}"
        _check_winner(row, signed)
    begun = Counter(line["job"] for line in ledger.lines() if line["event"] == "begin")
    return Verdict(
        jobs=len(rows),
        runs=sum(begun.values()),
        ran_twice=sum(count > 1 for count in begun.values()),
        lost_leases=sum(row.crashes for row in rows.values()),
    )


def check_legality(changes: Iterable[Change]) -> None:
    """Each job's changes follow one another, end once, and never fall behind."""
    by_job: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_job[change.job].append(change)
    for history in by_job.values():
        before, epoch, attempts = None, 0, 0
        for change in history:
            assert change.before == before, f"a change out of line: {history}"
            said_again = (before, change.after, change.epoch) == (RUNNING, RUNNING, epoch)
            assert said_again or (before, change.after) in LEGAL, f"no legal move: {change}"
            assert change.epoch >= epoch, f"the epoch fell: {history}"
            assert change.epoch >> TERM_SHIFT <= change.term, f"granted in a later term: {change}"
            assert change.attempts >= attempts, f"an attempt was taken back: {history}"
            before, epoch, attempts = change.after, change.epoch, change.attempts
        ends = [change for change in history if change.after in FINAL]
        assert len(ends) <= 1, f"ended more than once: {history}"


def _by_run(ledger: Ledger) -> dict[str, dict[str, Any]]:
    return {line["run"]: line for line in ledger.lines() if line["event"] == "end"}


def _check_winner(row: Row, signed: dict[str, dict[str, Any]]) -> None:
    """The result is the one of a run of this job, and of the delivery that was counted last."""
    run = signed.get(row.result["run"])
    assert run is not None, f"the result of a run that never ended: {row}"
    assert run["job"] == row.id, f"another job's result: {row} {run}"
    assert row.result["delivery"] == row.deliveries, f"an earlier delivery's result: {row} {run}"
