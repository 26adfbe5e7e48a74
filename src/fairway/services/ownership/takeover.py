"""Taking a shard over: from the claim to the first grant, step by step.

Each step is tried until it succeeds or the shard is another's. Written leases stand; workers that
were alive a moment ago say what they run, unless the last owner wrote all of that down; then the
shard is open, and its streams are found in the store. Claims nothing and renews nothing: that is
`ownership.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

from fairway.core.ids import LOWEST_JOB_ID, ShardId, Term
from fairway.core.ownership.shard_sight import told
from fairway.core.pools import SHORT
from fairway.runtime.clock import Clock
from fairway.runtime.loops import pause
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.ownership.move_times import DISCOVERED, OPENED, RESTORED, MoveTimes
from fairway.services.ownership.opening_group import OpeningGroup
from fairway.services.ownership.rate_hand_over import RateHandOver
from fairway.services.sessions.sessions import Session
from fairway.store import backlog as backlog_store
from fairway.store import leases as lease_store
from fairway.store.connections.database import Database
from fairway.store.leadership import Claim

log = logger("ownership")

RUNNING_PAGE = 500  # leases of a statement
STREAMS_PAGE = 1000
COUNT_PAUSE_SECONDS = 60.0  # a count that takes too long for the store is no haste
STAND_IN_SECONDS = 60.0  # heard so long before that: whoever is there still has tried since
HOPELESS_US = 30_000_000  # a step that fails for so long may succeed at another server
TELL_SECONDS = 2.0  # for others that are opened meanwhile
TELL_AGAIN_US = 10_000_000
NAMING_SECONDS = 2.0  # for replies of the last owner that are under way
STAND_IN_ADOPTIONS = 5  # workers that found nobody for long come back less soon


class TakeOverPorts(NamedTuple):
    """What it needs done by others, and whom it tells that a shard is open."""

    before_open: Callable[[Collection[ShardId]], Awaitable[None]]
    on_revoked: Callable[[Collection[str]], Awaitable[None]]  # keys
    on_news: Callable[[], None]


class TakeOver:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        settings: Settings,
        ports: TakeOverPorts,
        moves: MoveTimes,
        rates: RateHandOver,
        *,
        clock: Clock,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._settings = settings
        self._ports = ports
        self._moves = moves
        self._rates = rates
        self._opening = OpeningGroup(self._before_open)
        self._clock = clock
        self._opened: list[ShardId] = []  # of which no line tells yet
        self._last_owners: dict[ShardId, str] = {}  # of shards that are taken over
        self._early: set[ShardId] = set()  # of these, whose owners' terms would still last
        self._failing_us: dict[ShardId, int] = {}  # since when a step fails, try after try
        self._told_us: dict[str, int] = {}  # step → when a line said last that it fails
        self._counting = asyncio.Lock()  # shards that come together are opened before they count

    def hopeless(self) -> set[ShardId]:
        """Shards that cannot be opened here, for whatever reason, and perhaps can elsewhere."""
        since_us = self._clock.now_us() - HOPELESS_US
        failing = {one for one, us in self._failing_us.items() if us <= since_us}
        return (failing & self._dispatcher.terms().keys()) - set(self._dispatcher.open_shards())

    async def run(self, shard: ShardId, claim: Claim) -> None:
        """Each step is tried until it succeeds; what later ones meet does not undo it."""
        term = claim.term
        self._last_owners[shard] = claim.last_owner
        self._take_early(shard, is_early=claim.is_early)
        listen = () if claim.was_handed_over else (self._hear_from_workers,)
        with self._dispatcher.windows().counting():
            for step in (self._restore, *listen, self._open, self._discover):
                if not await self._is_done(step, shard, term):
                    return
            self._tell_soon(shard)
            if claim.was_handed_over:
                self._ask_for_names_later(shard)
            await self._is_done(self._count, shard, term, COUNT_PAUSE_SECONDS)

    def _take_early(self, shard: ShardId, *, is_early: bool) -> None:
        """Workers have as long to come as if the dead owner's term had been waited for."""
        (self._early.add if is_early else self._early.discard)(shard)

    async def run_for_pulls(self, shard: ShardId, term: Term) -> None:
        """As `run`, in degraded mode: nothing is read into windows."""
        self._last_owners.pop(shard, None)  # long gone
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
        self._failing_us.pop(shard, None)
        while self._dispatcher.term_of(shard) == term:
            try:
                await step(shard)
                return self._dispatcher.term_of(shard) == term
            except Exception as error:
                self._tell_failure(step.__name__, shard, error)
                if self._dispatcher.term_of(shard) == term:
                    self._failing_us.setdefault(shard, self._clock.now_us())
                    self._dispatcher.leases_delayed(shard)
                await pause(pause_seconds)
        return False

    def _ask_for_names_later(self, shard: ShardId) -> None:
        """Of a shard that was handed over: its leases are on disk, and the last owner may have gone
        before a reply took one of them out. A worker that was here before need not say a hello for
        that shard, so it is asked for one; once a reply that is under way has come, or never will.
        """
        asked = {
            lease.session: lease.session.hellos
            for lease in self._dispatcher.all_leases()
            if lease.shard == shard and lease.session.greeted and not lease.sent_us
        }
        if asked:
            asyncio.get_running_loop().call_later(NAMING_SECONDS, self._ask_for_names, asked)

    def _ask_for_names(self, asked: Mapping[Session, int]) -> None:
        for session, hellos in asked.items():
            if session.hellos == hellos and self._dispatcher.has(session):
                session.doubt()

    def _tell_soon(self, shard: ShardId) -> None:
        """In one line for all that are opened at about the same time: there may be many."""
        if not self._opened:
            asyncio.get_running_loop().call_later(TELL_SECONDS, self._tell_opened)
        self._opened.append(shard)

    def _tell_opened(self) -> None:
        shards, self._opened = sorted(self._opened), []
        took_ms = [self._moves.last_move_ms(shard) for shard in shards]
        slowest = max(took_ms, key=lambda steps: sum(steps.values()))
        log.info("shards owned", **told(shards), slowest_ms=slowest)

    def _tell_failure(self, step: str, shard: ShardId, error: Exception) -> None:
        """What keeps one shard from being opened most often keeps all of them."""
        now_us, told_us = self._clock.now_us(), self._told_us.get(step)
        is_news = told_us is None or now_us - told_us >= TELL_AGAIN_US
        if is_news:
            self._told_us[step] = now_us
        say = log.warning if is_news else log.debug
        say("take-over tries again", shard=shard, step=step, error=repr(error))

    async def _restore(self, shard: ShardId) -> None:
        """Leases that were written stand until their worker is silent for too long.

        Those of keys that were revoked before this server knew of them end at once.
        """
        term, after = self._dispatcher.term_of(shard), str(LOWEST_JOB_ID)
        revoked: set[str] = set()
        while True:
            async with self._database.hot(at=shard) as connection:
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
        self._moves.note(RESTORED, (shard,))

    async def _hear_from_workers(self, shard: ShardId) -> None:
        """Of a pool whose leases last long it is written as seldom that its workers were heard."""
        pools = self._dispatcher.pools.by_name.values()
        lazy = [SHORT, *(pool for pool in pools if pool.lease_mode == "lazy")]
        silence = max(map(self._settings.lease_seconds_of, lazy))
        async with self._database.hot(at=shard) as connection:
            last = self._last_owners.get(shard, "")
            live = await lease_store.live_sessions(connection, shard, last, silence)
        live_here = self._here(live, shard)
        early_seconds = self._settings.term_seconds if shard in self._early else 0.0
        await self._hear_from(live_here, self._settings.adoption_seconds + early_seconds)

    async def _hear_from_all(self, shard: ShardId) -> None:
        """As above, after a long time in which nobody heard workers, and none wrote them off."""
        settings = self._settings
        silence = settings.degraded_after_seconds + STAND_IN_SECONDS
        async with self._database.hot(at=shard) as connection:
            live = await lease_store.live_sessions(connection, shard, "", silence)
        live_here = self._here(live, shard)
        await self._hear_from(live_here, STAND_IN_ADOPTIONS * settings.adoption_seconds)

    def _here(self, live: Collection[lease_store.LiveSession], shard: ShardId) -> set[str]:
        """Those that may hold leases of this shard. A tenant's own workers hold none of another's,
        so one of them that says nothing keeps nobody else's jobs waiting."""
        home_of = self._dispatcher.homes().of
        return {one.session for one in live if one.tenant is None or home_of(one.tenant) == shard}

    async def _before_open(self, shards: Collection[ShardId]) -> None:
        await self._ports.before_open(shards)
        await self._rates.take_over(shards)

    async def _open(self, shard: ShardId) -> None:
        term = self._dispatcher.term_of(shard)
        await self._opening.ready(shard)
        if term is not None and self._dispatcher.term_of(shard) == term:
            self._dispatcher.open_shard(shard)  # else lost meanwhile, and perhaps claimed anew
            self._moves.note(OPENED, (shard,))
            self._ports.on_news()  # the next renewal tells others that it is open

    async def _open_for_pulls(self, shard: ShardId) -> None:
        term = self._dispatcher.term_of(shard)
        await self._opening.ready(shard)
        if term is not None and self._dispatcher.term_of(shard) == term:
            self._dispatcher.open_for_pulls(shard)

    async def _discover(self, shard: ShardId) -> None:
        """Find every stream with work. The shard is open: what arrives meanwhile is seen."""
        term = self._dispatcher.term_of(shard)
        walk = backlog_store.StreamWalk(shard, STREAMS_PAGE)
        while not walk.is_over:
            async with self._database.hot(at=shard) as connection:
                heads = await walk.next_page(connection)
            if self._dispatcher.term_of(shard) != term:
                return  # what another owns is not ours to offer
            self._dispatcher.windows().noticed(heads, shard)
            await pause(0)
        self._moves.note(DISCOVERED, (shard,))

    async def _count(self, shard: ShardId) -> None:
        """How deep the backlog is. Until it is known, limits of depth count what has come since."""
        term = self._dispatcher.term_of(shard)
        windows = self._dispatcher.windows()
        async with self._counting, self._database.background() as connection:
            shown_as_queued = windows.shown_as_queued()
            depths = await backlog_store.count_queued(connection, shard)
        if self._dispatcher.term_of(shard) == term:
            windows.counted(depths, shown_as_queued)

    async def _hear_from(self, live: set[str], seconds: float) -> None:
        """Wait for workers that were alive a moment ago; they hold leases nobody wrote."""
        deadline_us = self._clock.now_us() + round(seconds * 1e6)
        while self._clock.now_us() < deadline_us and not self._all_greeted(live):
            await pause(0.02)

    def _all_greeted(self, live: set[str]) -> bool:
        found = map(self._dispatcher.session_of, live)
        return all(session is not None and session.greeted for session in found)
