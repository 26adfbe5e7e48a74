"""All that a server does with tenants' logs of events, joined."""

from __future__ import annotations

from collections.abc import Callable

from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.events.event_reader import EventReader
from fairway.services.events.event_settings import EventSettings
from fairway.services.events.event_tails import EventTails
from fairway.services.events.sequencer import Sequencer
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.store.connections.database import Database


class Events:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        directory: Directory,
        metrics: Metrics,
        audit_log: AuditLog,
        *,
        shard_count: int,
        wake: Callable[[], None],
        wake_tails: Callable[[], None],
    ) -> None:
        """`wake` wakes the loop whose step is the sequencer's, `wake_tails` that of the tails."""
        self.reader = EventReader(database, shard_count=shard_count)
        self.tails = EventTails(database, self.reader, wake_tails, shard_count=shard_count)
        self.sequencer = Sequencer(
            database,
            dispatcher,
            directory,
            metrics,
            shard_count=shard_count,
            wake=wake,
            on_moved=self.tails.moved,
        )
        self.settings = EventSettings(database, directory, audit_log)
