"""Insight of one server, joined: who looks, who writes history down, and who answers."""

from __future__ import annotations

from fairway.core.insight.health import Health, health_of
from fairway.core.insight.sight import ServerSight
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.loops import Step
from fairway.runtime.telemetry import Metrics
from fairway.services.autoscale.autoscaler import Autoscaler
from fairway.services.autoscale.autoscaling import Autoscaling
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.fair_share_loop import FairShareLoop
from fairway.services.insight.board import Board
from fairway.services.insight.history import HistoryReader
from fairway.services.insight.minute_writer import MinuteWriter
from fairway.services.insight.observer import Observer
from fairway.services.insight.server_list import ServerList
from fairway.services.insight.tenant_view import TenantView
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.store_clock import StoreClock
from fairway.store.connections.database import Database


class Insight:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        fair_share_loop: FairShareLoop,
        directory: Directory,
        metrics: Metrics,
        store_clock: StoreClock,
        *,
        server: str,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._tenant_shards = tenant_shards
        self._observer = Observer(dispatcher, fair_share_loop, directory, metrics, store_clock)
        self.board = Board(database, self._observer, store_clock, server)
        self.minutes = MinuteWriter(
            database, directory, metrics, self._observer, store_clock, server
        )
        self.history = HistoryReader(database)
        self.servers = ServerList(database, server)
        autoscaler = Autoscaler(
            database, dispatcher, lambda: self.board.seen, store_clock, metrics, tenant_shards
        )
        self.autoscaling = Autoscaling(
            database, directory, store_clock, autoscaler, directory.audit_log
        )
        self.tenants = TenantView(dispatcher, self._observer, self.board, self.minutes, store_clock)

    @property
    def shard_count(self) -> int:
        return self._tenant_shards.count

    def health(self, seen: ServerSight) -> Health:
        is_away = self._database.hosts.is_unreachable
        return health_of(seen, self._tenant_shards.to_be_owned, is_store_away=is_away)

    @property
    def shards_to_be_owned(self) -> int:
        return self._tenant_shards.to_be_owned

    def steps(self) -> dict[str, Step]:
        own = {"insight": self.board.run_once, "minutes": self.minutes.run_once}
        return own | self.autoscaling.steps()
