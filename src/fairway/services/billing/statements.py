"""A month's statement: as it stands while the month is open, as it was kept once it is closed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.billing.periods import Month, month_of
from fairway.core.billing.pricing import Line, Price, PricedUse, cuts, lines_of, total_micros
from fairway.core.billing.usage import Used
from fairway.core.errors import NotFound
from fairway.core.ids import TenantId, TypeId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.services.billing.usage import UsageReader, UsageWish
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store.billing import prices, statements
from fairway.store.connections.database import Connection, Database

STATEMENT_LINES_MAX = 1_000_000  # a week: what is used is billed, however many types there are


class Statement(NamedTuple):
    month: Month
    is_closed: bool  # nothing of it will change any more
    closed_at: datetime | None  # when it was kept
    lines: list[Line]

    @property
    def total_micros(self) -> int:
        return total_micros(self.lines)


class _Facts(NamedTuple):
    """What a statement is made of."""

    used: list[Used]
    prices: list[Price]
    is_closed: bool
    was_there: bool  # the tenant, before the month was over


class Statements:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        usage: UsageReader,
        store_clock: StoreClock,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._directory = directory
        self._usage = usage
        self._store_clock = store_clock
        self._tenant_shards = tenant_shards

    async def of(self, tenant: TenantId, month: Month, asker: TenantId | None) -> Statement:
        if month > month_of(self._store_clock.now()):
            raise NotFound(f"{month} is yet to come.")
        async with told_if_away, self._database.mixed(asker) as connection:
            kept = await statements.read_statement(connection, tenant, month.first_day)
            facts = None if kept else await self._facts(connection, tenant, month)
        if kept is not None:
            return Statement(month, True, kept.closed_at, _decoded(kept.lines))
        assert facts is not None
        return Statement(month, facts.is_closed, None, await self._lines(facts, month))

    async def keep(self, tenant: TenantId, month: Month) -> None:
        """Write down what a month that is closed came to; one without a line needs none."""
        async with self._database.background() as connection:
            facts = await self._facts(connection, tenant, month)
        lines = await self._lines(facts, month)
        if lines and facts.is_closed:
            async with self._database.background() as connection:
                await statements.keep_statement(
                    connection, tenant, month.first_day, _encoded(lines)
                )

    async def spent_micros(self, connection: Connection, tenant: TenantId, month: Month) -> int:
        """As a statement by pool would say it: types are not told apart."""
        facts = await self._facts(connection, tenant, month, by_type=False)
        return total_micros(lines_of(self._priced(facts, month, {}), facts.prices, month))

    async def _facts(
        self, connection: Connection, tenant: TenantId, month: Month, *, by_type: bool = True
    ) -> _Facts:
        closed = await statements.closed_until(connection, self._tenant_shards.of(tenant))
        created = await statements.tenant_created_at(connection, tenant)
        known = await prices.list_prices(connection)
        wish = UsageWish(
            tenant, month.begins, month.ends, cuts(known, month), by_pool=True, by_type=by_type
        )
        used = await self._usage.on(connection, wish, STATEMENT_LINES_MAX)
        was_there = created is not None and created < month.ends
        return _Facts(used, known, closed is not None and closed >= month.ends, was_there)

    async def _lines(self, facts: _Facts, month: Month) -> list[Line]:
        if not (facts.used or facts.was_there):
            return []
        types = await self._directory.names.names_of(one.type for one in facts.used)
        return lines_of(self._priced(facts, month, types), facts.prices, month)

    def _priced(self, facts: _Facts, month: Month, types: Mapping[TypeId, str]) -> list[PricedUse]:
        begins = cuts(facts.prices, month)
        pools = self._directory.pools.by_number
        return [
            PricedUse(
                begins[one.period - 1], pools[one.pool].name, types.get(one.type, ""), *one[3:]
            )
            for one in facts.used
        ]


def _encoded(lines: Sequence[Line]) -> bytes:
    return json.dumps([line._asdict() for line in lines], separators=(",", ":")).encode()


def _decoded(text: bytes) -> list[Line]:
    return [Line(**one) for one in json.loads(text)]
