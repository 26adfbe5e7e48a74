"""Rows of webhooks, looked for and changed within somebody's transaction. Begins none itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from fairway.core.errors import Conflict, NotFound
from fairway.core.webhooks.webhook import Webhook, WebhookKey, WebhookTerms
from fairway.store.connections.database import Connection
from fairway.store.events.log import read_events, read_heads
from fairway.store.webhooks import webhooks as store


async def held_in(connection: Connection, keys: Sequence[WebhookKey]) -> list[Webhook]:
    """Locked, in one order for all: the webhook in each part that has it, in one at least."""
    found = [await store.lock_webhook(connection, key) for key in keys]
    held = [one for one in found if one is not None]
    if not held:
        raise absent(keys[0].id)
    return held


async def changed_by(
    connection: Connection,
    held: Webhook,
    change: Callable[[WebhookTerms], WebhookTerms],
    url: str,
) -> Webhook:
    terms = change(held.terms)
    if terms.url != url:
        raise Conflict("Somebody else changed this webhook's address; ask again.")
    changed = held._replace(terms=terms)
    if terms.enabled and not held.terms.enabled:
        return changed._replace(
            position=await head_of(connection, held.key),
            failures=0,
            failing_since=None,
            disabled_because="",
        )
    if terms.url != held.terms.url:
        return changed._replace(failures=0, failing_since=None)
    return changed


async def head_of(connection: Connection, key: WebhookKey) -> int:
    heads = await read_heads(connection, [(key.shard, key.tenant)])
    return heads.get(key.tenant, 0)


async def position_at(connection: Connection, key: WebhookKey, since: datetime) -> int:
    """The last position before that moment, of those that the log still has."""
    page = await read_events(connection, key.shard, key.tenant, 0, 1)
    low, high = page.trimmed_to, page.last  # the answer is one of these, or between
    while low < high:
        middle = (low + high) // 2
        found = (await read_events(connection, key.shard, key.tenant, middle, 1)).events
        if found and found[0].at < since:
            low = found[0].position
        else:
            high = middle
    return low


def there(found: Webhook | None, key: WebhookKey) -> Webhook:
    if found is None:
        raise absent(key.id)
    return found


def absent(webhook: str) -> NotFound:
    return NotFound(f"There is no webhook {webhook[:64]!r}.")
