"""Who decides what runs, and who writes down what did: those that need each other are made here.

The dispatcher has leases and ends written, and hears when they are. The failure policy decides what
an end leads to, and what it holds back the dispatcher must not start. So each calls one that is
made after it. What it calls is a method of `Engine`, which makes both: from there "go to
definition" leads on. Nobody else needs one that is not there yet.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

from fairway.core.backlog.streams import WindowLimits
from fairway.core.fair_share.fairness import PoolShare
from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.pools import PoolTable
from fairway.runtime.random_ids import lease_tokens
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Instruments
from fairway.services.dispatch.dispatcher import Dispatcher, DispatchSettings
from fairway.services.dispatch.ports import Ports, SortOut
from fairway.services.failure.failure_policy import FailurePolicy
from fairway.services.group_commit import linger_of_ends
from fairway.services.jobs.watchers import Watchers
from fairway.services.recording.lease_writer import LeaseWriter
from fairway.services.recording.ports import Bounds, RecorderPorts
from fairway.services.recording.recorder import Recorder
from fairway.services.restraints.holds import HoldRegistry
from fairway.services.restraints.restraints import hold_streams
from fairway.services.sessions.sessions import End, Lease
from fairway.services.store_clock import StoreClock
from fairway.store.connections.database import Database
from fairway.store.registry.tenants import Cluster


class EnginePorts(NamedTuple):
    """What it needs of others: a look at the clock, a place for large results, and who listens."""

    drop_expired: SortOut  # of leases whose jobs have a last moment to start
    keep_result: Callable[[Lease, bytes], Awaitable[bytes]]
    on_ends: Callable[[Sequence[End]], None]  # they are on disk
    on_scheduled: Callable[[], None]  # a retry is to be run later
    on_restrained: Callable[[], None]  # the store and the tenant are to hear of it
    want_reads: Callable[[], None]  # windows run low
    lazy_lease: Callable[[], None]  # there is one again that may have to be written


class Engine:
    def __init__(
        self,
        database: Database,
        settings: Settings,
        dispatching: DispatchSettings,
        pools: PoolTable,
        watchers: Watchers,
        store_clock: StoreClock,
        instruments: Instruments,
        ports: EnginePorts,
    ) -> None:
        self._ports = ports
        self.failure_policy = FailurePolicy(
            store_clock, pools, jitter=random.Random().random, on_news=self._restrain
        )
        self.dispatcher = Dispatcher(
            dispatching,
            Ports(
                write_leases=self._write_leases,
                lazy_lease=ports.lazy_lease,
                record_ends=self._record_ends,
                forget_ends=self._forget_ends,
                want_reads=ports.want_reads,
                drop_expired=ports.drop_expired,
            ),
            self.failure_policy,
            pools,
            clock=store_clock,
            metrics=instruments.metrics,
            spans=instruments.spans,
        )
        self.holds = HoldRegistry(self.dispatcher)
        self.recorder = Recorder(
            database,
            self.dispatcher,
            watchers,
            store_clock,
            instruments,
            Bounds(
                settings.inline_bytes_max,
                settings.results_waiting_bytes_max,
                linger_of_ends(
                    is_distributed=database.placement is not None,
                    processes=settings.server_processes,
                ),
            ),
            RecorderPorts(
                keep_result=ports.keep_result,
                on_ends=ports.on_ends,
                on_scheduled=ports.on_scheduled,
            ),
        )
        self.lease_writer = LeaseWriter(
            database,
            self.dispatcher,
            watchers,
            instruments,
            store_clock,
            lazy_after_ms=settings.lazy_running_ms,
        )

    def _write_leases(self, leases: list[Lease]) -> None:
        self.lease_writer.write(leases)

    def _record_ends(self, ends: list[End]) -> None:
        self.recorder.record(ends)

    def _forget_ends(self, shards: Collection[ShardId]) -> None:
        self.recorder.forget_shards(shards)

    def _restrain(self, tenants: set[TenantId]) -> None:
        """Streams are held at once; the store and the tenant hear of it a moment later."""
        hold_streams(self.failure_policy, self.holds, tenants)
        self._ports.on_restrained()


def dispatch_settings(
    settings: Settings,
    cluster: Cluster,
    tenant_shards: TenantShards,
    scheduler: type[PoolShare],
) -> DispatchSettings:
    return DispatchSettings(
        limits=WindowLimits(jobs_total=settings.window_jobs, bytes_total=settings.window_bytes),
        tokens=lease_tokens(cluster.secret),
        inline_bytes_max=settings.inline_bytes_max,
        scheduler=scheduler,
        grace_seconds=settings.timeout_grace_seconds,
        tenant_shards=tenant_shards,
    )
