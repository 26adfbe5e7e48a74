"""Alarms of one server, joined: who looks, who keeps their history, and the marks beside graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fairway.core.insight.alarm_lines import AlarmLine
from fairway.core.insight.alarm_readings import OtherRegion
from fairway.core.insight.alarms import Raised
from fairway.runtime.loops import Step
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.insight.alarm_facts import AlarmFactsReader
from fairway.services.insight.alarm_ledger import AlarmLedger
from fairway.services.insight.alarm_watch import AlarmWatch
from fairway.services.insight.insight import Insight
from fairway.services.insight.marks import Marks
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.insight import alarm_history


class AlarmPorts(NamedTuple):
    data_dir: Path
    audit_log: AuditLog
    send: Callable[[], None]  # wakes who calls webhooks' receivers
    regions: Callable[[], tuple[OtherRegion, ...]] | None = None  # None: there is one


class Alarms:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        insight: Insight,
        directory: Directory,
        store_clock: StoreClock,
        metrics: Metrics,
        ports: AlarmPorts,
    ) -> None:
        self._database = database
        known = database, insight, directory, store_clock, metrics
        facts = AlarmFactsReader(*known, ports.data_dir, ports.regions)
        ledger = AlarmLedger(database, dispatcher, store_clock, ports.send)
        self._watch = AlarmWatch(facts.look, ledger, store_clock, metrics)
        self.marks = Marks(database, dispatcher, insight.board, ports.audit_log)

    def raised(self) -> list[Raised]:
        """The worst first."""
        return self._watch.raised()

    async def history(self, below: int, limit: int) -> list[AlarmLine]:
        """The newest first."""
        async with told_if_away, self._database.people() as connection:
            return await alarm_history.list_alarms(connection, below, limit)

    def steps(self) -> dict[str, Step]:
        return {"alarms": self._watch.run_once, "marks": self.marks.run_once}
