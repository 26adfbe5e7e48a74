"""Writes ends of runs down, in groups, and tells everyone who waits.

An end stays here until it is on disk or until the shard has another owner; then it is dropped
without an acknowledgement and its worker reports it to the new one. So a crash of this process, or
of the store, loses no outcome.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import compress
from typing import TypeVar

from msgspec.structs import replace

from fairway.core.backpressure.byte_room import ByteRoom
from fairway.core.ids import PoolId, ShardId
from fairway.core.lifecycle import State
from fairway.core.run.outcome import Outcome
from fairway.runtime.telemetry import Instruments, logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.group_commit import GroupCommit, Lingering, ShardCommits, together_of
from fairway.services.jobs.flow_news import FlowNews
from fairway.services.jobs.watchers import Watchers
from fairway.services.object_storage.large_results import LargeResults, ResultPorts
from fairway.services.recording.end_writer import EndPorts, EndWriter
from fairway.services.recording.flow_ends import EndRow, EndStatement, FlowEnds, LeftOut
from fairway.services.recording.flow_lines import FlowLine, FlowLines, Member
from fairway.services.recording.outcome_rows import (
    numbers_by_session,
    result_bytes,
    row_for,
    settlement_of,
    shard_of_end,
    shards_of,
    statement_for,
)
from fairway.services.recording.parent_ends import SIZES as PARENT_SIZES
from fairway.services.recording.parent_ends import ParentEnds, is_large
from fairway.services.recording.parent_ends import size_bytes as size_of_parent
from fairway.services.recording.ports import Bounds, RecorderPorts
from fairway.services.recording.refused_outcomes import RefusedEnds, RefusedPorts, Rewrite
from fairway.services.recording.row_writer import (
    OnLock,
    RowsWritten,
    RowWriter,
    items_at,
    turns_of,
)
from fairway.services.sessions.sessions import End
from fairway.services.store_clock import StoreClock
from fairway.store import outcomes
from fairway.store.connections.database import Database

log = logger("recorder")

Row = TypeVar("Row", bound=EndRow)

ACK_PAUSE_SECONDS = 0.05  # acknowledgements alone may wait this long for company
SUCCESS_WRITES_MAX = 2
SETTLEMENT_WRITES_MAX = 3
PARENT_WRITES_MAX = 2
LOCKED_WRITES_MAX = 1  # each waits for a lock, with a connection that the lanes lack
FLOW_WRITES_MAX = 2  # for all shards and tenants: the connections are the lanes' first
TENANTS_SHARE = 4  # a tenant's large results may fill this part of the room: a fourth


class Recorder:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        watchers: Watchers,
        store_clock: StoreClock,
        instruments: Instruments,
        bounds: Bounds,
        ports: RecorderPorts,
    ) -> None:
        self._dispatcher = dispatcher
        self._watchers = watchers
        self._store_clock = store_clock
        self._instruments = instruments
        self._metrics = instruments.metrics
        self._together = together_of(database)
        self._inline_bytes_max = bounds.inline_bytes_max
        self._waiting_bytes_max = bounds.waiting_bytes_max
        self.bytes_waiting = 0  # of results that fit into their row, on their way there
        self._writer = RowWriter(database, dispatcher.terms(), turns_of(database))
        self._ports = ports
        self._flow_ends = FlowEnds(FlowNews(dispatcher, watchers))
        turns = turns_of(database, FLOW_WRITES_MAX)
        self._flow_writer = RowWriter(database, dispatcher.terms(), turns)
        self._flow_lines = FlowLines(self._write_members)
        self._parent_ends = ParentEnds(dispatcher, self._metrics, ports.on_scheduled)
        self._join_commits(bounds.linger)
        self._join_asides(database, bounds.waiting_bytes_max)

    def _join_commits(self, linger: Lingering) -> None:
        """Lanes for all shards, or for each: ends are fenced by their epochs and need no order."""

        def successes() -> GroupCommit[End]:
            # Lingers when many end; nobody but who asks for results waits for this.
            return GroupCommit(
                "outcomes",
                self._flush_successes,
                instruments=self._instruments,
                writes_max=SUCCESS_WRITES_MAX,
                linger=linger,
            )

        def settlements() -> GroupCommit[End]:
            return GroupCommit(
                "settlements",
                self._flush_settlements,
                instruments=self._instruments,
                writes_max=SETTLEMENT_WRITES_MAX,
            )

        def parents() -> GroupCommit[End]:
            # Lanes of their own: who starts a thousand jobs holds up nobody who starts none or one.
            return GroupCommit(
                "parents",
                self._flush_parents,
                instruments=self._instruments,
                sizes=PARENT_SIZES,
                writes_max=PARENT_WRITES_MAX,
                linger=Lingering(0.002),
            )

        self._parents = ShardCommits(parents, shard_of_end, self._together)
        self._large_parents = ShardCommits(parents, shard_of_end, self._together)
        self._successes = ShardCommits(
            successes,
            shard_of_end,
            self._together,
            self._is_any_watched,
        )
        self._settlements = ShardCommits(settlements, shard_of_end, self._together)

    def _is_any_watched(self, ends: list[End]) -> bool:
        watchers = self._watchers  # as a rule nobody waits, and no end is looked at
        return watchers.are_any and any(watchers.is_watched(end.lease.job.id) for end in ends)

    def _join_asides(self, database: Database, bytes_max: int) -> None:
        """What cannot go through the lanes: large results, and what the store refuses."""
        self.refused_ends = RefusedEnds(
            self._writer,
            self._metrics,
            RefusedPorts(
                end_refused=self._flow_ends.alone(outcomes.end_refused),
                as_it_is=self._as_it_is,
                on_written=self._finish_aside,
                on_dead=self._finish_dead,
                on_aside=self._give_up,
                on_dropped=self._forget,
            ),
        )
        locked = RowWriter(
            database, self._dispatcher.terms(), turns_of(database, LOCKED_WRITES_MAX)
        )
        end_ports = EndPorts(self._finish_uncounted, self._forget)
        self._ends = EndWriter(self._flow_ends, locked, self.refused_ends, end_ports)
        ports = ResultPorts(
            keep=self._ports.keep_result,
            on_untaken=self._dispatcher.reported,
            give_up_untaken=self._dispatcher.given_up,
            on_kept=self._result_kept,
            on_given_up=self._give_up_result,
            on_refused=partial(self.refused_ends.take, tries=()),
            on_dropped=self._forget,
        )
        room = ByteRoom(bytes_max, bytes_max // TENANTS_SHARE)
        clock, term_of = self._instruments.clock, self._writer.term_of
        self.large_results = LargeResults(room, clock, term_of, ports)

    def record(self, ends: list[End]) -> None:
        """Ends of one kind: all succeeded, or none; one that starts others comes alone."""
        if ends[0].decision is not None:
            self._settlements.add_many(ends)
        else:
            sizes = [len(end.result or b"") for end in ends]
            if max(sizes) > self._inline_bytes_max:
                self._record_large(ends)
            else:
                self._add_successes(ends, sum(sizes))

    def _add_successes(self, ends: list[End], size_bytes: int) -> None:
        if ends[0].children is not None:
            self.bytes_waiting += sum(map(size_of_parent, ends))
            for end in ends:
                lane = self._large_parents if is_large(end) else self._parents
                lane.add_many([end])
        else:
            self.bytes_waiting += size_bytes
            self._successes.add_many(ends)

    def is_behind(self) -> bool:
        """Whether so many bytes of results wait for the store that no more should be taken."""
        return self.bytes_waiting > self._waiting_bytes_max

    def _record_large(self, ends: list[End]) -> None:
        """Results too large for a row are kept elsewhere first; the others need not wait."""
        small = [end for end in ends if len(end.result or b"") <= self._inline_bytes_max]
        if small:
            self._add_successes(small, result_bytes(small))
        for end in ends:
            if len(end.result or b"") > self._inline_bytes_max:
                self.large_results.add(end)

    def _result_kept(self, end: End) -> None:
        self._dispatcher.result_kept(end.lease)
        self._add_successes([end], result_bytes([end]))

    def _give_up_result(self, end: End, outcome: Outcome) -> None:
        failed = self._dispatcher.result_not_kept(end.lease, end.number, outcome)
        self._settlements.add_many([failed])

    async def drain_commits(self) -> None:
        """Wait for ends that are on their way to their rows."""
        lanes = (self._successes, self._settlements, self._parents, self._large_parents)
        await asyncio.gather(*(lane.drain() for lane in lanes))
        await self._ends.drain()  # whose rows somebody holds
        await self._flow_lines.drain()  # of what the lanes left to them

    async def drain(self) -> None:
        """Wait for all that is under way; given up, it lets all of it go."""
        await asyncio.gather(self.large_results.drain(), self.drain_commits())
        await self.drain_commits()  # of large results
        await self.refused_ends.drain()

    # -- ends --------------------------------------------------------------------------------

    async def _flush_successes(self, ends: list[End]) -> None:
        shards = shards_of(ends, self._dispatcher.homes())
        rows = [
            (shard, job.tenant, job.id, end.lease.epoch, end.ran_us, end.result, job.place)
            for shard, end in zip(shards, ends, strict=True)
            for job in (end.lease.job,)
        ]
        try:
            await self._write(outcomes.record_successes, ends, shards, rows)
        finally:
            self.bytes_waiting -= result_bytes(ends)

    async def _flush_parents(self, ends: list[End]) -> None:
        try:
            with self._parent_ends.writing(ends) as rows:
                shards = [row.success.shard for row in rows]
                await self._write(outcomes.record_parents, ends, shards, rows, OnLock.WAIT)
        finally:
            self.bytes_waiting -= sum(map(size_of_parent, ends))

    async def _flush_settlements(self, ends: list[End]) -> None:
        packed, rows = [], []
        for end in ends:
            try:
                rows.append(settlement_of(end, self._store_clock))
            except Exception as error:
                self.refused_ends.take(end, error)
            else:
                packed.append(end)
        await self._write(outcomes.settle, packed, [row.shard for row in rows], rows)

    async def _write(
        self,
        statement: EndStatement[Row],
        ends: list[End],
        shards: Sequence[ShardId],
        rows: Sequence[Row],
        on_lock: OnLock = OnLock.LEAVE,
    ) -> None:
        def finish(part: RowsWritten[LeftOut]) -> None:
            self._finish_uncounted(part.of(ends), part.of(rows), part.answer)

        write = self._flow_ends.uncounted(statement)
        parts = self._writer.write_beside(write, shards, rows, on_lock)
        for places, term in await self._ends.follow(parts, ends, finish):
            held, of_held = items_at(ends, places), items_at(rows, places)
            await self._ends.write_later(statement, held, of_held, term)

    def _finish_uncounted(self, ends: Sequence[End], rows: Sequence[EndRow], left: LeftOut) -> None:
        """These are on disk, but for what is left out: members of flows go to their lines."""
        if left.in_flow:
            self._successes.keep_moving()  # the next steps of chains wait for ends
            is_member = [end.lease.job.id in left.in_flow for end in ends]
            members = [*map(Member, compress(ends, is_member), compress(rows, is_member))]
            self.bytes_waiting += sum(size_of_parent(member.end) for member in members)
            self._flow_lines.add(self._writer.term_of, members)
            ends = [end for end in ends if end.lease.job.id not in left.in_flow]
        if ends:
            self._finish(ends, left.refused)

    async def _write_members(self, line: FlowLine, members: list[Member]) -> None:
        """Ends of one kind, of members of one tenant's flows."""
        ends, rows = [one.end for one in members], [one.row for one in members]

        def finish(part: RowsWritten[set[str]]) -> None:
            self._finish_aside(part.of(ends), part.answer)

        write = self._flow_ends.counted(statement_for(ends[0]))
        shards = [line.shard] * len(rows)
        parts = self._flow_writer.write(write, shards, rows, line.term)
        try:
            await self._ends.follow(parts, ends, finish)
        finally:
            self.bytes_waiting -= sum(map(size_of_parent, ends))

    def forget_shards(self, shards: Collection[ShardId]) -> None:
        """Of those that wait here. Should a shard come back before their turn, they are of a term
        that is over: an older failure would end a job whose newer run succeeds."""
        parents = [*self._parents.withdraw(shards), *self._large_parents.withdraw(shards)]
        successes = self._successes.withdraw(shards)
        self.bytes_waiting -= sum(map(size_of_parent, parents)) + result_bytes(successes)
        if gone := [*parents, *successes, *self._settlements.withdraw(shards)]:
            self._forget(gone)

    def _forget(self, ends: Sequence[End]) -> None:
        """Dropped: another owner's, or ours anew. Their workers say again what they reported."""
        for session, numbers in numbers_by_session(ends).items():
            session.no_longer_recording(numbers)
            if numbers and self._dispatcher.has(session):
                session.doubt()

    def _as_it_is(self, end: End) -> Rewrite:
        return self._flow_ends.alone(statement_for(end)), row_for(end, self._store_clock)

    def _finish_aside(self, ends: Sequence[End], refused: set[str]) -> None:
        """As `_finish`, of what was written beside the lanes."""
        self._finish(ends, refused, tell=self._parent_ends.hint)

    def _finish(
        self,
        ends: Sequence[End],
        refused: set[str],
        tell: Callable[[Sequence[End]], None] | None = None,
    ) -> None:
        """These are on disk, but for those that the guard refused: their lease was lost."""
        ids = [end.lease.job.id for end in ends]
        self._dispatcher.recorded(ids)
        written = ends
        if refused:
            written = [end for end in ends if end.lease.job.id not in refused]
            self._refuse([end for end in ends if end.lease.job.id in refused])
        for session, heard in numbers_by_session(written).items():
            if heard:
                session.no_longer_recording(heard)
                session.acknowledge(heard)
                session.answer_soon(ACK_PAUSE_SECONDS)
        if ends[0].decision is not None:  # a group is of one kind
            self._settle(written)
        elif ends[0].children is not None:
            (tell or self._parent_ends.announce)(written)
        self._count(ends, len(refused))
        self._ports.on_ends(ends)
        self._watchers.notify(ids)

    def _settle(self, ends: Sequence[End]) -> None:
        is_scheduled = False
        for end in ends:
            self._dispatcher.settled(end)
            if end.number is not None and end.decision and end.decision.state is State.DEAD:
                end.lease.session.note_dead(end.number)
            is_scheduled |= end.decision is not None and end.decision.state is State.SCHEDULED
        if is_scheduled:
            self._ports.on_scheduled()

    def _finish_dead(self, said: End, dead: End, refused: set[str]) -> None:
        """The job is dead instead; a worker whose run went well hears that this is not recorded."""
        if said.decision is None:
            self._refuse([said])
            dead = replace(dead, number=None)
        self._finish([dead], refused)

    def _give_up(self, end: End) -> None:
        """Nothing can be written of this: its worker need not wait."""
        self._refuse([end])
        self._watchers.notify([end.lease.job.id])

    def _refuse(self, ends: Sequence[End]) -> None:
        for session, numbers in numbers_by_session(ends).items():
            session.no_longer_recording(numbers)
            session.refuse(numbers)
            session.answer_soon(ACK_PAUSE_SECONDS)

    def _count(self, ends: Sequence[End], refused: int) -> None:
        if refused:
            self._metrics.fenced.inc(refused)
        pools, tally = self._dispatcher.pools.by_number, Counter[tuple[PoolId, str]]()
        if ends[0].decision is None:  # a group is of one kind
            for pool, count in Counter([end.lease.job.pool for end in ends]).items():
                tally[pool, "succeeded"] = count
        else:
            labels = [one.decision.state.label if one.decision else "succeeded" for one in ends]
            tally.update(zip([one.lease.job.pool for one in ends], labels, strict=True))
        for (pool, outcome), count in tally.items():
            self._metrics.recorded.labels(pools[pool].name, outcome).inc(count)
