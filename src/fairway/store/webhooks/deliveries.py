"""Deliveries as rows: each is written before it is sent, and says afterwards what it came to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.webhooks.webhook import Delivery, WebhookKey
from fairway.store.arrays import columns
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_as,
    fetch_value,
    is_found,
)
from fairway.store.sql import load

_SQL = load("deliveries.sql")

BODY_BYTES_SHOWN = 2000  # of what is sent, in a list: a page of them stays small


class NewDelivery(NamedTuple):
    number: int
    kind: str
    body: bytes
    trace: bytes | None = None  # of the job that it tells of


class DueDelivery(NamedTuple):
    number: int
    kind: str
    body: bytes
    attempts: int
    trace: bytes | None = None  # of the job that it tells of


class CallMade(NamedTuple):
    """What one call came to, as its row has it."""

    tenant: TenantId
    webhook: str
    number: int
    state: int
    pause_seconds: float | None  # to the next; None: there is none
    status: int | None
    error: str
    tries: int  # before this one


def _of(key: WebhookKey) -> dict[str, object]:
    return {"shard": key.shard, "tenant": key.tenant, "webhook": key.id}


async def hold_term(connection: Connection, shard: ShardId, term: Term) -> datetime | None:
    """The database's time, if this term is in force; it stays so until the transaction ends."""
    now: datetime | None = await fetch_value(connection, _SQL["hold_term"], shard=shard, term=term)
    return now


async def write_deliveries(
    connection: Connection, key: WebhookKey, made: Sequence[NewDelivery]
) -> None:
    """In a transaction that holds the webhook."""
    rows = columns(made, "numbers", "kinds", "bodies", "traces")
    await execute(connection, _SQL["write_deliveries"], **_of(key), **rows)


async def read_traces(
    connection: Connection, key: WebhookKey, jobs: Sequence[str]
) -> dict[str, bytes]:
    """By job, of those that belong to a trace."""
    if not jobs:
        return {}
    wanted = {"tenants": [key.tenant] * len(jobs), "ids": list(jobs)}
    rows = await fetch(connection, _SQL["read_traces"], shard=key.shard, **wanted)
    return {row["id"]: row["trace"] for row in rows}


async def count_waiting(connection: Connection, key: WebhookKey, most: int) -> int:
    count: int = await fetch_value(connection, _SQL["count_waiting"], **_of(key), most=most)
    return count


async def count_waiting_tests(connection: Connection, key: WebhookKey, most: int) -> int:
    count: int = await fetch_value(connection, _SQL["count_waiting_tests"], **_of(key), most=most)
    return count


async def due_deliveries(
    connection: Connection, shard: ShardId, asked: Sequence[tuple[TenantId, str, int]]
) -> dict[str, list[DueDelivery]]:
    """By webhook, so many of each."""
    wanted = columns(asked, "tenants", "webhooks", "eaches")
    found: dict[str, list[DueDelivery]] = {}
    for row in await fetch(connection, _SQL["due_deliveries"], shard=shard, **wanted):
        found.setdefault(str(row["webhook"]), []).append(DueDelivery(*row[1:]))
    return found


async def record_calls(connection: Connection, shard: ShardId, calls: Sequence[CallMade]) -> None:
    names = ("tenants", "webhooks", "numbers", "states", "pauses", "statuses", "errors", "tries")
    await execute(connection, _SQL["record_calls"], shard=shard, **columns(calls, *names))


async def has_delivered_since(connection: Connection, key: WebhookKey, since: datetime) -> bool:
    """Whether its receiver took anything."""
    return await is_found(connection, _SQL["delivered_since"], **_of(key), since=since)


async def list_deliveries(
    connection: Connection,
    key: WebhookKey,
    before: tuple[datetime, int],
    state: int | None,
    limit: int,
) -> list[Delivery]:
    asked = {"before": before[0], "number": before[1], "state": state, "limit": limit}
    asked |= {"shown": BODY_BYTES_SHOWN}
    return await fetch_as(Delivery, connection, _SQL["list_deliveries"], **_of(key), **asked)


async def read_delivery(connection: Connection, key: WebhookKey, number: int) -> Delivery | None:
    asked = {"number": number, "shown": BODY_BYTES_SHOWN}
    found = await fetch_as(Delivery, connection, _SQL["read_delivery"], **_of(key), **asked)
    return found[0] if found else None


async def replay_delivery(connection: Connection, key: WebhookKey, number: int) -> bool:
    """In a transaction that holds the webhook; False: it is not there."""
    return await is_found(connection, _SQL["replay_delivery"], **_of(key), number=number)


async def replay_failed(
    connection: Connection, key: WebhookKey, since: datetime, limit: int
) -> int:
    """In a transaction that holds the webhook; answers how many."""
    return await execute(connection, _SQL["replay_failed"], **_of(key), since=since, limit=limit)


async def trim_deliveries(connection: Connection, key: WebhookKey, kept: int) -> int:
    return await execute(connection, _SQL["trim_deliveries"], **_of(key), kept=kept)


async def forget_deliveries(
    connection: Connection, shard: ShardId, before: datetime, limit: int
) -> int:
    asked = {"before": before, "limit": limit}
    return await execute(connection, _SQL["forget_deliveries"], shard=shard, **asked)
