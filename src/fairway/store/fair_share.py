"""What tenants owe of slot-time, so that the next owner of a shard knows it too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairway.store.connections.database import Connection, execute, fetch
from fairway.store.sql import load

_SQL = load("fair_share.sql")


class Debt(NamedTuple):
    pool: int
    tenant: int  # 0: the free group
    debt_us: int  # 0: nothing to remember


async def read_debts(connection: Connection, shard: int) -> list[Debt]:
    return [Debt._make(row) for row in await fetch(connection, _SQL["read_debts"], shard=shard)]


async def write_debts(connection: Connection, shard: int, term: int, debts: Sequence[Debt]) -> None:
    """Written twice they are the same; a replaced owner writes nothing."""
    owed = sorted(debt for debt in debts if debt.debt_us)
    paid = sorted(debt for debt in debts if not debt.debt_us)
    if owed:
        await execute(
            connection,
            _SQL["write_debts"],
            shard=shard,
            term=term,
            pools=[debt.pool for debt in owed],
            tenants=[debt.tenant for debt in owed],
            debts_us=[debt.debt_us for debt in owed],
        )
    if paid:
        await execute(
            connection,
            _SQL["forget_debts"],
            shard=shard,
            term=term,
            pools=[debt.pool for debt in paid],
            tenants=[debt.tenant for debt in paid],
        )
