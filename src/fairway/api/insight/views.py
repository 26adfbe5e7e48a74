"""What was seen, as messages: computed once for all who look at the same moment."""

from __future__ import annotations

from datetime import datetime

import msgspec

from fairway.api.insight.alarms import alarm_views
from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId
from fairway.core.insight.alarms import worth_telling
from fairway.core.insight.buckets import quantiles
from fairway.core.insight.health import drain_seconds, is_near_knee, utilisation, with_alarms
from fairway.core.insight.sight import RATES, PoolSight, ServerSight
from fairway.core.tenant import Tenant
from fairway.core.unix_time import from_unix_us
from fairway.services.insight.tenant_view import OwnPool
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.insight import (
    HealthReason,
    HeldJobs,
    Overview,
    OwnPoolOverview,
    Percentiles,
    PlatformHealth,
    PoolOverview,
    RestraintCounts,
    ShardCounts,
    TenantOverview,
    WorkerCounts,
)


class OverviewText:
    """The overview as text: made when something newer was seen, and kept until then."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._of: ServerSight | None = None
        self._texts: dict[TenantId, bytes] = {}  # for whom: a tenant, or STAFF

    def for_whom(self, principal: Principal) -> bytes:
        """What this caller may see; a tenant's is known by the owner of its shard alone."""
        seen, holder = self._platform.insight.board.seen, principal.holder
        if seen is None:
            raise Unavailable("This server has only just begun; ask again in a moment.")
        if seen is not self._of:
            self._of, self._texts = seen, {}
        text = self._texts.get(holder)
        if text is None:
            text = self._texts[holder] = msgspec.json.encode(self._made(principal, seen))
        return text

    def _made(self, principal: Principal, seen: ServerSight) -> Overview | TenantOverview:
        if principal.tenant is None:
            return overview(self._platform, seen)
        return tenant_overview(self._platform, principal.tenant)


def overview(platform: Platform, seen: ServerSight) -> Overview:
    raised = worth_telling(platform.alarms.raised())
    status, reasons = with_alarms(platform.insight.health(seen), raised)
    restraints = {name: seen.restraints.get(name, 0) for name in RestraintCounts.__struct_fields__}
    return Overview(
        at=_moment(seen.at_ms),
        health=PlatformHealth(
            status=status,
            reasons=[
                HealthReason(code=one.code, severity=one.severity, text=one.text, link=one.link)
                for one in reasons
            ],
        ),
        pools=[_pool(pool) for pool in seen.pools],
        workers=WorkerCounts(live=seen.workers_live, draining=seen.workers_draining),
        shards=ShardCounts(owned=seen.shards_owned, total=platform.insight.shard_count),
        restraints=RestraintCounts(**restraints),
        alarms=alarm_views(raised),
    )


def _pool(pool: PoolSight) -> PoolOverview:
    rates = pool.rates or dict.fromkeys(RATES)
    return PoolOverview(
        name=pool.name,
        queued=pool.queued,
        running=pool.running,
        slots=pool.slots,
        utilisation=utilisation(pool.running, pool.slots),
        oldest_runnable_age_seconds=_seconds(pool.oldest_ms),
        slo_seconds=pool.slo_seconds,
        held=HeldJobs(**msgspec.structs.asdict(pool.held)),
        pickup_seconds=Percentiles(**quantiles(pool.pickup)._asdict()),
        end_to_end_seconds=Percentiles(**quantiles(pool.whole)._asdict()),
        drain_seconds=drain_seconds(pool.queued, pool.falling),
        near_knee=is_near_knee(pool),
        **{f"{name}_per_second": rate for name, rate in rates.items()},
    )


def tenant_overview(platform: Platform, tenant: Tenant) -> TenantOverview:
    return TenantOverview(
        at=platform.store_clock.now(),
        tenant=tenant.name,
        pools=[_own_pool(pool) for pool in platform.insight.tenants.pools(tenant.id)],
    )


def _own_pool(pool: OwnPool) -> OwnPoolOverview:
    share = pool.share
    return OwnPoolOverview(
        name=share.pool,
        queued=share.queued,
        running=share.running,
        oldest_runnable_age_seconds=_seconds(pool.oldest_ms),
        pickup_seconds=Percentiles(**pool.pickup._asdict()),
        end_to_end_seconds=Percentiles(**pool.whole._asdict()),
        share_received=share.received,
        share_entitled=share.entitled,
        **{f"{name}_per_second": rate for name, rate in pool.rates.items()},
    )


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _moment(unix_ms: int) -> datetime:
    return from_unix_us(unix_ms * 1000)
