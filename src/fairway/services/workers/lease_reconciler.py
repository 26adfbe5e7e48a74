"""Brings a worker and this server to one truth: what the one runs, what the other thinks it runs.

What the memory knows needs no statement. What it does not know is read from the store, a slice at a
time and in turn with other workers (`services/backpressure/connection_turns.py`), and judged by the
job's row: a lease that stands is put into force again, one that is over is revoked. Leases of
shards that this server does not own are not its to judge.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import TypeVar

from fairway.core.ids import ShardId, Term
from fairway.core.job import NO_PAYLOAD
from fairway.core.run.lease import LeaseStanding, standing_of
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.services.backpressure.connection_turns import HotTurns
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.run_ends import UNNAMED
from fairway.services.sessions.sessions import Holding, Lease, Session
from fairway.services.workers.lost_leases import lose_in_parts
from fairway.store import leases as store
from fairway.store.connections.database import Connection
from fairway.store.leases import NamedJob

log = logger("reconciler")

NOTE_SECONDS = 0.5
READ_SLICE = 200  # rows of a statement
PAYLOAD_SLICE = 50  # a few megabytes at most: payloads in rows are small

Item = TypeVar("Item")


class LeaseReconciler:
    def __init__(self, turns: HotTurns, dispatcher: Dispatcher) -> None:
        self._turns = turns
        self._dispatcher = dispatcher
        self._unnoted: dict[Session, None] = {}  # wait to be written down, the longest first

    async def greeted(self, session: Session, holdings: Sequence[Holding]) -> None:
        """A hello names every lease that its worker holds, or has reported and not heard of."""
        await self._note(session)
        await self.adopt(session, self.unknown(session, holdings, is_hello=True))
        named = {(one.job, one.epoch) for one in holdings}
        missing = [
            lease
            for lease in session.leases.values()
            if lease.delivered and (lease.job.id, lease.epoch) not in named
        ]
        session.cancel_again()
        await self._send_again(session, missing)

    async def _note(self, session: Session) -> None:
        """Write down that it is there before it is given anything: should this server die a moment
        later, the next owner waits for it to say what it runs. Where that cannot be had soon, each
        lease is written before its worker hears of it."""
        owned = next(iter(self._dispatcher.terms().items()), None)
        if session.is_noted or owned is None:
            return
        self._unnoted[session] = None
        try:
            async with (
                asyncio.timeout(NOTE_SECONDS),
                self._turn_of(session, owned[0]) as connection,
            ):
                if not session.is_noted:  # else by another's turn
                    await self._note_all(connection, owned, session)
        except Exception as error:
            log.info("session is not written down yet", worker=session.worker, error=repr(error))
        finally:
            self._unnoted.pop(session, None)

    async def _note_all(
        self, connection: Connection, owned: tuple[ShardId, Term], session: Session
    ) -> None:
        """This one and those that wait behind it: all workers say hello at once to an owner that is
        new, and what each of them runs must be asked within the second that is waited for them."""
        self._unnoted.pop(session, None)
        together = [session, *islice(self._unnoted, READ_SLICE - 1)]
        for one in together:
            self._unnoted.pop(one, None)  # should this fail, each has its own turn
        if await store.see_sessions(connection, dict([owned]), [one.row for one in together]):
            for one in together:
                one.noted()

    async def agree(
        self, session: Session, holdings: Collection[Holding], unknown: Sequence[Holding]
    ) -> None:
        """A list of all that a worker runs: what it was sent and never names is lost."""
        named = {(one.job, one.epoch) for one in holdings}
        unnamed = self._dispatcher.unnamed(session, named)
        if unnamed:
            log.warning("worker names leases no more", worker=session.worker, jobs=len(unnamed))
            lost = await lose_in_parts(self._dispatcher, unnamed, UNNAMED)
            for lease in lost:
                session.revoke(lease.job.id, lease.epoch)
        await self.adopt(session, unknown)

    def note_ended(self, session: Session, holdings: Sequence[Holding]) -> None:
        """Runs whose reports wait at their worker: they are over, whatever the clock says."""
        for holding in holdings:
            if holding.ended:
                job, epoch, token = holding.job, holding.epoch, holding.token
                lease = self._dispatcher.lease_of(session, job, epoch, token)
                if lease is not None:
                    self._dispatcher.reported(lease)

    async def rows(self, session: Session, wanted: Sequence[NamedJob]) -> dict[str, store.HeldJob]:
        """What the store knows of these, read in slices."""
        found: dict[str, store.HeldJob] = {}
        for part in self._parts(wanted, READ_SLICE, lambda one: one.shard):
            async with self._turn_of(session, part[0].shard) as connection:
                found |= await store.read_held(connection, part)
        return found

    def _turn_of(self, session: Session, shard: ShardId) -> AbstractAsyncContextManager[Connection]:
        """A connection for one slice: whatever a worker names, others come in between."""
        return self._turns.leases(session.tenant, session.key, shard)

    def _parts(
        self, items: Iterable[Item], size: int, shard_of: Callable[[Item], ShardId]
    ) -> Iterator[Sequence[Item]]:
        """Slices for a statement each: a worker may hold leases of very many shards."""
        groups: dict[int | None, list[Item]] = defaultdict(list)
        for item in items:
            groups[self._turns.together(shard_of(item))].append(item)
        for group in groups.values():
            for start in range(0, len(group), size):
                yield group[start : start + size]

    # -- leases that are not in memory -------------------------------------------------------

    def unknown(
        self, session: Session, holdings: Iterable[Holding], *, is_hello: bool = False
    ) -> list[Holding]:
        """Those that only the store can tell of; what is another's by now is revoked at once.

        A newer lease of the same job may be on its way to the worker while it makes its list:
        after a hello it is sent again, else it must not be taken for the old one.
        """
        asked = []
        for holding in holdings:
            lease = self._dispatcher.lease_on(holding.job)
            if lease is None:
                if self._dispatcher.letting_go().may_judge(holding.tenant, holding.job):
                    asked.append(holding)
            elif lease.session is not session or (is_hello and lease.epoch != holding.epoch):
                session.revoke(holding.job, holding.epoch)
        return asked

    async def adopt(self, session: Session, holdings: Sequence[Holding]) -> None:
        """Put into force what stands; the worker is told of the rest."""
        homes = self._dispatcher.homes()
        asked = [
            (NamedJob(homes.of_job(one.tenant, one.job), one.tenant, one.job), one)
            for one in holdings
        ]
        for part in self._parts(asked, READ_SLICE, lambda pair: pair[0].shard):
            wanted = [where for where, _ in part]
            async with self._turn_of(session, wanted[0].shard) as connection:
                rows = await store.read_held(connection, wanted)
            for _, holding in part:
                self._judge(session, holding, rows.get(holding.job))
            await pause(0)

    def _judge(self, session: Session, holding: Holding, row: store.HeldJob | None) -> None:
        dispatcher = self._dispatcher
        if not dispatcher.has(session):
            return  # given up while we asked: a lease that it got now would be nobody's for ever
        is_ours = dispatcher.letting_go().may_judge(holding.tenant, holding.job)
        if holding.job in session.leases or not is_ours:
            return  # it changed while we asked
        term = dispatcher.term_of(dispatcher.homes().of_job(holding.tenant, holding.job))
        stored = row.stored if row is not None else None
        standing = standing_of(stored, holding.epoch, holding.token, term)
        is_another = dispatcher.lease_on(holding.job) is not None
        if row is None or is_another or not session.may_run(row.job.tenant):
            session.revoke(holding.job, holding.epoch)
        elif standing is LeaseStanding.WRITTEN:
            dispatcher.restore_written(session, row.job, holding.token, row.running_seconds)
        elif standing is LeaseStanding.OVER or not dispatcher.adopt(session, row.job, holding):
            session.revoke(holding.job, holding.epoch)

    # -- leases that never came ----------------------------------------------------------------

    async def _send_again(self, session: Session, missing: list[Lease]) -> None:
        """The replies that carried these were lost, so nobody has begun them."""
        bare: list[Lease] = []
        for lease in missing:
            if lease.job.payload == NO_PAYLOAD:
                bare.append(lease)
            else:
                session.send_again(lease)
        for part in self._parts(bare, PAYLOAD_SLICE, lambda lease: lease.shard):
            wanted = [NamedJob(one.shard, one.job.tenant, one.job.id) for one in part]
            async with self._turn_of(session, wanted[0].shard) as connection:
                rows = await store.read_held(connection, wanted, with_payloads=True)
            for lease in part:
                self._send_whole(lease, rows.get(lease.job.id))

    def _send_whole(self, lease: Lease, row: store.HeldJob | None) -> None:
        term = self._dispatcher.term_of(lease.shard)
        if term is None or not self._dispatcher.stands(lease):
            return
        stored = row.stored if row is not None else None
        granter = term if lease.written else None  # one that was never written is of this owner
        if (
            row is None
            or standing_of(stored, lease.epoch, lease.token, granter) is LeaseStanding.OVER
        ):
            self._dispatcher.not_written(lease)
        else:
            self._dispatcher.send_whole(lease, row.job.payload)
