"""Watches how long runs take, and acts on it: slots for overrun jobs, pools for drifting types.

A run that outlasts its pool by far keeps its lease, and counts against the pool it should have been
in as soon as its worker has a free slot there, so that the one it held is free for others; a worker
never holds more than it has slots. A job type whose runs do not fit
its pool is moved, for the jobs that come from then on; its tenants hear of it and it is audited.
What a type deserves is decided in `core/pool_classifier.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairway.core.audit import PLATFORM, Act
from fairway.core.events.event import NewEvent
from fairway.core.ids import TenantId, TypeId
from fairway.core.pool_classifier import STICKY_US, Move
from fairway.core.pools import Pool
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.maintenance.run_times import RunTimes
from fairway.services.registry.job_types import Registry
from fairway.services.sessions.sessions import Lease
from fairway.store.connections.database import Database
from fairway.store.events.log import add_notices
from fairway.store.registry import job_types

log = logger("measuring")

REST_SECONDS = 1.0
JUDGE_US = 5_000_000
TOLD_MAX = 10_000  # (tenant, type) pairs that were told of an overrun lately


class Reclassifier:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        registry: Registry,
        run_times: RunTimes,
        metrics: Metrics,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._registry = registry
        self._metrics = metrics
        self._classifier = run_times.classifier
        self._judge_due_us = 0
        # (tenant, type) → when it heard of overruns
        self._told: dict[tuple[TenantId, TypeId], int] = {}

    # -- the loop ------------------------------------------------------------------------------

    async def run_once(self, now_us: int) -> float:
        new = []
        for lease in list(self._overruns(now_us)):
            if self._dispatcher.outlasts(lease):
                self._note(lease, now_us)
                new.append(lease)
            self._rehome(lease, now_us)
        await self._tell(new, now_us)
        if now_us >= self._judge_due_us:
            self._judge_due_us = now_us + JUDGE_US
            for type_id in self._classifier.types():
                move = self._classifier.judge(type_id, now_us)
                if move is not None:
                    await self._move(type_id, move, now_us)
        return REST_SECONDS

    def _overruns(self, now_us: int) -> Iterator[Lease]:
        """Leases that outlast their pool and still count there."""
        pools = self._dispatcher.pools.by_number
        limits = [pool.overrun_seconds for pool in pools.values() if pool.overrun_seconds]
        earliest_us = now_us - round(min(limits, default=0) * 1e6)
        for session in self._dispatcher.all_sessions():
            for lease in session.leases.values():
                if lease.granted_us > earliest_us:
                    break  # granted in order: those after it are younger still
                if lease.reported:
                    continue  # it does not run
                pool = lease.job.pool
                if lease.moved_to in (None, pool) and _overran(lease, pools[pool], now_us):
                    yield lease

    def _note(self, lease: Lease, now_us: int) -> None:
        job = lease.job
        self._metrics.violations.labels(self._dispatcher.pools.by_number[job.pool].name).inc()
        if lease.session.tenant is None and lease.session.is_known:  # else it may be anybody's
            self._classifier.violated(job.type, job.pool, job.tenant, now_us)

    def _rehome(self, lease: Lease, now_us: int) -> None:
        """It runs on; the slot that it holds is counted in the pool it should have been in."""
        right = self._pool_for(now_us - lease.granted_us)
        if right is not None and right.number != lease.job.pool:
            self._dispatcher.rehome(lease, right.number, now_us)

    def _pool_for(self, ran_us: int) -> Pool | None:
        slower = self._dispatcher.pools.of_duration()
        fits = (pool for pool in slower if (pool.fits_seconds or 0) * 1e6 > ran_us)
        return next(fits, None)

    async def _tell(self, overran: Sequence[Lease], now_us: int) -> None:
        """Each tenant hears once an hour that jobs of a type outlast their pool."""
        news = []
        for lease in overran:
            job = lease.job
            told_us = self._told.get((job.tenant, job.type))
            if told_us is None or now_us - told_us >= STICKY_US:
                self._told[job.tenant, job.type] = now_us
                news.append(await self._overrun_event(lease))
        if len(self._told) > TOLD_MAX:
            self._told = {key: at for key, at in self._told.items() if now_us - at < STICKY_US}
        if news:
            async with self._database.background() as connection:
                await add_notices(connection, news)

    async def _overrun_event(self, lease: Lease) -> NewEvent:
        job = lease.job
        name = await self._registry.directory.type_name(job.type)
        pool = self._dispatcher.pools.by_number[job.pool]
        detail = (
            f"A job ran for more than {pool.overrun_seconds:g} s in the pool {pool.name}; it runs"
            " on. Declare a slower pool for this type, or it will be moved."
        )
        return NewEvent(job.tenant, "pool.violated", name, detail, job.id)

    # -- moves ---------------------------------------------------------------------------------

    async def _move(self, type_id: TypeId, move: Move, now_us: int) -> None:
        name = await self._registry.directory.type_name(type_id)
        pools, p95_seconds = self._dispatcher.pools.by_number, move.p95_us / 1e6
        before, after = pools[move.before].name, pools[move.after].name
        why = f"95 % of its runs end within {p95_seconds:.3g} s"
        if move.reason == "violations":
            why = "more than 100 of its runs in an hour outlasted the pool"
        detail = f"From {before} to {after}: {why}. Jobs that come from now on run there."
        told = [
            NewEvent(tenant, "type.reclassified", name, detail)
            for tenant in self._classifier.tenants_of(type_id)
        ]
        async with self._database.background() as connection, connection.transaction():
            is_moved = await job_types.move_type(
                connection, type_id, move.after, move.p95_us // 1000, STICKY_US / 1e6
            )
            if is_moved:
                sides = {"pool": before}, {"pool": after}
                act = Act("job_type_moved", name, None, *sides, detail)
                await self._registry.audit_log.add(connection, PLATFORM, act)
                await add_notices(connection, told)
        self._classifier.settled(type_id, move.after, now_us)
        await self._registry.run_once(0)  # whoever moved it, and wherever to
        if is_moved:
            log.warning("job type moved", type=name, before=before, after=after, why=move.reason)


def _overran(lease: Lease, pool: Pool, now_us: int) -> bool:
    limit = pool.overrun_seconds
    return limit is not None and now_us - lease.granted_us >= limit * 1e6
