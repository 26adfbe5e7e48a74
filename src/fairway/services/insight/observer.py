"""What this server sees: made from a look that the gauges took anyway, in slices of its own.

Whom it names is bounded: the deepest queues, and who did the most in the last minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from statistics import median

from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.insight.activity import OTHER_TENANT, OTHER_TYPE
from fairway.core.insight.alarm_readings import LOST_WINDOW_SECONDS
from fairway.core.insight.alarm_windows import RecentGrowth
from fairway.core.insight.deaths import RecentDeaths
from fairway.core.insight.look import Look, is_throttle
from fairway.core.insight.minutes import NO_POOL, ActivityLine, LineKind, Minute, Subject
from fairway.core.insight.rates import RateWindow
from fairway.core.insight.sight import (
    BUILDS_MAX,
    SHARES_MAX,
    Levels,
    PoolSight,
    ServerSight,
    ShareSight,
    largest_first,
)
from fairway.core.pools import Pool
from fairway.runtime.loops import WorkInParts
from fairway.runtime.telemetry import Metrics, value_of
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.fair_share_loop import FairShareLoop
from fairway.services.insight.fleet_look import FleetLook
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.sessions.sessions import Session
from fairway.services.store_clock import StoreClock

VERSION = version("fairway")


class Observer:
    def __init__(
        self,
        dispatcher: Dispatcher,
        fair_share_loop: FairShareLoop,
        directory: Directory,
        metrics: Metrics,
        store_clock: StoreClock,
    ) -> None:
        self._dispatcher = dispatcher
        self._fair_share = fair_share_loop
        self._directory = directory
        self._metrics = metrics
        self._clock = store_clock
        self._rates = RateWindow()
        self._fleet = FleetLook(dispatcher)
        self._lost = RecentGrowth(LOST_WINDOW_SECONDS)
        self._deaths = RecentDeaths()
        self._active: list[tuple[TenantId, PoolId]] = []
        self._unserved_since_ms: dict[PoolId, int] = {}  # pools with jobs whose type nobody runs
        self.sight: ServerSight | None = None  # until the first look

    def minute_was(self, minute: Minute, lines: Iterable[ActivityLine]) -> None:
        """Who did the most in the last minute: they are told of when nothing of theirs waits."""
        lines = list(lines)
        self._deaths.minute_was(lines)
        tenants = [line.subject[2] for line in lines if line.kind is LineKind.TENANT]
        pools = list(self._dispatcher.pools.by_number)
        pairs = ((tenant, pool) for tenant in tenants if tenant for pool in pools)
        self._active = [one for one in pairs if one in minute.of_tenant][:SHARES_MAX]

    async def look(self, look: Look) -> None:
        counted, queued = self._metrics.activity.pools, look.waiting.depth
        self._rates.note(counted, queued, self._clock.now_us())
        self._fleet.look(self._clock.now_us())
        pools = list(self._dispatcher.pools.by_name.values())
        shares = await self._shares(look)
        sessions = [one for one in self._dispatcher.all_sessions() if one.greeted]
        offers = self._dispatcher.offers()
        workers = [one for one in sessions if offers.is_counted(one)]  # each at one owner
        owned = self._dispatcher.open_shards()
        recently_dead, recently_ended = self._deaths.totals()
        self.sight = ServerSight(
            at_ms=self._clock.unix_ms(),
            pools=[self._pool(pool, look) for pool in pools],
            shares=largest_first(shares)[:SHARES_MAX],
            workers_live=len(workers),
            workers_draining=sum(one.draining or one.drain_asked for one in workers),
            shards_owned=len(owned),
            shards=owned,
            shards_degraded=len(self._dispatcher.pulled_shards()),
            restraints=dict(look.restraints),
            promoter_lag_ms=round(value_of(self._metrics.oldest_due) * 1000),
            leases_lost=round(self._lost.grown(value_of(self._metrics.lost), self._clock.now_us())),
            recently_dead=recently_dead,
            recently_ended=recently_ended,
            deaths=self._deaths.by_tenant(lambda one: self._directory.type_names.get(one, "")),
            versions=[VERSION],
            builds=_builds(sessions),
        )
        for one in self.sight.pools:
            self._metrics.without_worker.labels(one.name).set(one.held.no_worker)
        self._tell_shares(shares)

    def _pool(self, pool: Pool, look: Look) -> PoolSight:
        number = pool.number
        rates, falling, pickup, whole = self._rates.of(number)
        held = look.held(number)
        unserved_ms = self._unserved_ms(number, held.no_worker, look.unix_ms)
        return PoolSight(
            name=pool.name,
            queued=look.waiting.depth.get(number, 0),
            running=look.running.get(number, 0),
            slots=look.slots.get(number, 0),
            slo_seconds=pool.pickup_target_seconds,
            oldest_ms=look.oldest_age_ms(number),
            held=held,
            no_worker_ms=unserved_ms,
            no_worker_types=self._type_names(look.waiting.unserved.get(number, {})),
            rates=rates,
            falling=falling,
            pickup=pickup,
            whole=whole,
            load=self._fleet.load_of(pool, look, unserved_ms),
        )

    def _unserved_ms(self, pool: PoolId, jobs: int, now_ms: int) -> int:
        if not jobs:
            self._unserved_since_ms.pop(pool, None)
            return 0
        return max(now_ms - self._unserved_since_ms.setdefault(pool, now_ms), 0)

    def _type_names(self, types: Mapping[TenantId, Iterable[TypeId]]) -> list[str]:
        """Of those whose names are at hand, with whose they are."""
        names, whose = self._directory.type_names, self._directory.name_of
        return sorted(
            f"{names[one]} of {whose(who)}"
            for who, found in types.items()
            for one in found
            if one in names
        )

    async def _shares(self, look: Look) -> list[ShareSight]:
        queued = {(tenant, pool): depth for depth, tenant, pool in look.waiting.deepest}
        found, work = [], WorkInParts()
        for tenant, pool in dict.fromkeys([*queued, *self._active]):
            depth = queued.get((tenant, pool))
            if depth is None:  # it was not among the deepest, so it may have none
                depth = self._dispatcher.windows().depth_in(pool, tenant)
            found.append(self.share_of(tenant, pool, depth, look.slots.get(pool, 0)))
            await work.let_others()
        return found

    def share_of(self, tenant: TenantId, pool: PoolId, queued: int, slots: int) -> ShareSight:
        """What a tenant got of a pool's slot-time of late, and what it was due."""
        now_us, standings = self._clock.now_us(), self._dispatcher.share_of(pool)
        totals = standings.totals([tenant], now_us)
        recent = self._fair_share.history[pool].recent(totals[0]) if totals else None
        received = entitled = None
        if recent is not None and slots:
            received = recent.received_us / (recent.window_us * slots)
            entitled = recent.entitled_us / (recent.window_us * slots)
        known = self._directory.tenants.get(tenant)
        holds = self._dispatcher.holds().naming(tenant)
        return ShareSight(
            tenant=tenant,
            pool=self._dispatcher.pools.by_number[pool].name,
            weight=known.weight if known else 0,
            queued=queued,
            running=standings.running(tenant),
            received=received,
            entitled=entitled,
            throttled=any(one.tenant == tenant and is_throttle(one.reason) for one in holds),
        )

    def _tell_shares(self, shares: Iterable[ShareSight]) -> None:
        """As metrics, of those with jobs that wait, and without their names."""
        by_pool: dict[str, list[float]] = {}
        for one in shares:
            if one.queued and one.received is not None and one.entitled:
                by_pool.setdefault(one.pool, []).append(one.received / one.entitled)
        for name in self._dispatcher.pools.by_name:
            ratios = by_pool.get(name, [])
            self._metrics.tenants_waiting.labels(name).set(len(ratios))
            for which, of in (("min", min), ("median", median)):
                self._metrics.share_ratio.labels(name, which).set(of(ratios) if ratios else 1.0)

    def levels(self) -> dict[tuple[LineKind, Subject], Levels]:
        """What waits and runs, by what lines of history are about."""
        found: dict[tuple[LineKind, Subject], Levels] = {}
        if (sight := self.sight) is None:
            return found
        by_name = self._dispatcher.pools.by_name
        for pool in sight.pools:
            subject = (by_name[pool.name].number, OTHER_TYPE, OTHER_TENANT)
            found[LineKind.POOL, subject] = Levels(
                pool.queued, pool.running, pool.slots, pool.oldest_ms
            )
        for share in sight.shares:
            key = (LineKind.TENANT, (NO_POOL, OTHER_TYPE, share.tenant))
            before = found.get(key, Levels(0, 0))
            found[key] = Levels(
                (before.queued or 0) + share.queued, (before.running or 0) + share.running
            )
        return found


def _builds(sessions: Iterable[Session]) -> list[str]:
    """Of shared workers: what a tenant's own say of theirs is no deploy of the platform's."""
    found = {one.build for one in sessions if one.build and one.tenant is None}
    return sorted(found)[:BUILDS_MAX]
