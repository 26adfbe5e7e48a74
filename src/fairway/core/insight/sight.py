"""What one server sees at one moment, small enough to be told to the others every few seconds.

And what all of them see together: jobs, slots and rates are added, ages are the greatest, times are
merged as histograms. What a server did not say for a while is not part of it. Unknown is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from fairway.core.ids import ShardId, TenantId
from fairway.core.insight.buckets import merged
from fairway.core.insight.fleet_load import FleetLoad, joined_loads

RATES = ("accepted", "started", "ended", "failed", "retried", "dead")
TOLD_MS_MAX = 15_000  # what was said longer ago is not how things are
SHARES_MAX = 200  # of one server: those with the most waiting or running
DEATHS_MAX = 20  # tenants of one server
BUILDS_MAX = 20  # of one server's workers
TYPES_MAX = 30  # of those that nobody runs, by name

Number = TypeVar("Number", int, float)


class Levels(NamedTuple):
    """How much there is at one moment; None: it is not known."""

    queued: int | None = None
    running: int | None = None
    slots: int | None = None
    oldest_ms: int | None = None


class HeldCounts(Struct, frozen=True):
    """Jobs that must not start, or whose type nobody runs: so many at least."""

    paused: int = 0
    throttled: int = 0
    circuit: int = 0
    no_worker: int = 0


class PoolSight(Struct, frozen=True, kw_only=True):
    name: str
    queued: int
    running: int
    slots: int
    slo_seconds: float
    oldest_ms: int | None = None  # how long the oldest waits that could run
    held: HeldCounts = HeldCounts()
    no_worker_ms: int = 0  # for how long there have been jobs whose type nobody runs
    no_worker_types: list[str] = []  # some of these types, with whose they are
    rates: dict[str, float] | None = None  # a second
    falling: float | None = None  # jobs a second by which its queue gets shorter
    pickup: list[int] = []
    whole: list[int] = []
    load: FleetLoad = FleetLoad()


class ShareSight(Struct, frozen=True, kw_only=True):
    """A tenant in a pool; shares are parts of the pool's slot-time over about the last minute."""

    tenant: TenantId
    pool: str
    weight: int
    queued: int
    running: int
    received: float | None = None
    entitled: float | None = None
    throttled: bool = False


class DeathSight(Struct, frozen=True, kw_only=True):
    """How a tenant's jobs ended in the last whole minutes."""

    tenant: TenantId
    dead: int
    ended: int
    type: str = ""  # of most of the dead; empty: it is not known


class ServerSight(Struct, frozen=True, kw_only=True):
    at_ms: int  # by the store's clock
    pools: list[PoolSight]
    shares: list[ShareSight] = []
    workers_live: int = 0
    workers_draining: int = 0
    shards_owned: int = 0
    shards: list[ShardId] = []  # which those are; a server of the version before does not say
    shards_degraded: int = 0  # of these, those for whose owner it stands in
    restraints: dict[str, int] = {}
    promoter_lag_ms: int = 0  # how long the oldest due job waits to be queued
    leases_lost: int = 0  # with workers that died or fell silent, in the last minutes
    recently_dead: int = 0  # jobs of all tenants, in the last whole minutes
    recently_ended: int = 0
    deaths: list[DeathSight] = []  # of tenants with the most dead among these
    versions: list[str] = []  # of this server's own code: one
    builds: list[str] = []  # of shared workers that it hears: some


def fresh(sights: Iterable[ServerSight], now_ms: int) -> list[ServerSight]:
    return [one for one in sights if now_ms - one.at_ms <= TOLD_MS_MAX]


def standing(sights: Iterable[ServerSight]) -> list[ServerSight]:
    """Those that still hold: what a server said before others took over what it owned would count
    the same jobs twice. Where they took over a part of it, as large a part of its jobs is left
    out until it says anew."""
    taken: set[ShardId] = set()
    found: list[ServerSight] = []
    for sight in sorted(sights, key=lambda one: -one.at_ms):
        moved = len(taken.intersection(sight.shards))
        if not sight.shards or moved < len(sight.shards):
            found.append(sight if not moved else _left_of(sight, taken))
            taken.update(sight.shards)
    return found


def _left_of(sight: ServerSight, taken: set[ShardId]) -> ServerSight:
    """As far as its shards are still its own; workers and what happened are not of a shard."""
    kept = [shard for shard in sight.shards if shard not in taken]
    part = len(kept) / len(sight.shards)
    pools = [
        replace(
            pool,
            queued=round(pool.queued * part),
            running=round(pool.running * part),
            held=HeldCounts(**{name: round(n * part) for name, n in asdict(pool.held).items()}),
        )
        for pool in sight.pools
    ]
    return replace(sight, pools=pools, shards_owned=len(kept), shards=kept)


def joined(sights: Sequence[ServerSight]) -> ServerSight:
    """What these servers see together; one at least."""
    by_name: dict[str, list[PoolSight]] = {}
    for sight in sights:
        for pool in sight.pools:
            by_name.setdefault(pool.name, []).append(pool)
    return ServerSight(
        at_ms=max(sight.at_ms for sight in sights),
        pools=[_pool(parts) for parts in by_name.values()],
        shares=largest_first([share for sight in sights for share in sight.shares]),
        workers_live=sum(sight.workers_live for sight in sights),
        workers_draining=sum(sight.workers_draining for sight in sights),
        shards_owned=sum(sight.shards_owned for sight in sights),
        shards=sorted({shard for sight in sights for shard in sight.shards}),
        shards_degraded=sum(sight.shards_degraded for sight in sights),
        restraints=_added([sight.restraints for sight in sights]),
        promoter_lag_ms=max(sight.promoter_lag_ms for sight in sights),
        leases_lost=sum(sight.leases_lost for sight in sights),
        recently_dead=sum(sight.recently_dead for sight in sights),
        recently_ended=sum(sight.recently_ended for sight in sights),
        deaths=_deaths([one for sight in sights for one in sight.deaths]),
        versions=sorted({one for sight in sights for one in sight.versions}),
        builds=sorted({one for sight in sights for one in sight.builds}),
    )


def most_dead(deaths: Iterable[DeathSight]) -> list[DeathSight]:
    return sorted(deaths, key=lambda one: (-one.dead, one.tenant))


def _deaths(told: Sequence[DeathSight]) -> list[DeathSight]:
    """Each tenant once, with the type that most of its dead are of on one server."""
    by_tenant: dict[TenantId, list[DeathSight]] = {}
    for one in most_dead(told):
        by_tenant.setdefault(one.tenant, []).append(one)
    return most_dead(
        DeathSight(
            tenant=tenant,
            dead=sum(one.dead for one in parts),
            ended=sum(one.ended for one in parts),
            type=parts[0].type,
        )
        for tenant, parts in by_tenant.items()
    )


def largest_first(shares: Iterable[ShareSight]) -> list[ShareSight]:
    return sorted(shares, key=lambda one: (-one.queued - one.running, one.tenant, one.pool))


def _pool(parts: Sequence[PoolSight]) -> PoolSight:
    ages = [part.oldest_ms for part in parts if part.oldest_ms is not None]
    rates = [part.rates for part in parts if part.rates is not None]
    falls = [part.falling for part in parts if part.falling is not None]
    return PoolSight(
        name=parts[0].name,
        queued=sum(part.queued for part in parts),
        running=sum(part.running for part in parts),
        slots=sum(part.slots for part in parts),
        slo_seconds=parts[0].slo_seconds,
        oldest_ms=max(ages, default=None),
        held=HeldCounts(**_added([asdict(part.held) for part in parts])),
        no_worker_ms=max(part.no_worker_ms for part in parts),
        no_worker_types=sorted({one for part in parts for one in part.no_worker_types})[:TYPES_MAX],
        rates=_added(rates) if rates else None,
        falling=sum(falls) if falls else None,
        pickup=merged(part.pickup for part in parts),
        whole=merged(part.whole for part in parts),
        load=joined_loads([part.load for part in parts]),
    )


def _added(parts: Sequence[dict[str, Number]]) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for part in parts:
        for name, value in part.items():
            found[name] = found[name] + value if name in found else value
    return found
