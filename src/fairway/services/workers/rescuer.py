"""Rescues jobs from workers that fell silent, and writes down which workers were heard.

The database's clock decides how long a session has been silent; each pool says how long is too
long. A rescued job is granted again at once: the loss costs a delivery, never an attempt. A session
is one row, however many shards this server owns, and is written down a few times a lease, not with
every call: idle workers of the long pool cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fairway.core.ids import PoolId, ShardId, Term
from fairway.core.run.lease import may_judge_silence
from fairway.runtime.loops import WorkInParts
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.sessions.sessions import Lease, Session
from fairway.services.workers.lost_leases import lose_in_parts
from fairway.store import leases as store
from fairway.store.connections.database import DISCONNECTED, OWNER_SECONDS, Database

log = logger("rescuer")

NOTES_PER_LEASE = 6
ASK_SECONDS = 2.0  # of one node of several: another will do


class Rescuer:
    def __init__(self, database: Database, dispatcher: Dispatcher, settings: Settings) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._settings = settings
        self._noted_us: dict[str, int] = {}  # when each session was last written down
        # (shard, term) → since when its workers can be heard here
        self._since_us: dict[tuple[ShardId, Term | None], int] = {}

    def _lease_seconds(self, pool: PoolId) -> float:
        return self._settings.lease_seconds_of(self._dispatcher.pools.by_number[pool])

    @property
    def _shortest(self) -> float:
        pools = self._dispatcher.pools.by_name.values()
        return min(self._settings.lease_seconds_of(pool) for pool in pools)

    @property
    def rest_seconds(self) -> float:
        return min(1.0, self._shortest / 5)

    async def run_once(self, now_us: int) -> float:
        heard = [session for session in self._dispatcher.all_sessions() if self._is_news(session)]
        ways = self._terms()
        if ways and await self._look(ways, heard, now_us):
            self._noted_us.update((session.key, now_us) for session in heard)
        else:  # workers have no reason to speak to us: what we heard before says nothing later
            self._noted_us.clear()
            for session in self._dispatcher.all_sessions():
                session.noted(is_noted=False)
        await self._end_gone(now_us)
        self._noted_us = {
            key: noted
            for key, noted in self._noted_us.items()
            if self._dispatcher.session_of(key) is not None
        }
        return self.rest_seconds

    def _terms(self) -> list[dict[ShardId, Term]]:
        """By which the store knows us: any will do. On a distributed store a node may be away."""
        held = self._dispatcher.terms()
        groups = self._database.batches_of(held)
        groups.sort(key=lambda some: self._database.is_silent(some[0]))
        return [{one: held[one] for one in some} for some in groups]

    async def _ask(
        self, ways: Sequence[Mapping[ShardId, Term]], heard: Sequence[store.SessionRow]
    ) -> tuple[Mapping[ShardId, Term], dict[str, float]]:
        """Write down who was heard; answers who is silent, and the terms by which that is known."""
        seconds = OWNER_SECONDS if len(ways) == 1 else ASK_SECONDS
        for number, terms in enumerate(ways, 1):
            try:
                async with self._database.hot(seconds, next(iter(terms))) as connection:
                    if heard and not await store.see_sessions(connection, terms, heard):
                        continue  # those shards are another's by now
                    return terms, await store.silent_sessions(connection, terms, self._shortest)
            except Exception as error:
                if number == len(ways) or not isinstance(error, DISCONNECTED):
                    raise
        return {}, {}

    async def _look(
        self,
        ways: Sequence[Mapping[ShardId, Term]],
        heard: Sequence[Session],
        now_us: int,
    ) -> bool:
        """Write down who was heard, then give up who was not; False where we own nothing any more.

        A session that is not written down falls silent for nobody, so it must not count as noted.
        """
        known = [session for session in heard if session.is_known]  # of others: not whose they are
        terms, silent = await self._ask(ways, [session.row for session in heard])
        if not terms:
            return False
        for session in known:
            session.noted()
        restored = self._dispatcher.restored_shards()  # of others it is not known who holds what
        listened = {shard for shard in restored if self._has_listened(shard, now_us)}
        if silent and listened and (gone := await self._give_up_all(silent, listened, now_us)):
            async with self._database.hot(at=next(iter(terms))) as connection:
                await store.forget_sessions(connection, terms, gone)
            for back in filter(None, map(self._dispatcher.session_of, gone)):
                back.noted(is_noted=False)  # it came while that was written: its row may be gone
        return True

    def _has_listened(self, shard: ShardId, now_us: int) -> bool:
        """Whether its workers had time to speak to us since it came here."""
        of_term = (shard, self._dispatcher.term_of(shard))
        known = self._since_us.get(of_term)
        if known is None:
            self._since_us = {one: us for one, us in self._since_us.items() if one[0] != shard}
            self._since_us[of_term] = known = now_us
        return may_judge_silence((now_us - known) / 1e6, self._shortest)

    def _is_news(self, session: Session) -> bool:
        """Heard since it was written down last, and that was a good part of a lease ago."""
        noted_us = self._noted_us.get(session.key)
        if noted_us is None:
            return True
        return session.seen_us - noted_us >= self._patience(session) * 1e6 / NOTES_PER_LEASE

    async def _end_gone(self, now_us: int) -> None:
        """Who holds nothing and says nothing is gone, also where no row of ours tells of it.

        A server that owns nothing, or lost what it owned, knows sessions that others have ended.
        """
        longest = max(map(self._lease_seconds, self._dispatcher.pools.by_number))
        since_us = now_us - round(longest * 1e6)
        work = WorkInParts()
        try:
            for session in self._dispatcher.all_sessions():
                if not session.leases and session.poll is None and session.seen_us <= since_us:
                    self._dispatcher.drop_session(session)
                await work.let_others()
        finally:
            self._dispatcher.recount()

    async def _give_up_all(
        self, silent: Mapping[str, float], listened: Collection[ShardId], now_us: int
    ) -> list[str]:
        """Answers those of which nothing is left. Many may fall silent together: in parts."""
        work, gone = WorkInParts(), []
        try:
            for key, seconds in silent.items():
                if await self._give_up(key, seconds, listened, now_us):
                    gone.append(key)
                await work.let_others()
        finally:
            self._dispatcher.recount()
        is_back = self._dispatcher.session_of
        return [key for key in gone if is_back(key) is None]

    async def _give_up(
        self, key: str, silent_seconds: float, listened: Collection[ShardId], now_us: int
    ) -> bool:
        """Take away what a silent session held for too long; True when nothing is left of it."""
        session = self._dispatcher.session_of(key)
        if session is None:
            return True
        # One that spoke to this server was heard when it was heard; what is written lags a little.
        if session.is_claimed:
            silent_seconds = min(silent_seconds, (now_us - session.seen_us) / 1e6)
        if silent_seconds < self._shortest:
            return False
        lost = [
            lease
            for lease in session.leases.values()
            if lease.shard in listened and silent_seconds >= self._lease_seconds(lease.job.pool)
        ]
        if lost:
            await self._lose(session, lost)
        if not session.leases and silent_seconds >= self._patience(session):
            self._dispatcher.drop_session(session)
            return True
        return False

    def _patience(self, session: Session) -> float:
        """How long an idle session may be silent: it calls as often as its pools ask for."""
        return min(map(self._lease_seconds, session.slots), default=self._shortest)

    async def _lose(self, session: Session, silent: list[Lease]) -> None:
        log.warning("worker silent", worker=session.worker, jobs=len(silent))
        seen_us = session.seen_us

        def is_silent() -> bool:
            return session.seen_us == seen_us

        lost = await lose_in_parts(self._dispatcher, silent, is_still_so=is_silent)
        for lease in lost:
            session.revoke(lease.job.id, lease.epoch)  # should it be heard of again
