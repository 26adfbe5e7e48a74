"""Writes leases down: at once where the worker must not hear of one before that, lazily elsewhere.

Most short jobs end before the lazy write looks; they cost two row writes, not three. On a
distributed store each part has its own writes: one on a node that is away holds up no other's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence

from fairway.core.ids import JobId, ShardId, Term
from fairway.runtime.telemetry import Instruments
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.group_commit import GroupCommit, Lingering, ShardCommits, together_of
from fairway.services.jobs.watchers import Watchers
from fairway.services.recording.refused_outcomes import lease_refusal
from fairway.services.recording.row_writer import RowRefused, RowWriter
from fairway.services.sessions.sessions import Lease
from fairway.services.store_clock import StoreClock
from fairway.store import leases as store
from fairway.store.connections import shard_terms
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.shard_terms import ShardsLost

LEASE_WRITES_MAX = 2
IDLE_US = 10_000_000


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
        self._writer = RowWriter(database, dispatcher.terms())

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
        async for lease, is_written in self._write(leases):
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
        it on its way to disk just then, its job would run there for nobody.
        """
        await self._at_once.settle(shards)
        async with self._taking:
            await self._lazily.settle(shards)
            if unwritten := self._dispatcher.letting_go().unwritten(shards):
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
        async for lease, is_written in self._write([*fresh.values()]):
            if is_written is not None:
                self._dispatcher.written_late(lease, is_written=is_written)

    # -- rows ----------------------------------------------------------------------------------

    async def _write(self, leases: Sequence[Lease]) -> AsyncIterator[tuple[Lease, bool | None]]:
        """Which were written, and which found their job no longer free to run; None of those whose
        shard is another's. Each as soon as it is known: one may stand at a row for long.

        One that the store refuses for ever is not among them: its job is dead from now on.
        """
        for group in self._groups(leases):
            shards, rows = [*map(_shard_of, group)], [*map(self._row, group)]
            decided: set[int] = set()
            apart = [place for place, lease in enumerate(group) if lease.home is not None]
            parts = self._writer.write(self._write_rows, shards, rows, patient=True, apart=apart)
            async for part in parts:
                if isinstance(part, RowRefused):
                    decided.add(part.number)
                    self._dispatcher.take_back(group[part.number], lease_refusal(part.error))
                    continue
                decided.update(part.places)
                self._watchers.notify(map(JobId, part.answer))
                for lease in part.of(group):
                    yield lease, lease.job.id in part.answer
            for place, lease in enumerate(group):
                if place not in decided:
                    yield lease, None

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
