"""What a tenant used, exact at any time: hours that are rolled up, and what is still in the log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.billing.periods import TURN, slices
from fairway.core.billing.usage import Used, joined
from fairway.core.errors import InvalidRequest
from fairway.core.ids import TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.services.transient_errors import told_if_away
from fairway.store.billing import usage as store
from fairway.store.billing.usage import UsageQuestion
from fairway.store.connections.database import Connection, Database

LINES_MAX = 20_000


class UsageWish(NamedTuple):
    """Whose usage, of which hours, by which periods: `cuts` are their beginnings."""

    tenant: TenantId
    since: datetime
    before: datetime
    cuts: Sequence[datetime]
    by_pool: bool = True
    by_type: bool = True


class UsageReader:
    def __init__(self, database: Database, tenant_shards: TenantShards) -> None:
        self._database = database
        self._tenant_shards = tenant_shards

    async def read(self, wish: UsageWish, asker: TenantId | None) -> list[Used]:
        """In slices of time: each statement is bounded, and no hour is read by two of them."""
        parts: list[Used] = []
        for since, before in slices(wish.since, wish.before, TURN):
            async with told_if_away, self._database.mixed(asker) as connection:
                parts += await self.on(connection, wish._replace(since=since, before=before))
            if len(parts) > LINES_MAX:
                raise InvalidRequest(
                    f"This has more than {LINES_MAX} lines: ask for less time, for longer periods"
                    " (by=day, by=month), or leave type out of group.",
                    field="group",
                )
        return joined(parts)

    async def on(
        self, connection: Connection, wish: UsageWish, lines_max: int = LINES_MAX + 1
    ) -> list[Used]:
        """On a connection that sees the log; a week a statement, however much was used."""
        parts: list[Used] = []
        for since, before in slices(wish.since, wish.before):
            asked = UsageQuestion(
                self._tenant_shards.of(wish.tenant),
                wish.tenant,
                since,
                before,
                wish.cuts,
                wish.by_pool,
                wish.by_type,
                lines_max,
            )
            parts += await store.read_usage(connection, asked)
        return joined(parts)
