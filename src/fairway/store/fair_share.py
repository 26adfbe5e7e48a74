"""What tenants owe of slot-time, so that the next owner of a shard knows it too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from fairway.core.ids import PoolId, ShardId, TenantId, Term
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, execute, fetch_as
from fairway.store.sql import load

_SQL = load("fair_share.sql")


class Debt(NamedTuple):
    pool: PoolId
    tenant: TenantId  # 0: the free group
    debt_us: int  # 0: nothing to remember


async def read_debts(connection: Connection, shards: Collection[ShardId]) -> list[Debt]:
    """The free group's is said with every shard: of several the last counts."""
    return await fetch_as(Debt, connection, _SQL["read_debts"], shards=list(shards))


async def write_debts(
    connection: Connection, shard: ShardId, term: Term, debts: Sequence[Debt]
) -> None:
    """Written twice they are the same; a replaced owner writes nothing."""
    owed = sorted(debt for debt in debts if debt.debt_us)
    paid = sorted(debt for debt in debts if not debt.debt_us)
    if owed:
        rows = columns(owed, "pools", "tenants", "debts_us")
        await execute(connection, _SQL["write_debts"], shard=shard, term=term, **rows)
    if paid:
        rows = columns(paid, "pools", "tenants")
        await execute(connection, _SQL["forget_debts"], shard=shard, term=term, **rows)
