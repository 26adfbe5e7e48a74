"""Writes leases down: at once where the worker must not hear of one before that, lazily elsewhere.

Most short jobs end before the lazy write looks; they cost two row writes, not three. On a
distributed store each part has its own writes: one on a node that is away holds up no other's.
A row that somebody holds for long stops its own job alone: those beside it are written around it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from fairway.core.ids import JobId, ShardId, Term
from fairway.runtime.telemetry import Instruments, logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.group_commit import GroupCommit, Lingering, ShardCommits, together_of
from fairway.services.jobs.watchers import Watchers
from fairway.services.recording.locked_rows import LockedRows
from fairway.services.recording.refused_outcomes import lease_refusal
from fairway.services.recording.row_writer import (
    OnLock,
    RowRefused,
    RowsLocked,
    RowWriter,
    items_at,
    turns_of,
)
from fairway.services.sessions.sessions import Lease
from fairway.services.store_clock import StoreClock
from fairway.store import leases as store
from fairway.store.connections import shard_terms
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.shard_terms import ShardsLost

log = logger("lease_writer")

LEASE_WRITES_MAX = 2
HELD_WRITES_MAX = 1  # each waits for a lock, with a connection that the lanes lack
IDLE_US = 10_000_000

#: Of each lease: was it written, or its job no longer free to run; None when it is another's.
Tell: TypeAlias = Callable[[Lease, bool | None], None]


class LeaseWriter:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        watchers: Watchers,
        instruments: Instruments,
        store_clock: StoreClock,
        *,
        lazy_after_ms: int,
    ) -> None:
        self._dispatcher = dispatcher
        self._store_clock = store_clock
        self._watchers = watchers
        self._lazy_us = lazy_after_ms * 1000
        self._together = together_of(database)
        self._database = database
        self._writer = RowWriter(database, dispatcher.terms(), patient=True)
        turns = turns_of(database, HELD_WRITES_MAX)
        self._held_writer = RowWriter(database, dispatcher.terms(), turns, patient=True)
        self._locked = LockedRows("leases")
        self._held: set[Lease] = set()  # whose rows somebody holds

        def at_once() -> GroupCommit[Lease]:
            return GroupCommit(
                "leases",
                self._write_at_once,
                instruments=instruments,
                writes_max=LEASE_WRITES_MAX,
                linger=Lingering(0.001),
            )

        def lazily() -> GroupCommit[Lease]:
            # A second while one stands still: somebody may hold a row of it.
            return GroupCommit(
                "leases", self._write_late, instruments=instruments, writes_max=LEASE_WRITES_MAX
            )

        self._at_once = ShardCommits(at_once, _shard_of, self._together)
        self._lazily = ShardCommits(lazily, _shard_of, self._together)
        self._taking = asyncio.Lock()  # of lazy ones: none begins while others are withdrawn

    def write(self, leases: list[Lease]) -> None:
        """Their workers hear of them once they are on disk."""
        self._at_once.add_many(leases)

    # -- before the worker hears of them -------------------------------------------------------

    async def _write_at_once(self, leases: list[Lease]) -> None:
        await self._write(leases, self._told_at_once)

    def _told_at_once(self, lease: Lease, is_written: bool | None) -> None:
        if is_written:
            self._dispatcher.written(lease)
        else:
            self._dispatcher.not_written(lease)

    # -- while they run ------------------------------------------------------------------------

    async def run_once(self, now_us: int) -> float:
        async with self._taking:
            stale = self._dispatcher.take_stale_leases(now_us - self._lazy_us)
            if stale.leases:
                self._lazily.add_many(stale.leases)
        return lazy_rest_us(stale.next_granted_us, now_us, self._lazy_us) / 1e6

    async def write_all(self, shards: Collection[ShardId]) -> None:
        """Before another server goes on: whatever a worker was given, and nothing beside it.

        Nothing more of these shards is granted by now. What no worker heard of is withdrawn: were
        it on its way to disk just then, its job would run there for nobody. So a shard of which
        somebody holds a row stays as it is: it is not whole, and the others do not wait for it.
        """
        await self._at_once.settle(shards)
        async with self._taking:
            await self._lazily.settle(shards)
            free = set(shards) - {lease.shard for lease in self._held}
            if unwritten := self._dispatcher.letting_go().unwritten(free):
                self._lazily.add_many(unwritten)
                await self._lazily.settle(shards)

    async def _write_late(self, leases: list[Lease]) -> None:
        """Some may have come twice, be written by now, or over: a slow store has most of those.

        Who took their shards knows of them from their workers: what goes on there is not ours to
        stop, though we may not have heard yet that they are not ours.
        """
        stands = self._dispatcher.stands
        fresh = {lease.job.id: lease for lease in leases if not lease.written and stands(lease)}
        if not fresh:
            return
        await self._write([*fresh.values()], self._told_late)

    def _told_late(self, lease: Lease, is_written: bool | None) -> None:
        if is_written is not None:
            self._dispatcher.written_late(lease, is_written=is_written)

    # -- rows ----------------------------------------------------------------------------------

    async def _write(self, leases: Sequence[Lease], tell: Tell) -> None:
        """What became of each is told as soon as it is known; of those that somebody holds, when
        they are let go: nobody else waits for that."""
        for group in self._groups(leases):
            for held in await self._follow(self._writer, group, tell, OnLock.LEAVE):
                await self._write_around(items_at(group, held.places), held.term, tell)

    async def _write_around(self, leases: Sequence[Lease], term: Term, tell: Tell) -> None:
        """Somebody holds a row of one of these, of one shard, which were taken under this term."""
        free = await self._free_of(leases)
        stuck = [lease for lease in leases if lease.job.id not in free]
        others = [lease for lease in leases if lease.job.id in free]
        if others:
            for held in await self._follow(self._writer, others, tell, OnLock.LEAVE, term):
                stuck += items_at(others, held.places)
        if stuck:
            self._held.update(stuck)
            await self._locked.take(len(stuck), partial(self._write_held, stuck, term, tell))

    async def _free_of(self, leases: Sequence[Lease]) -> set[str]:
        """Those of these jobs whose rows nobody holds now; none where that cannot be asked."""
        jobs = [store.NamedJob(one.shard, one.job.tenant, one.job.id) for one in leases]
        try:
            async with self._database.hot(at=jobs[0].shard) as connection:
                return await store.unlocked(connection, jobs)
        except Exception as error:
            log.warning("who holds which row cannot be asked", error=repr(error))
            return set()

    async def _write_held(self, leases: Sequence[Lease], term: Term, tell: Tell) -> None:
        try:
            await self._follow(self._held_writer, leases, tell, OnLock.HALVE, term)
        finally:
            self._held.difference_update(leases)

    async def _follow(
        self,
        writer: RowWriter,
        leases: Sequence[Lease],
        tell: Tell,
        on_lock: OnLock,
        term: Term | None = None,
    ) -> list[RowsLocked]:
        """Tells which were written, and which found their job no longer free to run; None of those
        whose shard is another's. Answers what is locked.

        One that the store refuses for ever is not among them: its job is dead from now on.
        """
        rows = [*map(self._row, leases)]
        shards = [row.shard for row in rows]
        parts = writer.write_beside(self._write_rows, shards, rows, on_lock, term)
        decided, locked = set[int](), list[RowsLocked]()
        async for part in parts:
            if isinstance(part, RowRefused):
                decided.add(part.number)
                self._dispatcher.take_back(leases[part.number], lease_refusal(part.error))
                continue
            decided.update(part.places)
            if isinstance(part, RowsLocked):
                locked.append(part)
                continue
            self._watchers.notify(map(JobId, part.answer))
            for lease in part.of(leases):
                tell(lease, lease.job.id in part.answer)
        for place, lease in enumerate(leases):
            if place not in decided:
                tell(lease, None)
        return locked

    def _groups(self, leases: Sequence[Lease]) -> Iterable[Sequence[Lease]]:
        """What one statement may carry."""
        if self._together is None:
            return [leases]
        groups: dict[int | None, list[Lease]] = {}
        for lease in leases:
            groups.setdefault(self._together(lease.shard), []).append(lease)
        return groups.values()

    def _row(self, lease: Lease) -> store.LeaseRow:
        return store.LeaseRow(
            lease.shard,
            lease.job.tenant,
            lease.job.id,
            lease.epoch,
            lease.session.key,
            lease.token,
            self._store_clock.at_us(lease.granted_us),
        )

    async def _write_rows(
        self,
        connection: Connection,
        terms: Mapping[ShardId, Term],
        rows: Sequence[store.LeaseRow],
    ) -> set[str]:
        """Whose a session is stands in the store before any lease of it: should this server die,
        the next owner must know whose leases they are, and which key they end with."""
        found = map(self._dispatcher.session_of, {row.session for row in rows})
        holders = [session for session in found if session is not None]
        new = [one for one in holders if not one.is_noted]
        if new and await store.see_sessions(connection, terms, [one.row for one in new]):
            for session in new:
                session.noted()
        written = await store.write_leases(connection, terms, rows)
        if len(written) < len(rows) and (lost := await shard_terms.lost_of(connection, terms)):
            raise ShardsLost(lost)
        return written


def _shard_of(lease: Lease) -> ShardId:
    return lease.shard


def lazy_rest_us(oldest_us: int | None, now_us: int, lazy_us: int) -> int:
    """Until the next look: who is granted from now on is not due before a whole time is over.

    At most twice in that time, so nobody waits for more than one and a half of it. While there is
    nothing to look at, the first that comes wakes the loop.
    """
    if oldest_us is None:
        return IDLE_US
    return min(max(oldest_us + lazy_us - now_us, lazy_us // 2), lazy_us)
