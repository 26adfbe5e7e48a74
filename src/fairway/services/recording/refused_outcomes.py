"""Ends of runs that the store refuses to write: out of the lane at once, and ended all the same.

Such a row is tried a few times more, beside the lanes; then its job is written as dead, without
anything of the run but the store's reason. If even that is refused, the worker is told that its
report is, somebody is told in the log, and the short form is tried again from time to time: the job
waits for a person to mend the store, and nobody waits for the job.

When many are refused for one cause and not one is taken, it is the store that is at fault, not the
rows: no job dies of that. They wait, one of them is tried now and then, and as soon as the store
takes an end of their kind, from whomever, each is tried as it is once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from fairway.core.failure.fault import Fault, error_document
from fairway.core.failure.fingerprint import fingerprint
from fairway.core.failure.retry import Decision, DecisionReason
from fairway.core.ids import Term
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.failure.failure_policy import tally_of
from fairway.services.recording.flow_ends import EndRow
from fairway.services.recording.row_writer import Part, RowRefused, RowWriter, Write
from fairway.services.sessions.sessions import End
from fairway.store import outcomes
from fairway.store.connections.error_classes import code_of, reason_of

log = logger("refused_ends")

REASON = DecisionReason.REFUSED_BY_STORE
TRY_AFTER = (0.3, 0.9)  # seconds: as it is; then in short form
ASIDE_SECONDS = (5.0, 15.0, 60.0)  # from one try of the short form to the next; the last goes on
HELD_MAX = 10_000  # far more than there ever should be; beyond it they are only counted
WIDESPREAD = 8  # refused for one cause since an end of their kind was taken last
PROBE_SECONDS = 2.0  # from one try to the next while the store is at fault
WRITERS = 2  # at a time: the connections are the lanes' first


Rewrite: TypeAlias = tuple[Write[Any, set[str]], EndRow]  # a statement, and the row for it


class Refused(NamedTuple):
    """An end, and the term it was taken under: should the shard go and come back, it is over."""

    end: End
    term: Term


class RefusedPorts(NamedTuple):
    """How an end is written, and who hears what became of one that was refused."""

    end_refused: Write[outcomes.RefusedEnd, set[str]]  # in short form
    as_it_is: Callable[[End], Rewrite]  # if it can be
    on_written: Callable[[Sequence[End], set[str]], None]
    on_dead: Callable[[End, End, set[str]], None]  # the end as said, and as written
    on_aside: Callable[[End], None]
    on_dropped: Callable[[Sequence[End]], None]


class RefusedEnds:
    def __init__(self, writer: RowWriter, metrics: Metrics, ports: RefusedPorts) -> None:
        self._writer = writer
        self._metrics = metrics
        self._ports = ports
        self._turn = asyncio.Semaphore(WRITERS)
        self._deciding: set[asyncio.Task[None]] = set()
        self._aside: set[asyncio.Task[None]] = set()
        self._jobs_aside: set[str] = set()
        self._refusals: dict[
            tuple[bool, str], int
        ] = {}  # (is success, cause) → since one was taken
        self._probe = asyncio.Lock()

    def take(self, end: End, error: Exception, *, tries: Sequence[float] | None = None) -> None:
        """The store will not write this end as it is; `tries` are pauses before it is tried so."""
        job = end.lease.job
        log.error("end refused", job=job.id, tenant=job.tenant, error=repr(error))
        cause = (end.decision is None, code_of(error))
        self._refusals[cause] = self._refusals.get(cause, 0) + 1
        if self._is_full:
            self._set_aside(end)
        else:
            term = self._writer.term_of(end.lease.shard)
            tries = TRY_AFTER if tries is None else tries
            _begin(self._deciding, self._decide(Refused(end, term), error, tries))

    @property
    def _is_full(self) -> bool:
        return len(self._deciding) + len(self._aside) >= HELD_MAX

    async def until_room(self, end: End, error: Exception) -> None:
        """Hold up a lane that brings more while the store takes nothing: nobody loses by that."""
        while self._is_full and self._is_widespread(end, error):
            await pause(PROBE_SECONDS)

    def taken(self, end: End) -> None:
        """The store took an end of this kind: what it refuses now, it refuses for the row."""
        if self._refusals:
            is_success = end.decision is None
            self._refusals = {at: n for at, n in self._refusals.items() if at[0] != is_success}

    def is_aside(self, job: str) -> bool:
        """Whether the end of this job is known and cannot be written: no other will be."""
        return job in self._jobs_aside

    async def drain(self) -> None:
        """Wait for those that are being decided; that takes seconds while the store is there."""
        while self._deciding:
            await asyncio.wait(self._deciding, timeout=0.1)

    async def _decide(self, one: Refused, error: Exception, tries: Sequence[float]) -> None:
        end = one.end
        for seconds in tries:
            await pause(seconds)
            refusal = await self._try_as_it_is(one)
            if refusal is None:
                return
            error = refusal
        if tries and self._is_widespread(end, error):
            refusal = await self._wait_for_the_store(one, error)
            if refusal is None:
                return
            error = refusal
        dead = in_short(end, reason_of(error))
        part = await self._end_as_dead(one, dead)
        if isinstance(part, RowRefused):
            self._set_aside(end)
            _begin(self._aside, self._try_on(one, dead))

    def _is_widespread(self, end: End, error: Exception) -> bool:
        return self._refusals.get((end.decision is None, code_of(error)), 0) >= WIDESPREAD

    async def _wait_for_the_store(self, one: Refused, error: Exception) -> Exception | None:
        """One is tried at a time, for all. A stop does not wait: its worker reports elsewhere."""
        task = asyncio.current_task()
        assert task is not None
        self._deciding.discard(task)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        while True:
            async with self._probe:
                is_widespread = self._is_widespread(one.end, error)
                if is_widespread:
                    await pause(PROBE_SECONDS)
                refusal = await self._try_as_it_is(one)
            if refusal is None or not is_widespread:
                return refusal
            error = refusal

    async def _try_as_it_is(self, one: Refused) -> Exception | None:
        """Answers why the store refuses it; None when there is nothing more to do."""
        end = one.end
        try:
            rewrite = self._ports.as_it_is(end)
        except Exception as error:
            return error
        part = await self._write(rewrite, one)
        if isinstance(part, RowRefused):
            return part.error
        if part is None:
            self._ports.on_dropped([end])  # another server's now
        else:
            self.taken(end)
            self._ports.on_written([end], part.answer)
        return None

    async def _write(self, rewrite: Rewrite, one: Refused) -> Part[set[str]] | None:
        statement, row = rewrite
        async with self._turn:
            shard, term = one.end.lease.shard, one.term
            async for part in self._writer.write(statement, [shard], [row], term):
                return part
        return None

    async def _end_as_dead(self, one: Refused, dead: End) -> Part[set[str]] | None:
        part = await self._write((self._ports.end_refused, _row(dead)), one)
        if part is None:
            self._ports.on_dropped([one.end])
        elif not isinstance(part, RowRefused):
            self._ports.on_dead(one.end, dead, part.answer)
        return part

    def _set_aside(self, end: End) -> None:
        job = end.lease.job
        log.error("set aside: the store refuses to end a job", job=job.id, tenant=job.tenant)
        self._metrics.set_aside.inc()
        self._ports.on_aside(end)

    async def _try_on(self, one: Refused, dead: End) -> None:
        job = one.end.lease.job.id
        silent = one._replace(end=replace(one.end, number=None))  # its worker has been told
        self._jobs_aside.add(job)
        try:
            for seconds in chain(ASIDE_SECONDS, repeat(ASIDE_SECONDS[-1])):
                await pause(seconds)
                part = await self._end_as_dead(silent, replace(dead, number=None))
                if not isinstance(part, RowRefused):
                    return
        finally:
            self._jobs_aside.discard(job)


def _begin(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work, name="refused end")
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def in_short(end: End, reason: str) -> End:
    """The same end as a death of which nothing is told but that the store refused the rest."""
    job = end.lease.job
    said = end.outcome_label or "succeeded"
    fault = Fault(
        "RefusedByStore", f"The store refused to record how the run ended ({said}): {reason}"
    )
    return replace(
        end,
        result=None,
        decision=Decision(State.DEAD, tally_of(job), 0, REASON),
        error=error_document(FailureClass.PERMANENT, REASON, fault),
        fingerprint=fingerprint(job.type, fault),
        outcome_label="failed",
        failure=FailureClass.PERMANENT,
        children=None,
    )


def lease_refusal(error: Exception) -> Outcome:
    """How a job ends whose lease the store refuses to write."""
    fault = Fault("RefusedByStore", f"The store refused to record its lease: {reason_of(error)}")
    text = error_document(None, "", fault)
    return Outcome(OutcomeKind.FAILED, 0, failure=FailureClass.PERMANENT, error=text)


def _row(dead: End) -> outcomes.RefusedEnd:
    job = dead.lease.job
    return outcomes.RefusedEnd(
        dead.lease.shard,
        job.tenant,
        job.id,
        dead.lease.epoch,
        dead.error or b"{}",
        dead.fingerprint or 0,
    )
