"""Writes ends of runs and leases down, in groups, and tells everyone who waits.

An end stays here until it is on disk or until the shard has another owner; then it is dropped
without an acknowledgement and its worker reports it to the new one. So a crash of this process, or
of the store, loses no outcome.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TypeVar

from msgspec.structs import replace

from fairway.core.billing import is_billable
from fairway.core.errors import Unavailable
from fairway.core.ids import JobId
from fairway.core.lifecycle import State
from fairway.core.run_note import RunNote, note_text
from fairway.core.timing import Timing, lateness_ms
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import Instruments, logger
from fairway.services.dispatcher import Dispatcher
from fairway.services.group_commit import GroupCommit
from fairway.services.sessions import End, Lease, Session, numbers_by_session
from fairway.services.store_clock import StoreClock
from fairway.services.watch import Watchers
from fairway.store import leases as lease_store
from fairway.store import outcomes
from fairway.store.database import DISCONNECTED, Connection, Database

log = logger("recorder")

Row = TypeVar("Row")

ACK_PAUSE_SECONDS = 0.05  # acknowledgements alone may wait this long for company
RETRY_SECONDS = 0.2


class Recorder:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        watchers: Watchers,
        store_clock: StoreClock,
        instruments: Instruments,
        *,
        shard_count: int,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._watchers = watchers
        self._store_clock = store_clock
        self._metrics = instruments.metrics
        self._shard_count = shard_count
        self.on_scheduled: Callable[[], None] = lambda: None
        self.inline_bytes_max = 1 << 62  # of a result; larger ones go through `keep_result`
        self.keep_result: Callable[[Lease, bytes], Awaitable[bytes]]
        self._keeping: set[asyncio.Task[None]] = set()
        self.on_ends: Callable[[Sequence[End]], None] = lambda ends: None
        self._successes = GroupCommit[End](
            "outcomes",
            self._flush_successes,
            instruments=instruments,
            lanes=2,
            linger_seconds=0.010,  # when many end; nobody but who asks for results waits for this
        )
        self._settlements = GroupCommit[End](
            "settlements", self._flush_settlements, instruments=instruments
        )
        self._leases = GroupCommit[Lease](
            "leases", self._flush_leases, instruments=instruments, linger_seconds=0.001
        )
        dispatcher.record_ends = self.record
        dispatcher.write_leases = self._leases.add_many

    def record(self, ends: list[End]) -> None:
        """Ends of one kind: all succeeded, or none."""
        if ends[0].decision is not None:
            self._settlements.add_many(ends)
        elif max([len(end.result or b"") for end in ends]) > self.inline_bytes_max:
            self._record_large(ends)
        else:
            self._successes.add_many(ends)

    def _record_large(self, ends: list[End]) -> None:
        """Results too large for a row are kept elsewhere first; the others need not wait."""
        small = [end for end in ends if len(end.result or b"") <= self.inline_bytes_max]
        if small:
            self._successes.add_many(small)
        for end in ends:
            if len(end.result or b"") > self.inline_bytes_max:
                task = asyncio.create_task(self._keep_result(end), name="large result")
                self._keeping.add(task)
                task.add_done_callback(self._keeping.discard)

    async def _keep_result(self, end: End) -> None:
        while end.lease.shard in self._dispatcher.terms:  # else its worker reports it elsewhere
            try:
                reference = await self.keep_result(end.lease, end.result or b"")
            except Unavailable as error:
                log.warning("a large result waits", job=end.lease.job.id, error=error.message)
                await pause(RETRY_SECONDS)
            else:
                self._successes.add_many([replace(end, result=reference)])
                return

    async def drain(self) -> None:
        await asyncio.gather(*self._keeping, return_exceptions=True)
        await self._successes.drain()
        await self._settlements.drain()

    # -- ends --------------------------------------------------------------------------------

    def _by_shard(self, ends: list[End]) -> dict[int, list[End]]:
        if self._shard_count == 1:  # where every microsecond counts, there is mostly one
            return {ends[0].lease.shard: ends}
        groups: dict[int, list[End]] = {}
        for end in ends:
            groups.setdefault(end.lease.shard, []).append(end)
        return groups

    async def _flush_successes(self, ends: list[End]) -> None:
        for shard, group in self._by_shard(ends).items():
            rows = [
                (job.tenant, job.id, end.lease.epoch, end.ran_us, end.result, job.place)
                for end in group
                for job in (end.lease.job,)
            ]
            refused = await self._until_written(outcomes.record_successes, shard, rows)
            self._finish(group, refused)

    async def _flush_settlements(self, ends: list[End]) -> None:
        for shard, group in self._by_shard(ends).items():
            rows = [self._settlement(end) for end in group]
            refused = await self._until_written(outcomes.settle, shard, rows)
            self._finish(group, refused)
            if any(row.state is State.SCHEDULED for row in rows):
                self.on_scheduled()

    def _settlement(self, end: End) -> outcomes.Settlement:
        decision, job, session = end.decision, end.lease.job, end.lease.session
        assert decision is not None
        tally, now, due = decision.tally, self._store_clock.now(), None
        if decision.state is State.SCHEDULED:
            due = now + timedelta(milliseconds=decision.delay_ms)
        billable = is_billable(end.said, end.failure)
        note = RunNote(
            job.deliveries + 1, job.attempts + 1, end.said, now, end.ran_us, session.worker,
            session.build, decision.reason, end.error, self._late_ms(end), end.lease.progress,
            billable,
        )  # fmt: skip
        return outcomes.Settlement(
            job.tenant, job.id, end.lease.epoch, decision.state, tally.attempts, tally.deliveries,
            due, end.ran_us, end.error, tally.failures if any(tally.failures) else None,
            end.fingerprint, note_text(note), end.ran_us if billable else 0,
        )  # fmt: skip

    def _late_ms(self, end: End) -> int | None:
        if end.lease.job.timing is None:
            return None
        began = self._store_clock.at_us(end.lease.granted_us)
        return lateness_ms(Timing.of(end.lease.job.timing), int(began.timestamp() * 1000))

    async def _until_written(
        self,
        write: Callable[[Connection, int, int, Sequence[Row]], Awaitable[set[str]]],
        shard: int,
        rows: Sequence[Row],
    ) -> set[str] | None:
        """Write as the owner of the shard, however long the store is away; None when not owner."""
        while (term := self._dispatcher.terms.get(shard)) is not None:
            try:
                async with self._database.hot() as connection:
                    return await write(connection, shard, term, rows)
            except DISCONNECTED as error:
                log.warning("store away, outcomes wait", shard=shard, error=repr(error))
                await pause(RETRY_SECONDS)
            except Exception as error:
                log.error("store refused a write", rows=len(rows), error=repr(error))
                if len(rows) > 1:  # one bad row must not hold up the others
                    parts = [await self._until_written(write, shard, [row]) for row in rows]
                    return set().union(*(part or () for part in parts))
                await pause(RETRY_SECONDS)
        return None

    def _finish(self, ends: Sequence[End], refused: set[str] | None) -> None:
        if refused is None:
            return  # not ours to acknowledge any more
        ids = [end.lease.job.id for end in ends]
        self._dispatcher.backlog.ended(ids)
        written = ends
        if refused:
            written = [end for end in ends if end.lease.job.id not in refused]
            self._refuse([end for end in ends if end.lease.job.id in refused])
        if ends[0].decision is not None:  # a group is of one kind
            for end in written:
                self._dispatcher.settled(end)
        self._count(ends, len(refused))
        self.on_ends(ends)
        self._watchers.tell(ids)
        for session, heard in numbers_by_session(written).items():
            if heard:
                session.recording.difference_update(heard)
                session.recorded += heard
                self._acknowledge_soon(session)

    def _refuse(self, ends: Sequence[End]) -> None:
        for session, numbers in numbers_by_session(ends).items():
            session.refused += numbers

    def _count(self, ends: Sequence[End], refused: int) -> None:
        if refused:
            self._metrics.fenced.inc(refused)
        tally: dict[str, int] = defaultdict(int)
        if ends[0].decision is None:  # a group is of one kind
            tally["succeeded"] = len(ends)
        else:
            for end in ends:
                tally[end.decision.state.label if end.decision else "succeeded"] += 1
        for outcome, count in tally.items():
            self._metrics.recorded.labels(outcome).inc(count)

    def _acknowledge_soon(self, session: Session) -> None:
        if session.draining:
            session.ring()
        elif session.poll is not None and not session.acks_due:
            session.acks_due = True
            asyncio.get_running_loop().call_later(ACK_PAUSE_SECONDS, _acknowledge, session)

    # -- leases ------------------------------------------------------------------------------

    async def _flush_leases(self, leases: list[Lease]) -> None:
        """Durable pools: the worker hears of a lease only after this."""
        for lease, is_written in await self.write_leases(leases):
            if is_written:
                self._dispatcher.written(lease)
            else:
                self._dispatcher.not_written(lease)

    async def write_leases(self, leases: Sequence[Lease]) -> list[tuple[Lease, bool]]:
        done = []
        for shard, group in _leases_by_shard(leases).items():
            rows = [
                lease_store.LeaseRow(
                    lease.job.tenant, lease.job.id, lease.epoch, lease.session.key, lease.token
                )
                for lease in group
            ]
            written = await self._until_written(lease_store.write_leases, shard, rows)
            done += [(lease, lease.job.id in (written or ())) for lease in group]
            self._watchers.tell(JobId(job) for job in written or ())
        return done


def _acknowledge(session: Session) -> None:
    session.acks_due = False
    if session.recorded or session.refused:
        session.ring()


def _leases_by_shard(leases: Sequence[Lease]) -> dict[int, list[Lease]]:
    groups: dict[int, list[Lease]] = {}
    for lease in leases:
        groups.setdefault(lease.shard, []).append(lease)
    return groups
