"""Writes rows as the owner of their shard: a bad row holds up no other, an absent store loses none.

A batch that the store refuses for its rows is halved until the bad ones stand alone, so a bad row
costs a few statements, and what is good is written meanwhile. Any other error (the store is away,
a lock, a time limit) says nothing about the rows: the same batch is sent again, whole, later. When
the shard has another owner the rest is dropped: its worker reports to that one. So it is when the
shard came back meanwhile: under a new term, what was taken under an old one proves nothing. Whose
flows somebody else counts in comes again soon; meanwhile its connection is another's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from fairway.core.backoff import backoff_seconds
from fairway.core.ids import NO_TERM, ShardId, Term
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.store.connections.database import DISCONNECTED, Connection, Database
from fairway.store.connections.error_classes import code_of, is_about_rows
from fairway.store.flow_locks import FlowsBusy

log = logger("row_writer")

Row = TypeVar("Row")
Answer = TypeVar("Answer")
#: A statement: what it says of the rows it was given.
Write: TypeAlias = Callable[[Connection, ShardId, Term, Sequence[Row]], Awaitable[Answer]]

RETRY_SECONDS = 0.2
RETRY_SECONDS_MAX = 2.0
BUSY_SECONDS = 0.02  # until a lock of a tenant's is tried again
BUSY_SECONDS_MAX = 0.3
ROUNDS_MIN = 2  # after the first: an error inside the server may pass, be it of this row alone
WIDESPREAD = 8  # rows refused for one cause since one was taken


class RowsWritten(NamedTuple, Generic[Answer]):
    """Some of the rows, by their places in what was given."""

    start: int
    stop: int
    answer: Answer  # what the statement said of them


class RowRefused(NamedTuple):
    """One row, by its place, that the store will never take."""

    start: int
    stop: int
    error: Exception


Part: TypeAlias = RowsWritten[Answer] | RowRefused


class RowWriter:
    def __init__(
        self,
        database: Database,
        terms: Mapping[ShardId, Term],
        turn: AbstractAsyncContextManager[None] | None = None,
    ) -> None:
        """`turn` is had for each use of a connection: a semaphore says how many there may be."""
        self._database = database
        self._turn = turn or nullcontext()
        self._terms = terms  # shard → the term under which this server owns it
        self._refusals = _Refusals()

    def term_of(self, shard: ShardId) -> Term:
        """Under which it is ours now; 0, which is no term, when it is not."""
        return self._terms.get(shard, NO_TERM)

    async def write(
        self,
        statement: Write[Row, Answer],
        shard: ShardId,
        rows: Sequence[Row],
        term: Term | None = None,
        *,
        patient: bool = False,
    ) -> AsyncIterator[Part[Answer]]:
        """Each part as soon as it is written or refused; what is in none is not ours any more.

        `term` is the one under which the rows were taken, if they have waited since. With patience
        a row is refused only when it was several times, and not while the store refuses all.
        """
        parts, again = deque([(0, len(rows))]), deque[tuple[int, int]]()
        tries, rounds, term = 0, 0, self._terms.get(shard) if term is None else term
        while (parts or again) and term is not None and self._terms.get(shard) == term:
            if not parts:
                parts, again, rounds = again, deque(), rounds + 1
                await pause(backoff_seconds(RETRY_SECONDS, rounds - 1, RETRY_SECONDS_MAX))
                continue  # the term may have ended meanwhile
            start, stop = parts[0]
            try:
                async with self._turn, self._database.hot() as connection:
                    answer = await statement(connection, shard, term, rows[start:stop])
            except Exception as error:
                if isinstance(error, FlowsBusy) or not is_about_rows(error):
                    tries += 1
                    await self._wait(shard, error, tries)
                    continue
                parts.popleft()
                log.error("store refused rows", shard=shard, rows=stop - start, error=repr(error))
                if stop - start > 1:  # halves go last: what is larger, and perhaps good, goes first
                    middle = (start + stop) // 2
                    parts += [(start, middle), (middle, stop)]
                elif patient and self._refusals.may_pass(statement, error, rounds):
                    again.append((start, stop))
                else:
                    yield RowRefused(start, stop, error)
            else:
                if self._terms.get(shard) != term:
                    return  # under another's term nothing is written, which says nothing of a row
                tries = 0
                parts.popleft()
                self._refusals.taken(statement)
                yield RowsWritten(start, stop, answer)

    async def _wait(self, shard: ShardId, error: Exception, tries: int) -> None:
        if isinstance(error, FlowsBusy):
            await pause(backoff_seconds(BUSY_SECONDS, tries - 1, BUSY_SECONDS_MAX))
            return
        told = log.warning if isinstance(error, DISCONNECTED) else log.error
        told("store does not take rows now", shard=shard, error=repr(error))
        await pause(backoff_seconds(RETRY_SECONDS, tries - 1, RETRY_SECONDS_MAX))


class _Refusals:
    """Of single rows, since one was taken: when many are refused for one cause, and none is taken,
    it is the store that is at fault."""

    def __init__(self) -> None:
        self._counts: dict[tuple[object, str], int] = {}  # (statement, cause) → rows

    def may_pass(self, statement: object, error: Exception, rounds: int) -> bool:
        cause = (statement, code_of(error))
        if not rounds:
            self._counts[cause] = self._counts.get(cause, 0) + 1
        return rounds < ROUNDS_MIN or self._counts.get(cause, 0) >= WIDESPREAD

    def taken(self, statement: object) -> None:
        if self._counts:
            self._counts = {at: n for at, n in self._counts.items() if at[0] != statement}
