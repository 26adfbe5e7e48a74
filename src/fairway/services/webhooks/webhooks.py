"""What tenants do with webhooks: make, look, change, rotate the secret, try out, replay.

Operators have webhooks of their own, as the tenant STAFF: no log of events leads there, but
alarms do (`insight/alarm_ledger.py`). Any server can do all of it; the owner of the shard reads the
log for them and calls. A secret is shown when it is made and never again: it is kept as it is, for
it has to sign. A webhook of a tenant in several shards is a row in each part (`also`), with the
same terms and the same secret: they are written in one transaction, all or none.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import Conflict, LimitReached, NotFound
from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.webhooks.messages import TEST_KIND, body_of_test, wants_job_events
from fairway.core.webhooks.signing import SECRET_BYTES, secret_text
from fairway.core.webhooks.webhook import (
    Delivery,
    Webhook,
    WebhookKey,
    WebhookTerms,
    delivery_id,
    number_of,
    part_id,
    shown_url,
)
from fairway.services.registry.audit_log import AuditLog
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.services.webhooks.destinations import Destinations
from fairway.services.webhooks.webhook_rows import (
    absent,
    changed_by,
    head_of,
    held_in,
    position_at,
    there,
)
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.query_slots import SlowUse
from fairway.store.connections.row_security import UseAs
from fairway.store.webhooks import deliveries as rows
from fairway.store.webhooks import webhooks as store
from fairway.store.webhooks.deliveries import NewDelivery

NEARLY = timedelta(seconds=60)  # events stand in about the order of their times
TESTS_MAX = 10  # that wait for a receiver at a time
REPLAYED_MAX = 1000  # failed deliveries in one call
_LAST = (1 << 63) - 1

#: Has what becomes of a tenant's jobs written to its log.
WantJobEvents: TypeAlias = Callable[[TenantId, Actor], Awaitable[None]]


class WebhookPorts(NamedTuple):
    want_job_events: WantJobEvents
    on_change: Callable[[], None]  # something may be to be sent
    audit_log: AuditLog


class Replayed(NamedTuple):
    deliveries: int | None  # that are sent again; None: all of the log since then, in turn
    is_more: bool  # ask again for the rest


class Webhooks:
    def __init__(
        self,
        database: Database,
        destinations: Destinations,
        store_clock: StoreClock,
        ports: WebhookPorts,
        *,
        per_tenant_max: int,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._destinations = destinations
        self._store_clock = store_clock
        self._ports = ports
        self._per_tenant_max = per_tenant_max
        self._tenant_shards = tenant_shards

    def key_of(self, tenant: TenantId, webhook: str) -> WebhookKey:
        """Refuses a text that is no id as one that is not there."""
        try:
            given = str(uuid.UUID(webhook))
        except ValueError:
            given = ""
        if given != webhook:
            raise absent(webhook)
        return WebhookKey(self._shard(tenant), tenant, webhook)

    def keys_of(self, parts: Sequence[TenantId], webhook: str) -> list[WebhookKey]:
        """The same, in each part of a tenant in several shards."""
        known = self.key_of(parts[0], webhook)
        if len(parts) == 1:
            return [known]
        return [self.key_of(one, part_id(webhook, place)) for place, one in enumerate(parts)]

    def _shard(self, tenant: TenantId) -> ShardId:
        """What is the operators' own is done by the owner of shard 0."""
        return ShardId(0) if tenant == STAFF else self._tenant_shards.of(tenant)

    def _still_takes(self, key: WebhookKey) -> None:
        if key.tenant != STAFF:
            self._tenant_shards.still_takes(key.tenant, key.shard)

    def _asked(self, tenant: TenantId) -> UseAs | SlowUse:
        return self._database.asked(None if tenant == STAFF else tenant)

    def _asked_all(self, keys: Sequence[WebhookKey]) -> UseAs | SlowUse:
        """For rows of several parts in one transaction: a connection of a tenant's own sees one."""
        tenant = keys[0].tenant
        return self._asked(tenant) if len(keys) == 1 else self._database.writing(tenant)

    # -- make and change ---------------------------------------------------------------------

    async def add(
        self,
        tenant: TenantId,
        terms: WebhookTerms,
        actor: Actor = PLATFORM,
        *,
        also: Sequence[TenantId] = (),
    ) -> Webhook:
        """It hears of what happens from now on."""
        await self._destinations.find(terms.url, tenant)
        for one in (tenant, *also):
            await self._ask_for_events(one, terms, actor)
        keys, secret = self.keys_of((tenant, *also), str(uuid.uuid4())), _new_secret()
        key = keys[0]
        async with told_if_away, self._asked_all(keys) as connection:
            self._still_takes(key)
            others = await store.count_webhooks(connection, key.shard, tenant)
            if others >= self._per_tenant_max:
                raise LimitReached(
                    f"There are {others} webhooks already, as many as there may be. Delete some, or"
                    " let one receiver pass events on.",
                    code="TOO_MANY_WEBHOOKS",
                    retry_after_seconds=60,  # time alone does not help
                )
            async with connection.transaction():
                for each in keys:
                    position = await head_of(connection, each)
                    await store.add_webhook(connection, each, terms, secret, position)
                await self._add_line(connection, actor, "add_webhook", key, after=terms)
            made = await store.read_webhook(connection, key)
        return there(made, key)

    async def change(
        self,
        key: WebhookKey,
        change: Callable[[WebhookTerms], WebhookTerms],
        actor: Actor = PLATFORM,
        *,
        also: Sequence[WebhookKey] = (),
    ) -> Webhook:
        """One that is switched on hears of what happens from now on; `replay` brings the rest."""
        before = (await self.of_parts((key, *also)))[0]
        url = change(before.terms).url
        await self._destinations.find(url, key.tenant)
        async with told_if_away, self._asked_all((key, *also)) as connection:
            async with connection.transaction():
                self._still_takes(key)
                held = await held_in(connection, (key, *also))
                changed = [await changed_by(connection, one, change, url) for one in held]
                for one in changed:
                    await store.change_webhook(connection, one)
                first, terms = held[0], changed[0].terms
                await self._add_line(
                    connection, actor, "change_webhook", first.key, first.terms, terms
                )
            found = await store.read_webhook(connection, first.key)
        for one in changed:
            await self._ask_for_events(one.key.tenant, one.terms, actor)
        self._ports.on_change()
        return there(found, key)

    async def _ask_for_events(self, tenant: TenantId, terms: WebhookTerms, actor: Actor) -> None:
        if tenant != STAFF and terms.enabled and wants_job_events(terms.kinds):
            await self._ports.want_job_events(tenant, actor)

    async def remove(
        self, key: WebhookKey, actor: Actor = PLATFORM, *, also: Sequence[WebhookKey] = ()
    ) -> None:
        async with (
            told_if_away,
            self._asked_all((key, *also)) as connection,
            connection.transaction(),
        ):
            self._still_takes(key)
            held = await held_in(connection, (key, *also))
            for one in held:
                if not await store.delete_webhook(connection, one.key):
                    raise absent(key.id)
            await self._add_line(connection, actor, "delete_webhook", key, held[0].terms)

    async def rotate(
        self,
        key: WebhookKey,
        overlap_seconds: float,
        actor: Actor = PLATFORM,
        *,
        also: Sequence[WebhookKey] = (),
    ) -> tuple[str, datetime | None]:
        """The new secret, and until when the one before signs beside it."""
        await self.of_parts((key, *also))
        secret, until = _new_secret(), None
        async with (
            told_if_away,
            self._asked_all((key, *also)) as connection,
            connection.transaction(),
        ):
            self._still_takes(key)
            for one in await held_in(connection, (key, *also)):
                until = await store.rotate_secret(connection, one.key, secret, overlap_seconds)
            act = Act("rotate_webhook", key.id, _whose(key), after={"both_sign_until": until})
            await self._ports.audit_log.add(connection, actor, act)
        return secret, until

    async def _add_line(
        self,
        connection: Connection,
        actor: Actor,
        action: str,
        key: WebhookKey,
        before: WebhookTerms | None = None,
        after: WebhookTerms | None = None,
    ) -> None:
        """Of the audit, in the transaction of the act."""
        act = Act(
            action,
            key.id,
            _whose(key),
            {} if before is None else _said(before),
            {} if after is None else _said(after),
        )
        await self._ports.audit_log.add(connection, actor, act)

    # -- try out and replay ------------------------------------------------------------------

    async def test(self, key: WebhookKey) -> Delivery:
        """An event that stands in no log, on its way to this webhook alone."""
        body = body_of_test(key.id, self._store_clock.now())
        async with told_if_away, self._asked(key.tenant) as connection:
            async with connection.transaction():
                held = there(await store.lock_webhook(connection, key), key)
                if not held.terms.enabled:
                    raise _switched_off(held)
                count = await store.count_test(connection, key)
                if await rows.count_waiting_tests(connection, key, TESTS_MAX) >= TESTS_MAX:
                    raise LimitReached(
                        f"{TESTS_MAX} tests of this webhook wait for its receiver already.",
                        code="TOO_MANY_WEBHOOK_TESTS",
                        retry_after_seconds=60,
                    )
                await rows.write_deliveries(connection, key, [NewDelivery(-count, TEST_KIND, body)])
            found = await rows.read_delivery(connection, key, -count)
        self._ports.on_change()
        return _sent(found, delivery_id(key.id, -count))

    async def replay(self, key: WebhookKey, delivery: str) -> Delivery:
        """It is sent again, with all its tries, under the same id."""
        number = number_of(delivery, key.id)
        if number is None:
            raise _no_delivery(delivery)
        async with told_if_away, self._asked(key.tenant) as connection:
            async with connection.transaction():
                there(await store.lock_webhook(connection, key), key)
                if not await rows.replay_delivery(connection, key, number):
                    raise _no_delivery(delivery)
                await store.wake_webhook(connection, key)
            found = await rows.read_delivery(connection, key, number)
        self._ports.on_change()
        return _sent(found, delivery)

    async def replay_failed(self, key: WebhookKey, since: datetime) -> Replayed:
        """What was given up since then."""
        async with (
            told_if_away,
            self._asked(key.tenant) as connection,
            connection.transaction(),
        ):
            there(await store.lock_webhook(connection, key), key)
            count = await rows.replay_failed(connection, key, since, REPLAYED_MAX)
            await store.wake_webhook(connection, key)
        self._ports.on_change()
        return Replayed(count, count == REPLAYED_MAX)

    async def replay_all(self, key: WebhookKey, since: datetime) -> Replayed:
        """All that the log has since then and the webhook wants, also what it never had."""
        await self.read(key)
        async with told_if_away, self._asked(key.tenant) as connection:
            position = await position_at(connection, key, since - NEARLY)
            await store.rewind(connection, key, position)
        self._ports.on_change()
        return Replayed(None, False)

    # -- look --------------------------------------------------------------------------------

    async def read(self, key: WebhookKey) -> Webhook:
        async with told_if_away, self._asked(key.tenant) as connection:
            return there(await store.read_webhook(connection, key), key)

    async def of_parts(self, keys: Sequence[WebhookKey]) -> list[Webhook]:
        """The webhook in each part that has it; there is one at least."""
        found: list[Webhook] = []
        for key in keys:
            async with told_if_away, self._asked(key.tenant) as connection:
                one = await store.read_webhook(connection, key)
            found += () if one is None else (one,)
        if not found:
            raise absent(keys[0].id)
        return found

    async def all(self, tenant: TenantId) -> list[Webhook]:
        shard = self._shard(tenant)
        async with told_if_away, self._asked(tenant) as connection:
            return await store.list_webhooks(connection, shard, tenant)

    async def deliveries(
        self, key: WebhookKey, before: tuple[datetime, int] | None, state: int | None, limit: int
    ) -> list[Delivery]:
        """The newest first."""
        newest = (self._store_clock.now() + timedelta(days=1), _LAST)
        async with told_if_away, self._asked(key.tenant) as connection:
            there(await store.read_webhook(connection, key), key)
            return await rows.list_deliveries(connection, key, before or newest, state, limit)


def _whose(key: WebhookKey) -> TenantId | None:
    """For the audit: the operators' own are the house's."""
    return None if key.tenant == STAFF else key.tenant


def _said(terms: WebhookTerms) -> dict[str, object]:
    """For the audit."""
    return terms._asdict() | {"url": shown_url(terms.url)}


def _new_secret() -> str:
    return secret_text(secrets.token_bytes(SECRET_BYTES))


def _switched_off(webhook: Webhook) -> Conflict:
    because = f" ({webhook.disabled_because})" if webhook.disabled_because else ""
    return Conflict(
        f"This webhook is switched off{because}: nothing is sent to it. Enable it first."
    )


def _no_delivery(delivery: str) -> NotFound:
    return NotFound(
        f"There is no delivery {delivery[:80]!r} of this webhook. They are kept for some days."
    )


def _sent(found: Delivery | None, delivery: str) -> Delivery:
    if found is None:
        raise _no_delivery(delivery)
    return found
