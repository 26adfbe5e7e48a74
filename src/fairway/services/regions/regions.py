"""All that a server does because there are several regions, joined; where there are none, nothing.

Composition, and the few questions that the edges ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fairway.core.ids import JobId, TenantId
from fairway.core.insight.alarm_readings import OtherRegion
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.region_map import RegionMap, region_map, region_number_of
from fairway.runtime.clock import Clock
from fairway.runtime.loops import Step
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.watchers import Watchers
from fairway.services.regions.failover import RegionActs
from fairway.services.regions.hand_over import HandOver
from fairway.services.regions.held import HeldJobs
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.leaving_jobs import Moving
from fairway.services.regions.moved_rows import MovedRows
from fairway.services.regions.peer_calls import RegionPeers
from fairway.services.regions.region_metrics import RegionMetrics
from fairway.services.regions.remaining_jobs import RemainingJobs
from fairway.services.regions.watch import RegionWatch
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.restraints.holds import HoldRegistry
from fairway.services.submit.hints import Hints
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.regions import regions as store
from fairway.store.regions.regions import RegionRow


class RegionPorts(NamedTuple):
    """What of a server regions lean on."""

    dispatcher: Dispatcher
    directory: Directory
    holds: HoldRegistry
    watchers: Watchers
    hints: Hints
    audit_log: AuditLog
    on_scheduled: Callable[[], None]


class OneRegion(NamedTuple):
    name: str
    urls: list[str]
    is_here: bool
    is_directory: bool
    is_reachable: bool
    latency_ms: float | None
    tenants: int
    directory_term: int | None
    trouble: str  # beside its silence


class RegionStanding(NamedTuple):
    """How things stand, as one region sees them."""

    here: str
    directory: str
    directory_term: int
    lag_seconds: float
    conflicts: int
    held: int
    held_in_doubt: int
    regions: list[OneRegion]


class Regions:
    """Made only where `FAIRWAY_REGION` is set."""

    def __init__(
        self,
        database: Database,
        regions: RegionMap,
        settings: Settings,
        metrics: Metrics,
        clock: Clock,
        ports: RegionPorts,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self.map = regions
        self._database = database
        self.metrics = RegionMetrics(metrics.registry)
        self.peers = RegionPeers(regions, settings.region_secret)
        self.secret = settings.region_secret.encode()
        dispatcher = ports.dispatcher
        self.homes = HomeTable(regions, ports.directory, ports.holds)
        known = database, regions, self.peers, self.homes, self.metrics, clock
        self.watch = RegionWatch(*known, tenant_shards=tenant_shards)
        kept = settings.held_jobs_max, settings.retention_days
        self.held = HeldJobs(database, self.metrics, self.homes, *kept, tenant_shards=tenant_shards)
        self.acts = RegionActs(
            database,
            ports.directory,
            regions,
            self.homes,
            self.peers,
            self.watch,
            ports.audit_log,
            tenant_shards=tenant_shards,
        )
        self.moved_rows = MovedRows(
            database, ports.directory, dispatcher, ports.hints, ports.on_scheduled
        )
        self.remaining = RemainingJobs(database, tenant_shards=tenant_shards)
        self._moving = Moving(
            database, dispatcher, ports.watchers, self.homes, tenant_shards=tenant_shards
        )
        self._hand_over = HandOver(database, dispatcher, self.homes, self.peers, self.metrics)

    def steps(self, own: Step) -> dict[str, Step]:
        """The loops; `own` is the one that owns shards, which waits for the present homes."""
        return {
            "ownership": self.watch.guarded(own),
            "regions": self.watch.run_once,
            "held jobs": self.held.count,
            "moving": self._moving.run_once,
            "hand over": self._hand_over.run_once,
        }

    def close(self) -> None:
        self.peers.close()

    @property
    def knows_directory(self) -> bool:
        """Whether what the directory has is here: before that, an unknown key may be good."""
        row = self.homes.row
        return row is not None and (row.directory == self.map.here or row.was_told)

    def elsewhere(self, tenant: TenantId) -> str | None:
        """The tenant's home, if that is another region."""
        home = self.homes.home_of(tenant)
        return None if home == self.map.here else home

    async def standing(self) -> RegionStanding:
        async with told_if_away, self._database.people() as connection:
            row = await store.read_region(connection)
            tenants = await store.count_homes(connection, row.directory)
        seen = [self._seen(name, row, tenants.get(name, 0)) for name in self.map.regions]
        held, in_doubt, lag_seconds = self.held.jobs, self.held.in_doubt, self.watch.lag_seconds()
        known = row.directory, row.directory_term, lag_seconds, row.conflicts
        return RegionStanding(self.map.here, *known, held, in_doubt, seen)

    def others(self) -> tuple[OtherRegion, ...]:
        """As they were a second ago."""
        heard, troubles = self.watch.latencies_ms, self.watch.troubles
        return tuple(
            OtherRegion(name, name in heard, self.held.jobs, troubles.get(name, ""))
            for name in self.map.others
        )

    def _seen(self, name: str, row: RegionRow, tenants: int) -> OneRegion:
        is_here, latency_ms = name == self.map.here, self.watch.latencies_ms.get(name)
        state = self.watch.states.get(name)
        heard = None if state is None else state.directory_term
        return OneRegion(
            name=name,
            urls=list(self.map.regions[name].urls),
            is_here=is_here,
            is_directory=name == row.directory,
            is_reachable=is_here or latency_ms is not None,
            latency_ms=None if latency_ms is None else round(latency_ms, 3),
            tenants=tenants,
            directory_term=row.directory_term if is_here else heard,
            trouble=self.watch.troubles.get(name, ""),
        )

    def may_have(self, tenant: TenantId, job: JobId) -> list[str]:
        """Where a job may be, most likely first: the home, where it was accepted, the others."""
        named = self.map.named(region_number_of(job))
        likely = [self.homes.home_of(tenant), *([named] if named else []), *self.map.regions]
        return list(dict.fromkeys(likely))


def joined_regions(
    database: Database,
    tenant_shards: TenantShards,
    settings: Settings,
    metrics: Metrics,
    clock: Clock,
    ports: RegionPorts,
) -> Regions | None:
    """None: there are no regions."""
    regions = region_map(settings.region, settings.regions)
    if regions is None:
        return None
    made_of = database, regions, settings, metrics, clock, ports
    return Regions(*made_of, tenant_shards=tenant_shards)
