"""Acts on many jobs, and how far each has come.

An action moves in bounded batches, each in one transaction with the jobs it touched, so a crash
leaves it exactly where the last batch ended.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.bulk import BulkAct, BulkAction, BulkFilter, first_cursor
from fairway.core.ids import ShardId, TenantId, Term
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch_as,
    fetch_row,
    fetch_value,
)
from fairway.store.sql import load

_SQL = load("bulk_actions.sql")


class NewAction(NamedTuple):
    id: str
    act: BulkAct
    wanted: BulkFilter
    payload: bytes | None
    per_second: int
    matched: int


class RunningAction(NamedTuple):
    tenant: TenantId
    id: str
    act: BulkAct
    per_second: int


async def begin(connection: Connection, shard: ShardId, tenant: TenantId, new: NewAction) -> None:
    values = new._asdict() | new.wanted._asdict()
    del values["wanted"]
    cursor = first_cursor(new.act, new.wanted)
    await execute(
        connection, _SQL["begin_action"], shard=shard, tenant=tenant, cursor=cursor, **values
    )


class Step(NamedTuple):
    """What one batch did."""

    done: int
    asked_to_stop: int
    skipped: int
    failed: int
    cursor: str
    is_over: bool
    error: str | None = None


async def move(
    connection: Connection, shard: ShardId, term: Term, action: BulkAction, step: Step
) -> bool:
    """Whether it could be moved: it still runs, and the owner is still the owner."""
    touched = await execute(
        connection,
        _SQL["move_action"],
        shard=shard,
        term=term,
        tenant=action.tenant,
        id=action.id,
        **step._asdict(),
    )
    return touched == 1


async def lock(
    connection: Connection, shard: ShardId, tenant: TenantId, action: str
) -> BulkAction | None:
    """The action, held until the transaction ends; None when it runs no more."""
    row = await fetch_row(connection, _SQL["lock_action"], shard=shard, tenant=tenant, id=action)
    return BulkAction._make(row) if row else None


async def abort(connection: Connection, shard: ShardId, tenant: TenantId, action: str) -> bool:
    touched = await execute(connection, _SQL["abort_action"], shard=shard, tenant=tenant, id=action)
    return touched == 1


async def fail(
    connection: Connection,
    shard: ShardId,
    term: Term,
    action: RunningAction,
    error: str,
    *,
    if_forgotten: bool = False,
) -> bool:
    """It ends as failed; False when it runs no more, or the owner is another.

    `if_forgotten`: only if its tenant is not there any more.
    """
    touched = await execute(
        connection,
        _SQL["fail_action"],
        shard=shard,
        term=term,
        tenant=action.tenant,
        id=action.id,
        error=error,
        if_forgotten=if_forgotten,
    )
    return touched == 1


async def running(connection: Connection, shard: ShardId, limit: int) -> list[RunningAction]:
    return await fetch_as(
        RunningAction, connection, _SQL["running_actions"], shard=shard, limit=limit
    )


async def count_running(connection: Connection, shard: ShardId, tenant: TenantId) -> int:
    count: int = await fetch_value(connection, _SQL["count_running"], shard=shard, tenant=tenant)
    return count


async def read(
    connection: Connection, shard: ShardId, tenant: TenantId, action: str
) -> BulkAction | None:
    row = await fetch_row(connection, _SQL["read_action"], shard=shard, tenant=tenant, id=action)
    return BulkAction._make(row) if row else None


async def latest(
    connection: Connection, shard: ShardId, tenant: TenantId, limit: int
) -> list[BulkAction]:
    return await fetch_as(
        BulkAction, connection, _SQL["list_actions"], shard=shard, tenant=tenant, limit=limit
    )


async def forget(connection: Connection, shard: ShardId, before: datetime, limit: int) -> int:
    """Remove what ended before then; answers how many."""
    return await execute(
        connection, _SQL["forget_actions"], shard=shard, before=before, limit=limit
    )
