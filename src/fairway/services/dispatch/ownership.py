"""Ownership of shards: one owner at a time, each under a term that only grows.

A server renews its terms several times before they run out. It trusts a term only until the
moment it asked plus the term's length, by its own monotonic clock: a server that was stopped and
resumed finds its trust gone and grants nothing, and whatever it still writes meets another term in
the same statement. A new owner first lets workers say what they run, then grants; unless the last
one stopped cleanly, having written down all that they run.

    claim ──▶ read written leases ──▶ wait for workers' hellos ──▶ open ──▶ renew … ──▶ lost

A server that is not to own shards takes none, unless nobody has owned one for long: then it stands
in (degraded mode, `pulls.py`), under a term of its own, and gives way to the first owner.

Servers tell each other when a shard is taken or let go; one that does not hear it looks anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from datetime import datetime
from typing import Any, NamedTuple

from fairway.core.backlog.pulls import UnownedShards
from fairway.core.ids import LOWEST_JOB_ID, ShardId, Term
from fairway.core.overlong_terms import OVERLONG_TERMS, PATIENCE_TERMS, OverlongTerms
from fairway.core.pools import SHORT
from fairway.runtime.clock import Clock
from fairway.runtime.loops import pause
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.store_clock import StoreClock
from fairway.store import backlog as backlog_store
from fairway.store import leadership as store
from fairway.store import leases as lease_store
from fairway.store import outbox as outbox_store
from fairway.store.connections.connection_cache import Deadline
from fairway.store.connections.database import Connection, Database
from fairway.store.leadership import Claim, Owner

log = logger("ownership")

PATIENCE_SECONDS = 3.0  # for all statements of a round, on the leader's own connection
RUNNING_PAGE = 500  # leases of a statement
STREAMS_PAGE = 1000
LOST = "shard lost to another owner"
COUNT_PAUSE_SECONDS = 60.0  # a count that takes too long for the store is no haste
STAND_IN_SECONDS = 60.0  # heard so long before that: whoever is there still has tried since
LOOKS_APART_SECONDS = 10.0  # they say nothing of the time between
STAND_IN_ADOPTIONS = 5  # workers that found nobody for long come back less soon
TRUST_PART = 0.9  # of a term; the rest covers clock drift and the last statement


class OwnershipPorts(NamedTuple):
    """What a take-over needs done by others, and whom news of other owners wakes."""

    before_open: Callable[[ShardId], Awaitable[None]]  # a shard
    on_revoked: Callable[[Collection[str]], Awaitable[None]]  # keys
    on_news: Callable[[], None]
    on_committed: Callable[[], None]  # a tenant's own transaction, with jobs in it


class Ownership:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        store_clock: StoreClock,
        settings: Settings,
        ports: OwnershipPorts,
        *,
        clock: Clock,
        server_name: str,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._store_clock = store_clock
        self._settings = settings
        self._clock = clock
        self.server_name = server_name
        self._connection: Connection | None = None
        self._takeovers: set[asyncio.Task[None]] = set()
        self._speaking = asyncio.Lock()  # with the store about terms: one thing at a time
        self._handed_over: set[ShardId] = set()  # shards that came to us with all of it on disk
        self._letting_go: dict[ShardId, Term] = {}  # shard → term
        self._written: set[ShardId] = set()  # of those, whole on disk
        self.owners: dict[ShardId, Owner] = {}
        self._overlong_terms = OverlongTerms()
        self._unowned = UnownedShards()
        self.is_resigned = False
        self._away_since_us: int | None = None  # the store, as far as everybody else here knows
        self._ports = ports

    @property
    def has_peers(self) -> bool:
        """Whether another server owns something: then hints can be lost between us."""
        return any(owner.owner != self.server_name for owner in self.owners.values())

    def owner_url(self, shard: ShardId | None = None) -> str | None:
        """Where another owner (of this shard, or of any) is reached; None when there is none."""
        for owner in self.owners.values():
            if owner.owner != self.server_name and shard in (None, owner.shard):
                return owner.owner_url
        return None

    async def run_once(self, now_us: int) -> float:
        """Renew what is ours, take what is free; several times a term."""
        if self._is_cut_off(now_us):
            return self._settings.term_seconds / 5
        patience_seconds = max(self._settings.term_seconds, PATIENCE_SECONDS)
        async with self._speaking, Deadline(await self._line(), patience_seconds) as connection:
            asked_us = self._clock.now_us()
            await self._renew(connection, asked_us)
            take = self._claim if self._settings.owns_shards else self._stand_in
            await take(connection)
            self._store_clock.was_read(await store.database_now(connection), self._clock.now_us())
            self.owners = await store.read_owners(connection)
        return self._settings.term_seconds / 5

    def stop_granting(self) -> None:
        """About to stop: nothing more is granted or taken; terms hold until they are let go."""
        self.is_resigned = True
        self._dispatcher.trust_until(0)

    async def resign(self) -> None:
        """Let go at once: a clean stop need not make others wait for the term to end.

        What comes from now on is passed on. Safe to call twice; then what failed is tried again.
        """
        self.stop_granting()
        async with self._speaking:  # no renewal or claim of ours is under way
            self._letting_go |= self._dispatcher.terms()
            self._written |= self._dispatcher.whole_on_disk(self._handed_over)
            for shard in list(self._dispatcher.terms()):
                self._dispatcher.close_shard(shard)  # in one step with the look at what is written
            if self._letting_go:
                async with self._database.background() as connection:
                    await store.release_shards(connection, self._letting_go, written=self._written)
                self._letting_go.clear()

    async def close(self) -> None:
        for task in self._takeovers:
            task.cancel()
        if self._connection is not None:
            await self._connection.close()

    def _is_cut_off(self, now_us: int) -> bool:
        """Whether the store is away for all but the leader's connection, for longer than a term.

        Then everything is refused here, and somebody else may do better. Nothing is given up: a
        term that nobody took is renewed when the store is back.
        """
        if not self._database.is_away:
            self._away_since_us = None
            return False
        if self._away_since_us is None:
            self._away_since_us = now_us
        return now_us - self._away_since_us > self._settings.term_seconds * 1e6

    async def _line(self) -> Connection:
        """A connection of our own, on which others tell us when a shard is taken or let go.

        Tenants' transactions with jobs in them are heard of here, too.
        """
        if self._connection is None or self._connection.is_closed():
            connection = await self._database.dedicated()
            async with Deadline(connection, PATIENCE_SECONDS):
                await connection.add_listener(store.CHANNEL, self._hear_news)
                await connection.add_listener(outbox_store.CHANNEL, self._hear_commit)
            self._connection = connection
        return self._connection

    def _hear_news(self, *notice: object) -> None:
        self._ports.on_news()

    def _hear_commit(self, *notice: object) -> None:
        self._ports.on_committed()

    async def _renew(self, connection: Connection, asked_us: int) -> None:
        held = dict(self._dispatcher.terms())
        term_seconds = self._settings.term_seconds
        renewed = await store.renew_shards(connection, held, term_seconds) if held else {}
        for shard in held.keys() - renewed.keys():
            is_over = not self._settings.owns_shards
            event = "an owner is back, degraded mode is over" if is_over else LOST
            log.warning(event, shard=shard, term=held[shard])
            self._dispatcher.close_shard(shard)
        if not self.is_resigned:
            self._dispatcher.trust_until(asked_us + round(term_seconds * TRUST_PART * 1e6))

    async def _claim(self, connection: Connection) -> None:
        if self.is_resigned:
            return
        unrenewed = await self._unrenewed(connection)
        taken = await store.claim_shards(
            connection,
            self.server_name,
            self._settings.url,
            self._settings.term_seconds,
            held=self._dispatcher.terms().keys(),  # renewed a moment ago, however late
            unrenewed=unrenewed,
        )
        for shard in taken.keys() & unrenewed.keys():
            log.warning(
                "shard taken before its term's end: the database's clock went back",
                shard=shard,
                end=unrenewed[shard].isoformat(),
            )
        for shard, claim in taken.items():
            (self._handed_over.add if claim.was_handed_over else self._handed_over.discard)(shard)
            self._begin(shard, claim.term, self._take_over(shard, claim))

    async def _stand_in(self, connection: Connection) -> None:
        """For shards that nobody has owned for long, on a server that is not to own any."""
        if self.is_resigned:
            return
        settings, name = self._settings, self.server_name
        unowned = await store.unowned_shards(connection)
        patience_us = round(settings.degraded_after_seconds * 1e6)
        apart_us = round(max(2 * settings.term_seconds, LOOKS_APART_SECONDS) * 1e6)
        due = self._unowned.look(unowned, self._clock.now_us(), patience_us, apart_us)
        if wanted := due - self._dispatcher.terms().keys():
            try:
                taken = await store.stand_in(
                    connection, name, settings.url, settings.term_seconds, wanted
                )
            except Exception:
                self._unowned.forget()
                raise
            for shard, term in taken.items():
                log.error(
                    "degraded mode: no owner for long, workers are given jobs from the store",
                    shard=shard,
                    after_seconds=settings.degraded_after_seconds,
                )
                self._handed_over.discard(shard)
                self._begin(shard, term, self._take_over_for_pulls(shard, term))

    def _begin(self, shard: ShardId, term: Term, take_over: Coroutine[Any, Any, None]) -> None:
        self._dispatcher.claim_shard(shard, term)
        task = asyncio.create_task(take_over, name=f"takeover:{shard}")
        self._takeovers.add(task)
        task.add_done_callback(self._took_over)

    async def _unrenewed(self, connection: Connection) -> dict[ShardId, datetime]:
        """Shards of owners that died while the database's clock was ahead."""
        term_seconds, asked_us = self._settings.term_seconds, self._clock.now_us()
        far = await store.overlong_terms(connection, OVERLONG_TERMS * term_seconds)
        patience_us = round(PATIENCE_TERMS * term_seconds * 1e6)
        return self._overlong_terms.look(far, asked_us, self._clock.now_us(), patience_us)

    def _took_over(self, task: asyncio.Task[None]) -> None:
        self._takeovers.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("take-over failed", error=repr(error))

    # -- taking over -------------------------------------------------------------------------

    async def _take_over(self, shard: ShardId, claim: Claim) -> None:
        """Each step is tried until it succeeds; what later ones meet does not undo it."""
        term = claim.term
        listen = () if claim.was_handed_over else (self._hear_from_workers,)
        for step in (self._restore, *listen, self._open, self._discover):
            if not await self._is_done(step, shard, term):
                return
        log.info("shard owned", shard=shard, term=term)
        await self._is_done(self._count, shard, term, COUNT_PAUSE_SECONDS)

    async def _take_over_for_pulls(self, shard: ShardId, term: Term) -> None:
        """As `_take_over`, in degraded mode: nothing is read into windows."""
        for step in (self._restore, self._hear_from_all, self._open_for_pulls):
            if not await self._is_done(step, shard, term):
                return

    async def _is_done(
        self,
        step: Callable[[ShardId], Awaitable[None]],
        shard: ShardId,
        term: Term,
        pause_seconds: float = 0.2,
    ) -> bool:
        """Do a step of the take-over; False when the shard went to another owner meanwhile."""
        while self._dispatcher.term_of(shard) == term:
            try:
                await step(shard)
                return self._dispatcher.term_of(shard) == term
            except Exception as error:
                log.warning(
                    "take-over tries again", shard=shard, step=step.__name__, error=repr(error)
                )
                await pause(pause_seconds)
        return False

    async def _restore(self, shard: ShardId) -> None:
        """Leases that were written stand until their worker is silent for too long.

        Those of keys that were revoked before this server knew of them end at once.
        """
        term, after = self._dispatcher.term_of(shard), str(LOWEST_JOB_ID)
        revoked: set[str] = set()
        while True:
            async with self._database.hot() as connection:
                page = await lease_store.read_running(connection, shard, after, RUNNING_PAGE)
                keys = {found.session for found in page}
                origins = await lease_store.whose_sessions(connection, shard, keys)
            if self._dispatcher.term_of(shard) != term:
                return
            revoked |= {origin.opener for origin in origins.values() if origin.is_revoked}
            for found in page:
                if self._dispatcher.lease_on(found.job.id) is None:
                    origin = origins.get(found.session)
                    session = self._dispatcher.found_session(found.session, origin)
                    self._dispatcher.restore_written(
                        session, found.job, found.token, found.running_seconds
                    )
            if len(page) < RUNNING_PAGE:
                break
            after = page[-1].job.id
            await pause(0)
        if revoked:
            await self._ports.on_revoked(revoked)
        self._dispatcher.leases_restored(shard)

    async def _hear_from_workers(self, shard: ShardId) -> None:
        async with self._database.hot() as connection:
            silence = self._settings.lease_seconds_of(SHORT)
            live = await lease_store.live_sessions(connection, shard, silence)
        await self._hear_from(live, self._settings.adoption_seconds)

    async def _hear_from_all(self, shard: ShardId) -> None:
        """As above, after a long time in which nobody heard workers, and none wrote them off."""
        settings = self._settings
        silence = settings.degraded_after_seconds + STAND_IN_SECONDS
        async with self._database.hot() as connection:
            live = await lease_store.live_sessions(connection, shard, silence)
        await self._hear_from(live, STAND_IN_ADOPTIONS * settings.adoption_seconds)

    async def _open(self, shard: ShardId) -> None:
        term = self._dispatcher.term_of(shard)
        await self._ports.before_open(shard)
        if term is not None and self._dispatcher.term_of(shard) == term:
            self._dispatcher.open_shard(shard)  # else lost meanwhile, and perhaps claimed anew

    async def _open_for_pulls(self, shard: ShardId) -> None:
        term = self._dispatcher.term_of(shard)
        await self._ports.before_open(shard)
        if term is not None and self._dispatcher.term_of(shard) == term:
            self._dispatcher.open_for_pulls(shard)

    async def _discover(self, shard: ShardId) -> None:
        """Find every stream with work. The shard is open: what arrives meanwhile is seen."""
        term = self._dispatcher.term_of(shard)
        walk = backlog_store.StreamWalk(shard, STREAMS_PAGE)
        while not walk.is_over:
            async with self._database.hot() as connection:
                heads = await walk.next_page(connection)
            if self._dispatcher.term_of(shard) != term:
                return  # what another owns is not ours to offer
            self._dispatcher.windows().noticed(heads)
            await pause(0)

    async def _count(self, shard: ShardId) -> None:
        """How deep the backlog is. Until it is known, limits of depth count what has come since."""
        term = self._dispatcher.term_of(shard)
        async with self._database.background() as connection:
            depths = await backlog_store.count_queued(connection, shard)
        if self._dispatcher.term_of(shard) == term:
            self._dispatcher.windows().counted(depths)

    async def _hear_from(self, live: set[str], seconds: float) -> None:
        """Wait for workers that were alive a moment ago; they hold leases nobody wrote."""
        deadline_us = self._clock.now_us() + round(seconds * 1e6)
        while self._clock.now_us() < deadline_us and not self._all_greeted(live):
            await pause(0.02)

    def _all_greeted(self, live: set[str]) -> bool:
        found = map(self._dispatcher.session_of, live)
        return all(session is not None and session.greeted for session in found)
