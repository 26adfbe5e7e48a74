"""All that sends a tenant's events out, joined: composition only, decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from fairway.core.ids import TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.webhooks.addresses import AddressRules, parsed_networks
from fairway.core.webhooks.turns import Limits, Turns
from fairway.runtime.loops import Step, Wakeups
from fairway.runtime.name_lookup import NameLookup
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Instruments
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.audit_log import AuditLog
from fairway.services.store_clock import StoreClock
from fairway.services.webhooks.deliverer import Deliverer
from fairway.services.webhooks.destinations import Destinations
from fairway.services.webhooks.log_reader import LogReader
from fairway.services.webhooks.sender import Sender
from fairway.services.webhooks.switching_off import SwitchingOff
from fairway.services.webhooks.webhooks import WantJobEvents, WebhookPorts, Webhooks
from fairway.store.connections.database import Database

READING, SENDING = "webhook log", "webhook calls"  # names of the loops


class OutboundPorts(NamedTuple):
    want_job_events: WantJobEvents
    audit_log: AuditLog
    parts_of: Callable[[TenantId], Sequence[TenantId]]  # of a tenant in several shards


class Outbound:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        store_clock: StoreClock,
        instruments: Instruments,
        settings: Settings,
        wakeups: Wakeups,
        ports: OutboundPorts,
        tenant_shards: TenantShards,
    ) -> None:
        destinations = Destinations(rules_of(settings), NameLookup())
        read, send = wakeups.of(READING), wakeups.of(SENDING)

        def look() -> None:
            read()
            send()

        self.webhooks = Webhooks(
            database,
            destinations,
            store_clock,
            WebhookPorts(ports.want_job_events, look, ports.audit_log),
            per_tenant_max=settings.webhooks_per_tenant,
            tenant_shards=tenant_shards,
        )
        sender = Sender(
            destinations,
            store_clock,
            call_seconds=settings.webhook_call_seconds,
            spans=instruments.spans,
        )
        self._deliverer = Deliverer(
            database,
            dispatcher,
            sender,
            Turns(Limits()),
            store_clock,
            instruments,
            SwitchingOff(tenant_shards, ports.parts_of),
            on_free=send,
        )
        self._reader = LogReader(database, dispatcher, instruments, on_news=read, on_written=send)

    @property
    def steps(self) -> dict[str, Step]:
        return {READING: self._reader.run_once, SENDING: self._deliverer.run_once}

    def logs_grew(self, tenants: Iterable[TenantId]) -> None:
        """These tenants' logs, by what was just put in order here."""
        self._reader.logs_grew(tenants)

    async def close(self) -> None:
        await self._deliverer.close()


def rules_of(settings: Settings) -> AddressRules:
    """What an operator allows."""
    networks = parsed_networks(settings.webhook_private_networks or "")
    return AddressRules(settings.webhook_http, networks)
