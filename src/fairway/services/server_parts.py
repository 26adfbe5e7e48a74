"""What every service of one server stands on: made first, handed on whole, changed by nobody.

No services of its own: what a server does is joined in `platform.py` and the groups beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.clock import Clock
from fairway.runtime.loops import Wakeups
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Instruments
from fairway.services.jobs.watchers import Watchers
from fairway.services.store_clock import StoreClock
from fairway.store.connections.database import Database


@dataclass(frozen=True, slots=True)
class ServerParts:
    database: Database
    settings: Settings
    clock: Clock
    store_clock: StoreClock
    instruments: Instruments
    wakeups: Wakeups
    watchers: Watchers  # of jobs
    tenant_shards: TenantShards
