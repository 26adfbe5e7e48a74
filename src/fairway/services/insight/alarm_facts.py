"""What alarms are judged by, gathered: the joined sight of all servers, the store, the disk.

What does not answer now is None, and judged by nobody. What a tenant usually does is asked for once
a minute: it is a sum over a day of hours.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import Unavailable
from fairway.core.ids import FIRST_SHARD
from fairway.core.insight.alarm_readings import (
    BASELINE_HOURS,
    BASELINE_JOBS_MIN,
    RATE_WINDOW_SECONDS,
    TYPES_NAMED_MAX,
    AlarmFacts,
    DiskRoom,
    OtherRegion,
    PoolWait,
    TenantDeaths,
    TenantPace,
    TypeParked,
    WebhookOff,
)
from fairway.core.insight.alarm_windows import RecentMean
from fairway.core.insight.alarms import SUBJECTS_MAX, TENANT_TIMES
from fairway.core.insight.sight import DeathSight, PoolSight, ServerSight
from fairway.core.webhooks.webhook import Webhook, shown_url
from fairway.runtime.telemetry import Metrics
from fairway.services.insight.insight import Insight
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.store_clock import StoreClock
from fairway.store import leadership, restraints
from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.insight import alarm_baselines
from fairway.store.webhooks import webhooks

PACES_US = 60_000_000  # so often tenants are compared with themselves
_HOUR = timedelta(hours=1)


class AlarmFactsReader:
    def __init__(
        self,
        database: Database,
        insight: Insight,
        directory: Directory,
        store_clock: StoreClock,
        metrics: Metrics,
        data_dir: Path,
        regions: Callable[[], tuple[OtherRegion, ...]] | None,
    ) -> None:
        self._database = database
        self._board, self._insight = insight.board, insight
        self._autoscaling = insight.autoscaling
        self._directory = directory
        self._metrics = metrics
        self._clock = store_clock
        self._data_dir = data_dir
        self._regions = regions
        self._dead, self._ended = (RecentMean(RATE_WINDOW_SECONDS) for _ in range(2))
        self._paces: tuple[TenantPace, ...] | None = None
        self._paces_us: int | None = None

    async def look(self) -> AlarmFacts:
        told = await self._ask_store()
        disk = await asyncio.to_thread(_disk_room, self._data_dir)
        seen = self._board.seen
        facts = AlarmFacts(
            **({} if seen is None else self._seen(seen)),
            **({} if told is None else told),
            shards_total=self._insight.shards_to_be_owned,
            disk=disk,
            at_maximum=self._autoscaling.at_maximum(),
            regions=None if self._regions is None else self._regions(),
        )
        self._tell(facts)
        return facts

    def _seen(self, seen: ServerSight) -> dict[str, Any]:
        now_us = self._clock.now_us()
        rates = [pool.rates for pool in seen.pools if pool.rates is not None]
        if rates:
            self._dead.note(sum(one["dead"] for one in rates), now_us)
            self._ended.note(sum(one["ended"] for one in rates), now_us)
        return {
            "pools": tuple(map(_pool, seen.pools)),
            "promoter_lag_seconds": seen.promoter_lag_ms / 1000,
            "dead_per_second": self._dead.mean(now_us),
            "ended_per_second": self._ended.mean(now_us),
            "leases_lost": seen.leases_lost,
            "recently_dead": seen.recently_dead,
            "recently_ended": seen.recently_ended,
            "worst_of_dead": self._worst(seen.deaths),
        }

    def _worst(self, deaths: Sequence[DeathSight]) -> TenantDeaths | None:
        if not deaths:
            return None
        one = deaths[0]
        return TenantDeaths(self._directory.name_of(one.tenant), one.dead, one.ended, one.type)

    async def _ask_store(self) -> dict[str, Any] | None:
        """What only the store knows; None when it does not say."""
        try:
            async with self._database.background() as connection:
                owners = await leadership.read_owners(connection)
                parked = await restraints.parked_types(connection, TYPES_NAMED_MAX, SUBJECTS_MAX)
                receivers = await webhooks.list_webhooks(connection, FIRST_SHARD, STAFF)
                now_us = self._clock.now_us()
                if self._paces_us is None or now_us - self._paces_us >= PACES_US:
                    busy = await alarm_baselines.busy_tenants(
                        connection, *_hours(self._clock.now()), *_BOUNDS
                    )
                    self._paces = tuple(map(self._pace, busy))
                    self._paces_us = now_us
        except (*DISCONNECTED, Unavailable):
            return None
        return {
            "shards_owned": len(owners),
            "tenants": self._paces,
            "parked": tuple(map(self._parked, parked)),
            "webhooks_off": tuple(map(_off, filter(_is_given_up, receivers))),
        }

    def _parked(self, one: restraints.ParkedType) -> TypeParked:
        return TypeParked(self._directory.name_of(one.tenant), *one[1:])

    def _pace(self, busy: alarm_baselines.BusyTenant) -> TenantPace:
        name = self._directory.name_of(busy.tenant)
        return TenantPace(name, busy.recent, busy.usual)

    def _tell(self, facts: AlarmFacts) -> None:
        """As metrics, for those who watch from outside."""
        metrics = self._metrics
        metrics.shards_total.set(self._insight.shards_to_be_owned)
        for pool in facts.pools or ():
            metrics.pool_slo.labels(pool.name).set(pool.slo_seconds)
        if facts.disk is not None:
            metrics.disk_free.set(facts.disk.free_bytes)
            metrics.disk_bytes.set(facts.disk.total_bytes)
        metrics.alarm_webhooks_off.set(len(facts.webhooks_off or ()))
        over = [one for one in facts.tenants or () if one.times_usual > TENANT_TIMES]
        metrics.tenants_over_baseline.set(len(over))


_BOUNDS = (BASELINE_JOBS_MIN * TENANT_TIMES, SUBJECTS_MAX)


def _hours(now: datetime) -> tuple[datetime, datetime]:
    """The day before, and the last whole hour with what is of this one."""
    recent = now.replace(minute=0, second=0, microsecond=0) - _HOUR
    return recent - BASELINE_HOURS * _HOUR, recent


def _pool(pool: PoolSight) -> PoolWait:
    """No age: nothing waits that could run."""
    age_seconds = (pool.oldest_ms or 0) / 1000
    return PoolWait(
        pool.name,
        pool.queued,
        pool.slots,
        age_seconds,
        pool.slo_seconds,
        pool.held.no_worker,
        tuple(pool.no_worker_types),
    )


def _is_given_up(one: Webhook) -> bool:
    """By the platform; what an operator switched off is as it should be."""
    return bool(one.disabled_because) and not one.terms.enabled


def _off(one: Webhook) -> WebhookOff:
    return WebhookOff(one.key.id, shown_url(one.terms.url), one.disabled_because)


def _disk_room(folder: Path) -> DiskRoom | None:
    """None: everything this server keeps is elsewhere."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return DiskRoom(usage.free, usage.total)
