"""Degraded mode at work: jobs go from the store to workers, a bounded pull at a time.

This server stands in for an owner that has been away for long (`services/ownership/`). Each round
looks at the streams of some tenants, reads the first jobs of those that may start, locked
(`FOR UPDATE SKIP LOCKED`), and writes their leases in the same transaction, under our term: an
owner that came back in between has another one, and then nothing of the round is written or told.
Who goes next is decided in `core/backlog/pulls.py`; what has ended is recorded as ever. A pull that
fails is of one shard and pool: the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fairway.core.backlog.pulls import PullPauses, PullTurns, asks_for, deal, startable
from fairway.core.backlog.streams import StreamKey
from fairway.core.backoff import Outage
from fairway.core.ids import PoolId, ShardId, TenantId, Term
from fairway.core.job import QueuedJob
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.pulled_leases import Wanting
from fairway.services.sessions.sessions import Lease
from fairway.services.store_clock import StoreClock
from fairway.store import backlog as store
from fairway.store import leases as lease_store
from fairway.store.connections.database import Connection, Database

log = logger("pulls")

REST_SECONDS = 1.0  # nobody pulls
LOOK_SECONDS = 0.1  # nothing was found
BUSY_SECONDS = 0.01
FIRST_TENANT = TenantId(-1)  # before all


class Pulls:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        store_clock: StoreClock,
        metrics: Metrics,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._leases = dispatcher.pulls()
        self._store_clock = store_clock
        self._metrics = metrics
        self._after: dict[tuple[ShardId, PoolId], TenantId] = {}  # the last that was looked at
        self._turns: dict[PoolId, PullTurns] = {}
        self._pauses = PullPauses()
        self._outage = Outage()

    async def run_once(self, now_us: int) -> float:
        shards = self._dispatcher.pulled_shards()
        self._metrics.degraded.set(len(shards))
        if not shards:
            self._after.clear()
            self._turns.clear()
            self._pauses.clear()
            return REST_SECONDS
        is_busy = False
        for shard in shards:
            term = self._dispatcher.term_of(shard)
            for pool in self._leases.pools_wanted():
                if term is not None and self._dispatcher.term_of(shard) == term:
                    is_busy |= await self._try(shard, pool, term, now_us)
        return BUSY_SECONDS if is_busy else LOOK_SECONDS

    async def _try(self, shard: ShardId, pool: PoolId, term: Term, now_us: int) -> bool:
        """As `_pull`; what goes wrong with one shard and pool keeps no other from its jobs."""
        if not self._pauses.is_over(shard, pool, now_us):
            return False
        try:
            is_busy = await self._pull(shard, pool, term)
        except Exception as error:
            self._pauses.failed(shard, pool, now_us)
            if self._outage.failed(f"{pool} {type(error).__name__}", now_us):
                log.warning("pull failed", shard=shard, pool=pool, error=repr(error))
            return False
        self._pauses.worked(shard, pool)
        if not self._pauses and (over := self._outage.worked(now_us)) is not None:
            log.info("pulls recovered", failures=over.failures, seconds=round(over.seconds, 1))
        return is_busy

    async def _pull(self, shard: ShardId, pool: PoolId, term: Term) -> bool:
        """Answers whether to go on at once: jobs went out, or other tenants have their turn."""
        wanting = self._leases.wanting(pool)
        if not wanting:
            return False
        leases: list[Lease] = []
        try:
            written, is_last = await self._lease(shard, pool, term, wanting, leases)
        except Exception:  # perhaps they are on disk: then nobody else would ever know of them
            if gone := self._leases.in_doubt(leases, term):
                self._dispatcher.lost(gone)
            raise
        for lease in leases:
            lease.session.noted()
        there = [lease for lease in leases if lease.job.id in written]
        lost = self._leases.granted(there, pool, term)
        if lost:
            self._dispatcher.lost(lost)
        return bool(there) or not is_last

    async def _lease(
        self,
        shard: ShardId,
        pool: PoolId,
        term: Term,
        wanting: Sequence[Wanting],
        leases: list[Lease],
    ) -> tuple[set[str], bool]:
        """Adds leases on what was found to `leases` and writes them; answers which were written,
        and whether the round is over."""
        async with self._database.hot(at=shard) as connection:
            heads, is_last = await self._next_heads(connection, shard, pool)
            rooms = self._leases.rooms(pool, {key.tenant for key in heads})
            takers = [one.taker for one in wanting]
            asks = asks_for(heads, takers, rooms, self._leases.is_held)
            if not asks:
                return set(), is_last
            async with connection.transaction():
                jobs = await store.pull_jobs(connection, shard, asks)
                jobs = startable(jobs, self._leases.may_start)
                leases += self._deal(jobs, wanting, rooms, (pool, term))
                return await self._write(connection, shard, term, leases), is_last

    async def _next_heads(
        self, connection: Connection, shard: ShardId, pool: PoolId
    ) -> tuple[list[StreamKey], bool]:
        """Streams of the tenants to look at now, and whether these were the last.

        Of whoever stands at the end of a full page some streams may be beyond it: it has its turn
        with the next, where all of them are seen.
        """
        after = self._after.get((shard, pool), FIRST_TENANT)
        heads = await store.pull_heads(connection, shard, pool, after)
        is_last = len(heads) < store.PULL_STREAMS
        if not is_last:
            heads = [key for key in heads if key.tenant != heads[-1].tenant] or heads
        self._after[shard, pool] = FIRST_TENANT if is_last else heads[-1].tenant
        return heads, is_last

    def _deal(
        self,
        jobs: Sequence[QueuedJob],
        wanting: Sequence[Wanting],
        rooms: dict[TenantId, int],
        granted: tuple[PoolId, Term],
    ) -> list[Lease]:
        pool, term = granted
        turns = self._turns.setdefault(pool, PullTurns())
        dealt = deal(jobs, [one.taker for one in wanting], rooms, turns)
        new = partial(self._leases.new, term=term)
        return [new(wanting[number].places.popleft(), job) for job, number in dealt]

    async def _write(
        self, connection: Connection, shard: ShardId, term: Term, leases: Sequence[Lease]
    ) -> set[str]:
        """Whose a session is stands in the store before any lease of it, as ever."""
        if not leases:
            return set()
        holders = {lease.session for lease in leases}
        new = [one for one in holders if not one.is_noted]
        if new:
            await lease_store.see_sessions(connection, {shard: term}, [one.row for one in new])
        rows = [self._row(lease) for lease in leases]
        return await lease_store.write_leases(connection, {shard: term}, rows)

    def _row(self, lease: Lease) -> lease_store.LeaseRow:
        return lease_store.LeaseRow(
            lease.shard,
            lease.job.tenant,
            lease.job.id,
            lease.epoch,
            lease.session.key,
            lease.token,
            self._store_clock.at_us(lease.granted_us),
        )
