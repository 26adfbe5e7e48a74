"""Ends of runs that the store refuses to write: out of the lane at once, and ended all the same.

Such a row is tried a few times more, beside the lanes; then its job is written as dead, without
anything of the run but the store's reason. If even that is refused, the worker is told that its
report is, somebody is told in the log, and the short form is tried again from time to time: the job
waits for a person to mend the store, and nobody waits for the job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import chain, repeat
from typing import Any, TypeAlias

from msgspec.structs import replace

from fairway.core.fault import Fault, error_document
from fairway.core.fingerprint import fingerprint
from fairway.core.lifecycle import State
from fairway.core.outcome import FailureClass
from fairway.core.retry import Decision
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.aftermath import tally_of
from fairway.services.row_writer import Part, RowWriter, Write
from fairway.services.sessions import End
from fairway.store import outcomes
from fairway.store.refusals import reason_of

log = logger("refused_ends")

REASON = "refused_by_store"
TRY_AFTER = (0.3, 0.9)  # seconds: as it is; then in short form
ASIDE_SECONDS = (5.0, 15.0, 60.0)  # from one try of the short form to the next; the last goes on
HELD_MAX = 10_000  # far more than there ever should be; beyond it they are only counted
WRITERS = 2  # at a time: the connections are the lanes' first


Rewrite: TypeAlias = tuple[Write[Any], Any]  # a statement, and the row for it


class RefusedEnds:
    def __init__(self, writer: RowWriter, metrics: Metrics) -> None:
        self._writer = writer
        self._metrics = metrics
        self._turn = asyncio.Semaphore(WRITERS)
        self._deciding: set[asyncio.Task[None]] = set()
        self._aside: set[asyncio.Task[None]] = set()
        self.as_it_is: Callable[[End], Rewrite]  # how an end is written, if it can be
        self.on_written: Callable[[Sequence[End], set[str]], None]
        self.on_dead: Callable[[End, End, set[str]], None]  # the end as said, and as written
        self.on_aside: Callable[[End], None]

    def take(self, end: End, error: Exception, *, tries: Sequence[float] = TRY_AFTER) -> None:
        """The store will not write this end as it is; `tries` are pauses before it is tried so."""
        job = end.lease.job
        log.error("end refused", job=job.id, tenant=job.tenant, error=repr(error))
        if len(self._deciding) + len(self._aside) >= HELD_MAX:
            self._set_aside(end)
        else:
            _begin(self._deciding, self._decide(end, error, tries))

    async def drain(self) -> None:
        """Wait for those that are being decided; that takes seconds while the store is there."""
        await asyncio.gather(*self._deciding, return_exceptions=True)

    async def _decide(self, end: End, error: Exception, tries: Sequence[float]) -> None:
        for seconds in tries:
            await pause(seconds)
            part = await self._write(self.as_it_is(end), end)
            if part is None:
                return  # another server's now
            if part.error is None:
                self.on_written([end], part.answer)
                return
            error = part.error
        dead = in_short(end, reason_of(error))
        part = await self._end_as_dead(end, dead)
        if part is not None and part.error is not None:
            self._set_aside(end)
            _begin(self._aside, self._try_on(end, dead))

    async def _write(self, rewrite: Rewrite, end: End) -> Part | None:
        statement, row = rewrite
        async with self._turn:
            async for part in self._writer.write(statement, end.lease.shard, [row]):
                return part
        return None

    async def _end_as_dead(self, end: End, dead: End) -> Part | None:
        part = await self._write((outcomes.end_refused, _row(dead)), end)
        if part is not None and part.error is None:
            self.on_dead(end, dead, part.answer)
        return part

    def _set_aside(self, end: End) -> None:
        job = end.lease.job
        log.error("set aside: the store refuses to end a job", job=job.id, tenant=job.tenant)
        self._metrics.set_aside.inc()
        self.on_aside(end)

    async def _try_on(self, end: End, dead: End) -> None:
        silent = replace(end, number=None)  # its worker has been told
        for seconds in chain(ASIDE_SECONDS, repeat(ASIDE_SECONDS[-1])):
            await pause(seconds)
            part = await self._end_as_dead(silent, replace(dead, number=None))
            if part is None or part.error is None:
                return


def _begin(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work, name="refused end")
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def in_short(end: End, reason: str) -> End:
    """The same end as a death of which nothing is told but that the store refused the rest."""
    job = end.lease.job
    said = end.said or "succeeded"
    fault = Fault(
        "RefusedByStore", f"The store refused to record how the run ended ({said}): {reason}"
    )
    return replace(
        end,
        result=None,
        decision=Decision(State.DEAD, tally_of(job), 0, REASON),
        error=error_document(FailureClass.PERMANENT, REASON, fault),
        fingerprint=fingerprint(job.type, fault),
        said="failed",
        failure=FailureClass.PERMANENT,
    )


def _row(dead: End) -> outcomes.RefusedEnd:
    job = dead.lease.job
    return outcomes.RefusedEnd(
        job.tenant, job.id, dead.lease.epoch, dead.error or b"{}", dead.fingerprint or 0
    )
