"""Switching a webhook off that is a row in each part of a tenant in several shards: all or none.

Each part sends its own events and counts its own failures, to the same receiver. One that says that
it is gone is gone for all of them; one that fails for days is switched off only if none of the
parts had a success since. Whoever finds that out holds the rows of all parts, in the order that
everybody has. Nothing is decided here of a webhook in one shard, and nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairway.core.ids import TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.webhooks.webhook import Webhook, WebhookKey, part_id
from fairway.store.connections.database import Connection
from fairway.store.webhooks import deliveries
from fairway.store.webhooks import webhooks as store
from fairway.store.webhooks.webhooks import SettledWebhook


class SwitchingOff:
    def __init__(
        self, tenant_shards: TenantShards, parts_of: Callable[[TenantId], Sequence[TenantId]]
    ) -> None:
        self._tenant_shards = tenant_shards
        self._parts_of = parts_of  # the first first; none of a tenant in one shard

    def keys_of(self, settled: SettledWebhook) -> list[WebhookKey]:
        """Of the rows that are one webhook; none where it is one row, or stays on."""
        if not settled.disabled_because:
            return []
        parts = enumerate(self._parts_of(settled.tenant))
        return [
            WebhookKey(self._tenant_shards.of(one), one, part_id(settled.id, place))
            for place, one in parts
        ]

    async def held(self, connection: Connection, keys: Sequence[WebhookKey]) -> list[Webhook]:
        """Until the transaction ends, and before any other row is held in it."""
        found = [await store.lock_webhook(connection, key) for key in keys]
        return [one for one in found if one is not None]

    async def decided(
        self,
        connection: Connection,
        held: Sequence[Webhook],
        settled: SettledWebhook,
        *,
        is_gone: bool,
    ) -> SettledWebhook:
        """The same where all parts are off now; else without a reason to be."""
        others = [one for one in held if one.key.id != settled.id and one.terms.enabled]
        stays = settled._replace(disabled_because="")
        if not any(one.key.id == settled.id and one.terms.enabled for one in held):
            return stays  # another part has found it out, or somebody switched it off or deleted it
        since = settled.failing_since
        if not is_gone and since is not None:
            for one in others:
                if await deliveries.has_delivered_since(connection, one.key, since):
                    return stays
        for one in others:
            await store.switch_off(connection, one.key, settled.disabled_because)
        return settled
