"""All that a server does with tenants' logs of events, joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairway.core.ids import TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.telemetry import Instruments
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.events.event_reader import EventReader
from fairway.services.events.event_settings import EventSettings
from fairway.services.events.event_tails import EventTails
from fairway.services.events.sequencer import Sequencer
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.store.connections.database import Database


class EventPorts(NamedTuple):
    """Who is woken: the loops of the sequencer and of the tails; and who sends events out."""

    wake: Callable[[], None]
    wake_tails: Callable[[], None]
    on_moved: Callable[[Mapping[TenantId, int]], None]


class Events:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        directory: Directory,
        instruments: Instruments,
        audit_log: AuditLog,
        ports: EventPorts,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._ports = ports
        self.reader = EventReader(database, tenant_shards=tenant_shards)
        self.tails = EventTails(
            database, self.reader, ports.wake_tails, tenant_shards=tenant_shards
        )
        self.sequencer = Sequencer(
            database,
            dispatcher,
            directory,
            instruments.metrics,
            tenant_shards=tenant_shards,
            wake=ports.wake,
            on_moved=self._moved,
        )
        self.settings = EventSettings(database, directory, audit_log, instruments.clock)

    def _moved(self, heads: Mapping[TenantId, int]) -> None:
        self.tails.moved(heads)
        self._ports.on_moved(heads)
