"""Webhooks as rows: what tenants say of them, how far each has come, how its receiver does.

Whoever writes deliveries of a webhook holds its row first: so `due_at` never says that nothing is
to be sent while something is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import ShardId, TenantId
from fairway.core.webhooks.webhook import Secrets, Webhook, WebhookKey, WebhookTerms
from fairway.store.arrays import columns
from fairway.store.connections.database import (
    Connection,
    Record,
    execute,
    fetch,
    fetch_as,
    fetch_row,
    fetch_value,
    is_found,
)
from fairway.store.sql import load

_SQL = load("webhooks.sql")

BEFORE_ALL = (TenantId(-1), "00000000-0000-0000-0000-000000000000")


class Wanted(NamedTuple):
    """Which webhooks may have their turn now."""

    busy: Collection[str]
    quick_tenants: Collection[TenantId]  # who have as many turns as they may
    slow_tenants: Collection[TenantId]
    with_others: bool
    with_failing: bool
    limit: int


class SettledWebhook(NamedTuple):
    """How a receiver did in a turn."""

    tenant: TenantId
    id: str
    failures: int
    failing_since: datetime | None
    rest_seconds: float
    disabled_because: str


def _webhook(row: Record) -> Webhook:
    return Webhook(
        WebhookKey(row["shard"], row["tenant"], str(row["id"])),
        WebhookTerms(row["url"], tuple(row["kinds"]), row["description"], row["enabled"]),
        Secrets(row["secret"], row["old_secret"], row["old_secret_until"]),
        row["position"],
        row["failures"],
        row["failing_since"],
        row["disabled_because"],
        row["created_at"],
        row["updated_at"],
    )


class HeldWebhook(NamedTuple):
    id: str
    url: str
    failures: int
    failing_since: datetime | None


async def add_webhook(
    connection: Connection, key: WebhookKey, terms: WebhookTerms, secret: str, position: int
) -> None:
    rest = {"secret": secret, "position": position}
    await execute(connection, _SQL["add_webhook"], **key._asdict(), **terms._asdict(), **rest)


async def count_webhooks(connection: Connection, shard: ShardId, tenant: TenantId) -> int:
    count: int = await fetch_value(connection, _SQL["count_webhooks"], shard=shard, tenant=tenant)
    return count


async def list_webhooks(connection: Connection, shard: ShardId, tenant: TenantId) -> list[Webhook]:
    rows = await fetch(connection, _SQL["list_webhooks"], shard=shard, tenant=tenant)
    return [_webhook(row) for row in rows]


async def read_webhook(connection: Connection, key: WebhookKey) -> Webhook | None:
    row = await fetch_row(connection, _SQL["read_webhook"], **key._asdict())
    return _webhook(row) if row else None


async def lock_webhook(connection: Connection, key: WebhookKey) -> Webhook | None:
    """Until the transaction ends; None: it is not there."""
    row = await fetch_row(connection, _SQL["lock_webhook"], **key._asdict())
    return _webhook(row) if row else None


async def change_webhook(connection: Connection, changed: Webhook) -> None:
    """What its tenant may change of it, in a transaction that holds it."""
    await execute(
        connection,
        _SQL["change_webhook"],
        **changed.key._asdict(),
        **changed.terms._asdict(),
        position=changed.position,
        failures=changed.failures,
        failing_since=changed.failing_since,
        disabled_because=changed.disabled_because,
    )


async def delete_webhook(connection: Connection, key: WebhookKey) -> bool:
    """With all that was on its way."""
    async with connection.transaction():
        was_there = await is_found(connection, _SQL["delete_webhook"], **key._asdict())
        await execute(connection, _SQL["delete_deliveries"], **key._asdict())
    return was_there


async def rotate_secret(
    connection: Connection, key: WebhookKey, secret: str, seconds: float
) -> datetime | None:
    """Until when the old one signs as well; None when it does not, or there is no such webhook."""
    until: datetime | None = await fetch_value(
        connection, _SQL["rotate_secret"], **key._asdict(), secret=secret, seconds=seconds
    )
    return until


async def count_test(connection: Connection, key: WebhookKey) -> int:
    """The number of one more test, of a webhook that the caller holds."""
    number: int = await fetch_value(connection, _SQL["count_test"], **key._asdict())
    return number


async def wake_webhook(connection: Connection, key: WebhookKey) -> None:
    await execute(connection, _SQL["wake_webhook"], **key._asdict())


async def rewind(connection: Connection, key: WebhookKey, position: int) -> None:
    await execute(connection, _SQL["rewind"], **key._asdict(), position=position)


# -- for the owner of a shard --------------------------------------------------------------------


async def webhooks_behind(
    connection: Connection, shard: ShardId, after: tuple[TenantId, str], limit: int
) -> list[Webhook]:
    rows = await fetch(
        connection,
        _SQL["webhooks_behind"],
        shard=shard,
        tenant=after[0],
        after=after[1],
        limit=limit,
    )
    return [_webhook(row) for row in rows]


async def move_position(
    connection: Connection, key: WebhookKey, position: int, *, is_due: bool
) -> None:
    await execute(
        connection, _SQL["move_position"], **key._asdict(), position=position, is_due=is_due
    )


async def due_webhooks(connection: Connection, shard: ShardId, wanted: Wanted) -> list[Webhook]:
    rows = await fetch(connection, _SQL["due_webhooks"], shard=shard, **wanted._asdict())
    return [_webhook(row) for row in rows]


async def seconds_to_next(connection: Connection, shard: ShardId) -> float | None:
    seconds: float | None = await fetch_value(connection, _SQL["next_webhook"], shard=shard)
    return seconds


async def lock_webhooks(
    connection: Connection, shard: ShardId, done: Sequence[SettledWebhook]
) -> dict[str, HeldWebhook]:
    """Until the transaction ends: what comes after sees all that others wrote before."""
    asked = columns(done, "tenants", "ids")
    found = await fetch_as(HeldWebhook, connection, _SQL["lock_webhooks"], shard=shard, **asked)
    return {one.id: one for one in found}


async def settle_webhooks(
    connection: Connection, shard: ShardId, done: Sequence[SettledWebhook]
) -> None:
    """In a transaction that holds them."""
    names = ("tenants", "ids", "failures", "failing_since", "rest_seconds", "disabled_because")
    await execute(connection, _SQL["settle_webhooks"], shard=shard, **columns(done, *names))


async def switch_off(connection: Connection, key: WebhookKey, because: str) -> None:
    """In a transaction that holds it."""
    await execute(connection, _SQL["switch_off"], **key._asdict(), because=because)
