"""The books of one server, joined: who keeps them, and who answers about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.clock import Clock
from fairway.runtime.loops import Step
from fairway.runtime.telemetry import Metrics
from fairway.services.billing.attempts import Attempts
from fairway.services.billing.month_closer import MonthCloser
from fairway.services.billing.prices import Prices
from fairway.services.billing.roll_up import RollUp
from fairway.services.billing.spend_caps import CapPorts, SpendCaps
from fairway.services.billing.statements import Statements
from fairway.services.billing.usage import UsageReader
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.restraints.holds import HoldRegistry
from fairway.services.store_clock import StoreClock
from fairway.store.connections.database import Database


class BillingPorts(NamedTuple):
    holds: HoldRegistry
    on_cap: Callable[[], None]  # a spend cap was changed
    audit_log: AuditLog
    metrics: Metrics
    currency: str


class Billing:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        directory: Directory,
        store_clock: StoreClock,
        clock: Clock,
        ports: BillingPorts,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self.usage = UsageReader(database, tenant_shards)
        self.attempts = Attempts(database, tenant_shards)
        self.prices = Prices(database, directory.pools, ports.audit_log)
        self.statements = Statements(
            database, directory, self.usage, store_clock, tenant_shards=tenant_shards
        )
        self.spend_caps = SpendCaps(
            database,
            dispatcher,
            self.statements,
            CapPorts(ports.holds, ports.on_cap, ports.audit_log, ports.currency),
            clock,
        )
        self.roll_up = RollUp(database, dispatcher, clock, ports.metrics)
        self.month_closer = MonthCloser(database, self.roll_up, self.statements, store_clock)

    def steps(self) -> dict[str, Step]:
        return {
            "usage": self.roll_up.run_once,
            "months": self.month_closer.run_once,
            "spend caps": self.spend_caps.run_once,
        }
