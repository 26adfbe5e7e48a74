"""Holds tenants to what they may spend in a month: tells them, and then starts no more of theirs.

The hold is one of our own among those of other sources: a pause that somebody made is neither used
nor ended by it. Every server reads whom caps hold; only the owner of a tenant's shard moves one,
and it moves and tells in one transaction, so a tenant hears of each step once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fairway.core.audit import Act, Actor
from fairway.core.backlog.holds import Hold
from fairway.core.billing.money import exact, money
from fairway.core.billing.periods import month_of
from fairway.core.billing.spend_cap import SpendCap, SpendState, Stage, kinds_of, next_state
from fairway.core.events.event import NewEvent
from fairway.core.ids import TenantId
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import logger
from fairway.services.billing.statements import Statements
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.audit_log import AuditLog
from fairway.services.restraints.holds import HoldRegistry
from fairway.services.transient_errors import told_if_away
from fairway.store.billing import spend_caps as store
from fairway.store.billing.spend_caps import CapPage, CapRow
from fairway.store.connections.database import Connection, Database
from fairway.store.events.log import add_notices

log = logger("spend_caps")

SOURCE = REASON = "spend_cap"
REST_SECONDS = 5.0
BUSY_SECONDS = 0.2  # between parts of a long list
CAPS_AT_ONCE = 50
NO_TENANT = TenantId(0)
LONG_LOOK_US = 500_000
RESTS = 50  # so many times as long as a long look took

_SENTENCES = {
    "spend.near": "You have spent {spent} of the {cap} that you may this month.",
    "spend.reached": "You have spent the {cap} that you may this month. What runs, runs on;"
    " in {grace} s no more jobs will start.",
    "spend.paused": "The {cap} of this month are spent: jobs are accepted and wait until the"
    " cap is raised or the month is over.",
    "spend.resumed": "Your jobs start again.",
}


class CapView(NamedTuple):
    row: CapRow
    spent_micros: int


class CapPorts(NamedTuple):
    holds: HoldRegistry
    on_change: Callable[[], None]
    audit_log: AuditLog
    currency: str


class SpendCaps:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        statements: Statements,
        ports: CapPorts,
        clock: Clock,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._holds, self._on_change, self._audit_log, self._currency = ports
        self._statements = statements
        self._clock = clock
        self._after = NO_TENANT
        self._rests_until_us: dict[TenantId, int] = {}  # whose last look took its time

    async def run_once(self, now_us: int) -> float:
        page = CapPage(self._dispatcher.open_shards(), self._after, CAPS_AT_ONCE)
        async with self._database.background() as connection:
            rows = await store.caps_after(connection, page)
        for row in rows:
            began_us = self._clock.now_us()
            if began_us < self._rests_until_us.get(row.tenant, 0):
                continue
            try:
                await self._look_at(row)
            except Exception as error:  # one whose sums cannot be read keeps no other from theirs
                log.warning("spending not looked at", tenant=row.tenant, error=repr(error))
            self._rest(row.tenant, self._clock.now_us() - began_us)
        await self.hear()
        if len(rows) < CAPS_AT_ONCE:
            self._after = NO_TENANT
            return REST_SECONDS
        self._after = rows[-1].tenant
        return BUSY_SECONDS

    def _rest(self, tenant: TenantId, took_us: int) -> None:
        """Whoever used so much that a look is long is looked at less often: others come too."""
        self._rests_until_us.pop(tenant, None)
        if took_us > LONG_LOOK_US:
            self._rests_until_us[tenant] = self._clock.now_us() + RESTS * took_us

    async def hear(self) -> None:
        """Whom caps hold back, as the store has it."""
        async with self._database.background() as connection:
            tenants = await store.paused_by_caps(connection)
        self._holds.replace(SOURCE, [Hold(tenant, reason=REASON) for tenant in tenants])

    async def _look_at(self, row: CapRow) -> None:
        async with self._database.background() as connection:
            spent = await self._statements.spent_micros(connection, row.tenant, month_of(row.now))
            state = next_state(row.cap, row.state, spent, row.now)
            if state != row.state:
                await self._move(connection, row, state, spent)

    async def _move(
        self, connection: Connection, row: CapRow, state: SpendState, spent_micros: int
    ) -> None:
        """To another stage, and tell: both or neither."""
        told = [self._notice(row, kind, spent_micros) for kind in kinds_of(row.state, state)]
        async with connection.transaction():
            if await store.move_cap(connection, row, state) and told:
                await add_notices(connection, told)

    def _notice(self, row: CapRow, kind: str, spent_micros: int | None) -> NewEvent:
        """A sentence for people; for programs the same as exact decimals, in text."""
        detail = _SENTENCES[kind].format(
            spent=money(spent_micros or 0, self._currency),
            cap=money(row.cap_micros, self._currency),
            grace=row.grace_seconds,
        )
        facts = {"cap": exact(row.cap_micros), "currency": self._currency}
        if spent_micros is not None:
            facts["amount"] = exact(spent_micros)
        return NewEvent(row.tenant, kind, str(month_of(row.now)), detail, facts=facts)

    # -- what operators and tenants ask ----------------------------------------------------------

    def held(self) -> list[TenantId]:
        """Whom caps hold back now, as this server has heard."""
        return self._holds.tenants_of(SOURCE)

    async def of(self, tenant: TenantId, asker: TenantId | None) -> CapView | None:
        """None: it may spend what it likes."""
        async with told_if_away, self._database.mixed(asker) as connection:
            row = await store.read_cap(connection, tenant)
            if row is None:
                return None
            month = month_of(row.now)
            return CapView(row, await self._statements.spent_micros(connection, tenant, month))

    async def put(self, tenant: TenantId, name: str, cap: SpendCap, actor: Actor) -> None:
        async with told_if_away, self._database.asked(None) as connection, connection.transaction():
            before = await _fields(connection, tenant)
            await store.put_cap(connection, tenant, cap)
            act = Act("set_spend_cap", name, tenant, before, cap._asdict())
            await self._audit_log.add(connection, actor, act)
        self._rests_until_us.pop(tenant, None)
        self._on_change()

    async def drop(self, tenant: TenantId, name: str, actor: Actor) -> bool:
        """Whether there was one."""
        async with told_if_away, self._database.asked(None) as connection, connection.transaction():
            row = await store.read_cap(connection, tenant)
            before = {} if row is None else row.cap._asdict()
            was_there = await store.drop_cap(connection, tenant)
            if was_there:
                await self._tell_if_paused(connection, row)
                act = Act("drop_spend_cap", name, tenant, before)
                await self._audit_log.add(connection, actor, act)
        self._on_change()
        return was_there

    async def _tell_if_paused(self, connection: Connection, row: CapRow | None) -> None:
        """Whoever heard that jobs wait hears that they go on."""
        if row is not None and row.stage == Stage.PAUSED:
            await add_notices(connection, [self._notice(row, "spend.resumed", None)])


async def _fields(connection: Connection, tenant: TenantId) -> dict[str, int]:
    row = await store.read_cap(connection, tenant)
    return {} if row is None else row.cap._asdict()
