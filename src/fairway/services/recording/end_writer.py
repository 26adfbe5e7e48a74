"""Says what became of each end that went to its row: written, refused, held, not ours.

A lane is not to wait for a row that somebody holds for long: such ends go to a writer beside the
lanes, where those that came with the held one are written meanwhile. What a row says is decided
elsewhere (`outcome_rows.py`), and what its end means to others, too (`recorder.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from fairway.core.ids import Term
from fairway.runtime.telemetry import logger
from fairway.services.recording.flow_ends import EndRow, EndStatement, FlowEnds, LeftOut
from fairway.services.recording.locked_rows import LockedRows
from fairway.services.recording.refused_outcomes import RefusedEnds
from fairway.services.recording.row_writer import (
    OnLock,
    Part,
    RowRefused,
    RowsLocked,
    RowsWritten,
    RowWriter,
)
from fairway.services.sessions.sessions import End

log = logger("end_writer")

Row = TypeVar("Row", bound=EndRow)
Answer = TypeVar("Answer")


class EndPorts(NamedTuple):
    """Who hears what became of ends."""

    on_written: Callable[[Sequence[End], Sequence[Any], LeftOut], None]
    on_dropped: Callable[[Sequence[End]], None]


class EndWriter:
    def __init__(
        self,
        flow_ends: FlowEnds,
        locked_writer: RowWriter,
        refused_ends: RefusedEnds,
        ports: EndPorts,
    ) -> None:
        """`locked_writer` is for those whose rows somebody holds."""
        self._flow_ends = flow_ends
        self._locked_writer = locked_writer
        self._refused_ends = refused_ends
        self._ports = ports
        self._locked_ends = LockedRows("ends")

    async def drain(self) -> None:
        """Wait for those whose rows somebody holds."""
        await self._locked_ends.drain()

    async def write_later(
        self, statement: EndStatement[Row], ends: Sequence[End], rows: Sequence[Row], term: Term
    ) -> None:
        """Somebody holds a row of one of these, of one shard, which were taken under this term."""
        await self._locked_ends.take(len(ends), partial(self._write, statement, ends, rows, term))

    async def _write(
        self, statement: EndStatement[Row], ends: Sequence[End], rows: Sequence[Row], term: Term
    ) -> None:
        def finish(part: RowsWritten[LeftOut]) -> None:
            self._ports.on_written(part.of(ends), part.of(rows), part.answer)

        write = self._flow_ends.uncounted(statement)
        shards = [ends[0].lease.shard] * len(rows)
        parts = self._locked_writer.write_beside(write, shards, rows, OnLock.HALVE, term)
        await self.follow(parts, ends, finish)

    async def follow(
        self,
        parts: AsyncIterator[Part[Answer] | RowsLocked],
        ends: Sequence[End],
        finish: Callable[[RowsWritten[Answer]], None],
    ) -> list[RowsLocked]:
        """What is refused is set aside, what is in no part is dropped. Answers what is locked."""
        decided, locked = list[Sequence[int]](), list[RowsLocked]()
        async for part in parts:
            if isinstance(part, RowsLocked):
                decided.append(part.places)
                locked.append(part)
            elif isinstance(part, RowRefused):
                decided.append([part.number])
                first = ends[part.number]
                await self._refused_ends.until_room(first, part.error)
                self._refused_ends.take(first, part.error)
            else:
                decided.append(part.places)
                self._finish(part, ends, finish)
        if sum(map(len, decided)) < len(ends):
            known = set(chain(*decided))
            gone = [end for index, end in enumerate(ends) if index not in known]
            self._ports.on_dropped(gone)
        return locked

    def _finish(
        self,
        part: RowsWritten[Answer],
        ends: Sequence[End],
        finish: Callable[[RowsWritten[Answer]], None],
    ) -> None:
        self._refused_ends.taken(ends[part.places[0]])
        try:
            finish(part)
        except Exception as error:  # these are on disk; the rest is still to be written
            log.error("after ends were written", jobs=len(part.places), error=repr(error))
