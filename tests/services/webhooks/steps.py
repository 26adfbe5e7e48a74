"""What tests of webhooks do: make one, have something happen, hurry what waits."""

from __future__ import annotations

from fairway.core.events.event import NewEvent
from fairway.core.ids import FIRST_SHARD, TenantId
from fairway.core.tenant import Tenant
from fairway.core.webhooks.webhook import Delivery, Webhook, WebhookKey, WebhookTerms
from fairway.services.platform import Platform
from fairway.store.events.log import add_notices

KIND = "circuit.opened"


async def hook(
    platform: Platform, tenant: Tenant, url: str, *kinds: str, enabled: bool = True
) -> Webhook:
    terms = WebhookTerms(url, kinds or ("circuit.*",), "", enabled)
    return await platform.outbound.webhooks.add(tenant.id, terms)


async def happen(
    platform: Platform, tenant: TenantId, count: int = 1, kind: str = KIND, of: str = "work"
) -> None:
    """So many events, on their way to the tenant's log."""
    async with platform.database.background() as connection:
        await add_notices(connection, [NewEvent(tenant, kind, of, "A sentence.")] * count)
    platform.events.sequencer.written(FIRST_SHARD)


async def hurry(platform: Platform) -> None:
    """Whatever waits for another try is due now."""
    async with platform.database.background() as connection:
        await connection.execute("UPDATE webhook_deliveries SET next_at = now() WHERE state = 0")
        await connection.execute("UPDATE webhooks SET due_at = now()")
    platform.loops["webhook calls"].wake()


async def deliveries(
    platform: Platform, key: WebhookKey, state: int | None = None
) -> list[Delivery]:
    return await platform.outbound.webhooks.deliveries(key, None, state, 100)
