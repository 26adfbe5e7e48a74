"""Writes rows as owner of their shards: a bad row holds up no other, an absent store loses none.

A batch that the store refuses for its rows is halved until the bad ones stand alone, so a bad row
costs a few statements, and what is good is written meanwhile. Any other error (the store is away,
a lock, a time limit) says nothing about the rows: the same batch is sent again, whole, later; but
where somebody holds a row for long, shard by shard, so that one waits for it and not all; and then,
as the caller likes, not at all here (`OnLock`). When a
shard has another owner its rows are dropped: their worker reports to that one; rows of the other
shards in the batch are written. So it is when the shard came back meanwhile: under a new term, what
was taken under an old one proves nothing. Whose flows somebody else counts in comes again soon;
meanwhile its connection is another's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from enum import Enum
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from fairway.core.backoff import backoff_seconds
from fairway.core.ids import NO_TERM, ShardId, Term
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.store.connections.database import DISCONNECTED, Connection, Database
from fairway.store.connections.error_classes import code_of, is_about_rows, is_locked
from fairway.store.connections.node_turns import NodeTurns
from fairway.store.connections.shard_terms import ShardsLost
from fairway.store.flow_locks import FlowsBusy

log = logger("row_writer")

Row = TypeVar("Row")
Answer = TypeVar("Answer")
#: A statement: what it says of the rows it was given.
Write: TypeAlias = Callable[[Connection, Mapping[ShardId, Term], Sequence[Row]], Awaitable[Answer]]
Item = TypeVar("Item")
#: Of a shard: what is held while a statement on it is under way.
Turns: TypeAlias = Callable[[ShardId], AbstractAsyncContextManager[None]]

RETRY_SECONDS = 0.2
RETRY_SECONDS_MAX = 2.0
BUSY_SECONDS = 0.02  # until a lock of a tenant's is tried again
BUSY_SECONDS_MAX = 0.3
ROUNDS_MIN = 2  # after the first: an error inside the server may pass, be it of this row alone
TURNS = 2  # at once, at each node of a distributed store: the third that it may have is for others
WIDESPREAD = 8  # rows refused for one cause since one was taken


class RowsWritten(NamedTuple, Generic[Answer]):
    """Some of the rows, by their places in what was given."""

    places: Sequence[int]
    answer: Answer  # what the statement said of them

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """Those of the items that stand at its places."""
        return items_at(items, self.places)


class RowRefused(NamedTuple):
    """One row, by its place, that the store will never take."""

    number: int
    error: Exception


class RowsLocked(NamedTuple):
    """Some rows of one shard, by their places: somebody holds one of them."""

    places: Sequence[int]
    term: Term  # under which they were taken: whoever writes them later does so under it


class OnLock(Enum):
    """What becomes of rows of a shard of which somebody holds one for long."""

    WAIT = "wait"  # all of them are tried again, until it is free
    LEAVE = "leave"  # told, and left to whoever asked: the next need not wait behind them
    HALVE = "halve"  # until the held one stands alone, and waits


Part: TypeAlias = RowsWritten[Answer] | RowRefused


def items_at(items: Sequence[Item], places: Sequence[int]) -> Sequence[Item]:
    if isinstance(places, range):  # as mostly, and worth its line
        return items[places.start : places.stop]
    return [items[place] for place in places]


def turns_of(database: Database, count: int | None = None) -> Turns:
    """So many at once, or as many as there are lanes; on a distributed store, at each node.

    There each part of the store has lanes of its own, and they could have every connection that a
    node may have: submissions found none in time, with all nodes up.
    """
    if database.placement is not None:
        return NodeTurns(database.placement, count or TURNS).of
    turns = nullcontext() if count is None else asyncio.Semaphore(count)
    return lambda shard: turns


class RowWriter:
    def __init__(
        self,
        database: Database,
        terms: Mapping[ShardId, Term],
        turns: Turns | None = None,
        *,
        patient: bool = False,
    ) -> None:
        """`turns` are had for each use of a connection: a semaphore says how many there may be.
        With patience a row is refused only when it was several times, and not while the store
        refuses all."""
        self._database = database
        self._turns = turns or turns_of(database)
        self._terms = terms  # shard → the term under which this server owns it
        self._patient = patient
        self._refusals = _Refusals()

    def term_of(self, shard: ShardId) -> Term:
        """Under which it is ours now; 0, which is no term, when it is not."""
        return self._terms.get(shard, NO_TERM)

    async def write(
        self,
        statement: Write[Row, Answer],
        shards: Sequence[ShardId],
        rows: Sequence[Row],
        term: Term | None = None,
    ) -> AsyncIterator[Part[Answer]]:
        """Each part as soon as it is written or refused; what is in none is not ours any more.

        `shards` are those of the rows, side by side. `term` is the one under which the rows, of one
        shard then, were taken, if they have waited since.
        """
        batch = _Batch(shards, self._terms, term)
        async for part in self._write(statement, batch, rows, OnLock.WAIT):
            yield part

    async def write_beside(
        self,
        statement: Write[Row, Answer],
        shards: Sequence[ShardId],
        rows: Sequence[Row],
        on_lock: OnLock,
        term: Term | None = None,
    ) -> AsyncIterator[Part[Answer] | RowsLocked]:
        """As `write`; and what becomes of those of which somebody holds one, the caller says."""
        batch = _Batch(shards, self._terms, term)
        async for part in self._write(statement, batch, rows, on_lock):
            yield part
        for places in batch.left:
            yield RowsLocked(places, batch.terms[shards[places[0]]])

    async def _write(
        self,
        statement: Write[Row, Answer],
        batch: _Batch,
        rows: Sequence[Row],
        on_lock: OnLock,
    ) -> AsyncIterator[Part[Answer]]:
        tries, rounds = 0, 0
        while batch.is_left():
            if not batch.parts:
                batch.begin_again()
                rounds += 1
                await pause(backoff_seconds(RETRY_SECONDS, rounds - 1, RETRY_SECONDS_MAX))
                continue  # a term may have ended meanwhile
            places = batch.parts[0]
            try:
                answer = await self._in_turn(statement, batch, items_at(rows, places))
            except ShardsLost as lost:
                batch.lose(lost.shards)
            except Exception as error:
                if is_locked(error) and batch.part_locked(on_lock):
                    continue
                if isinstance(error, FlowsBusy) or not is_about_rows(error):
                    tries = await self._wait(error, tries)
                elif not self._is_to_be_tried(statement, batch, error, rounds):
                    yield RowRefused(places[0], error)
            else:
                batch.parts.popleft()
                tries = 0
                self._refusals.taken(statement)
                # Under another's term nothing is written, which says nothing of a row.
                if places := batch.still_ours(places):
                    yield RowsWritten(places, answer)

    def _is_to_be_tried(
        self, statement: object, batch: _Batch, error: Exception, rounds: int
    ) -> bool:
        """The first part was refused: in halves; or alone once more, with patience for so many
        rounds by now. Else it is the one row that the store will not take."""
        places = batch.parts.popleft()
        log.error("store refused rows", rows=len(places), error=repr(error))
        if len(places) > 1:
            batch.halve(places)
            return True
        if not (self._patient and self._refusals.may_pass(statement, error, rounds)):
            return False
        batch.again.append(places)
        return True

    async def _in_turn(
        self, statement: Write[Row, Answer], batch: _Batch, rows: Sequence[Row]
    ) -> Answer:
        shard = batch.first_shard
        async with self._turns(shard):
            if batch.has_lost():  # while they waited: a node that hangs has no further turns
                raise ShardsLost(set())
            async with self._database.hot(at=shard) as connection:
                return await statement(connection, batch.guards, rows)

    async def _wait(self, error: Exception, tries: int) -> int:
        """Until it is worth another try; answers how many there were in a row."""
        if isinstance(error, FlowsBusy):
            await pause(backoff_seconds(BUSY_SECONDS, tries, BUSY_SECONDS_MAX))
            return tries + 1
        told = log.warning if isinstance(error, DISCONNECTED) else log.error
        told("store does not take rows now", error=repr(error))
        await pause(backoff_seconds(RETRY_SECONDS, tries, RETRY_SECONDS_MAX))
        return tries + 1


class _Batch:
    """What is still to be written of the rows of one call, by their places; shards may be lost."""

    def __init__(
        self,
        shards: Sequence[ShardId],
        owned: Mapping[ShardId, Term],
        term: Term | None,
    ) -> None:
        self._shards = shards
        self._owned = owned
        named = set(shards)
        self.terms = {
            shard: at
            for shard in named
            if (at := owned.get(shard) if term is None else term) is not None
        }
        self.parts = deque[Sequence[int]]([range(len(shards))] if shards else ())
        self.again = deque[Sequence[int]]()
        self.left = list[Sequence[int]]()  # to whoever asked: somebody holds a row of each
        self._is_by_shard = False  # each part has shards of its own
        if len(self.terms) < len(named):
            self._drop()

    def is_left(self) -> bool:
        """Whether anything is to be written yet; what is another's by now is not."""
        self.has_lost()
        return bool(self.parts or self.again)

    def begin_again(self) -> None:
        self.parts, self.again = self.again, deque()

    @property
    def first_shard(self) -> ShardId:
        """One of those that the first part is of: on a distributed store all lie together."""
        return self._shards[self.parts[0][0]]

    @property
    def guards(self) -> Mapping[ShardId, Term]:
        """The terms that the first part is written under."""
        if not self._is_by_shard:
            return self.terms
        return {shard: self.terms[shard] for shard in self._shards_in(self.parts[0])}

    def part_locked(self, then: OnLock) -> bool:
        """Somebody holds a row of the first part for long: only its own shard is to wait for that.

        Answers whether what is there now can be tried at once; else it waits, and goes last.
        """
        places = self.parts.popleft()
        if self._part_by_shard(places):
            return True
        if then is OnLock.LEAVE:
            self.left.append(places)
            return True
        if then is OnLock.HALVE and len(places) > 1:
            self.halve(places)
            return True
        self.parts.append(places)
        return False

    def _part_by_shard(self, places: Sequence[int]) -> bool:
        by_shard: dict[ShardId, list[int]] = {}
        for place in places:
            by_shard.setdefault(self._shards[place], []).append(place)
        if len(by_shard) == 1:
            return False
        self.parts += by_shard.values()
        self._is_by_shard = True
        return True

    def _shards_in(self, places: Sequence[int]) -> set[ShardId]:
        return {self._shards[place] for place in places}

    def halve(self, places: Sequence[int]) -> None:
        """Halves go last: what is larger, and perhaps good, goes first."""
        middle = len(places) // 2
        self.parts += [places[:middle], places[middle:]]

    def still_ours(self, places: Sequence[int]) -> Sequence[int]:
        return self._kept(places) if self.has_lost() else places

    def lose(self, shards: Collection[ShardId]) -> None:
        for shard in shards:
            self.terms.pop(shard, None)
        self._drop()

    def has_lost(self) -> bool:
        """Whether some went to another since the last look, or came back under a new term."""
        owned = self._owned
        gone = [shard for shard, term in self.terms.items() if owned.get(shard) != term]
        if gone:
            self.lose(gone)
        return bool(gone)

    def _drop(self) -> None:
        kept = [[*map(self._kept, queue)] for queue in (self.parts, self.again)]
        self.parts, self.again = (deque(filter(None, queue)) for queue in kept)
        self.left = [*filter(None, map(self._kept, self.left))]

    def _kept(self, places: Sequence[int]) -> Sequence[int]:
        return [place for place in places if self._shards[place] in self.terms]


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
