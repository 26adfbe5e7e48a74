"""Reads tenants' logs for their webhooks, in the shards this server owns.

What a webhook wants of the next page is written down as deliveries, and in the same transaction how
far it has come: a crash leaves both or none, so nothing is missed and nothing needs to be
remembered. Of each webhook only so many deliveries wait. One whose receiver does not answer stops
there, and goes on where it stopped; the log keeps the rest meanwhile, for as long as it keeps
anything. Webhooks take turns, a page each. What this server puts in order for a tenant that had
webhooks to read for is read at once; the rest is found by a look every quarter of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from fairway.core.events.event import NewEvent
from fairway.core.events.event_filter import EventFilter
from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.webhooks.messages import body_of
from fairway.core.webhooks.webhook import Webhook
from fairway.runtime.telemetry import Instruments, logger
from fairway.services.bad_rows import Aside, in_each_shard
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.store.connections.database import DISCONNECTED, Connection, Database
from fairway.store.connections.error_classes import reason_of
from fairway.store.events.log import EventPage, add_notices, read_events
from fairway.store.schema.restored import EVENT_GAP
from fairway.store.webhooks import deliveries, webhooks
from fairway.store.webhooks.deliveries import NewDelivery

log = logger("webhooks")

WEBHOOKS_PER_ROUND = 100
PAGE_EVENTS = 200
WAITING_MAX = 1000  # deliveries of one webhook; the log keeps the rest
KEPT_MAX = 10_000  # deliveries of one webhook that are over
TRIM_EVERY = 1000  # that were written
FULL_US = 1_000_000  # before a webhook with so many is looked at again
REST_SECONDS = 0.25
QUIET_REST_SECONDS = 1.0  # where nobody has a webhook: the first one waits so long, once
KNOWN_MAX = 10_000  # tenants that are read for


class _Page(NamedTuple):
    webhook: Webhook
    made: list[NewDelivery]
    position: int  # up to which the log was read
    lost: int  # events that were gone before they were read


class LogReader:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        instruments: Instruments,
        *,
        on_news: Callable[[], None],
        on_written: Callable[[], None],
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._clock = instruments.clock
        self._metrics = instruments.metrics
        self._on_news = on_news  # wakes the loop of this
        self._on_written = on_written
        self._reads_for: set[TenantId] = set()  # who had a webhook behind its log
        self._after: dict[ShardId, tuple[TenantId, str]] = {}  # whose turn was the last
        self._written: dict[str, int] = {}  # since a webhook was last trimmed
        self._full_until_us: dict[str, int] = {}
        self._aside: Aside[str] = Aside()

    async def run_once(self, now_us: int) -> float:
        full = self._full_until_us.items()
        self._full_until_us = {one: until_us for one, until_us in full if until_us > now_us}
        shards = self._dispatcher.open_shards()
        reading = await busy_shards(self._database, "with_webhooks", shards)
        if not reading:
            return QUIET_REST_SECONDS
        found = await in_each_shard(reading, self._round)
        return 0.0 if any(found) else REST_SECONDS

    def logs_grew(self, tenants: Iterable[TenantId]) -> None:
        """Most servers read for nobody: they are not woken."""
        if self._reads_for and not self._reads_for.isdisjoint(tenants):
            self._on_news()

    async def _round(self, shard: ShardId) -> bool:
        """Whether there is more to read at once."""
        term = self._dispatcher.term_of(shard)
        if term is None:
            return False
        after = self._after.get(shard, webhooks.BEFORE_ALL)
        async with self._database.background() as connection:
            behind = await webhooks.webhooks_behind(connection, shard, after, WEBHOOKS_PER_ROUND)
        if len(self._reads_for) > KNOWN_MAX:
            self._reads_for.clear()
        self._reads_for.update(one.key.tenant for one in behind)
        moved = [await self._apart(term, one) for one in behind]
        self._after.pop(shard, None)
        if len(behind) == WEBHOOKS_PER_ROUND:
            self._after[shard] = (behind[-1].key.tenant, behind[-1].key.id)
        if any(moved):
            self._on_written()
        return any(moved) or len(behind) == WEBHOOKS_PER_ROUND

    async def _apart(self, term: Term, webhook: Webhook) -> bool:
        """Whether it came further. One that cannot be read stops no other."""
        now_us = self._clock.now_us()
        is_full = self._full_until_us.get(webhook.key.id, 0) > now_us
        if is_full or self._aside.holds(webhook.key.id, now_us):
            return False
        try:
            async with self._database.background() as connection:
                return await self._read(connection, term, webhook)
        except DISCONNECTED:
            raise
        except Exception as error:
            self._aside.put(webhook.key.id, self._clock.now_us())
            self._metrics.rows_set_aside.labels("webhooks").inc()
            log.error("webhook set aside", webhook=webhook.key.id, error=reason_of(error))
            return False

    async def _read(self, connection: Connection, term: Term, webhook: Webhook) -> bool:
        key = webhook.key
        waiting = await deliveries.count_waiting(connection, key, WAITING_MAX)
        room = min(WAITING_MAX - waiting, PAGE_EVENTS)
        if room <= 0:
            self._full_until_us[key.id] = self._clock.now_us() + FULL_US
            return False
        page = await read_events(connection, key.shard, key.tenant, webhook.position, room)
        jobs = [event.job for event in page.events if event.job is not None]
        read = _page(webhook, page, await deliveries.read_traces(connection, key, jobs))
        async with connection.transaction():
            if not await self._write(connection, term, read):
                return False
        await self._trim(connection, webhook, len(read.made))
        return read.position > webhook.position

    async def _write(self, connection: Connection, term: Term, page: _Page) -> bool:
        """False: another owns the shard, or the webhook was changed meanwhile."""
        key, was = page.webhook.key, page.webhook
        if await deliveries.hold_term(connection, key.shard, term) is None:
            return False
        held = await webhooks.lock_webhook(connection, key)
        if held is None or (held.position, held.terms) != (was.position, was.terms):
            return False
        if page.made:
            await deliveries.write_deliveries(connection, key, page.made)
        await webhooks.move_position(connection, key, page.position, is_due=bool(page.made))
        if page.lost:
            await add_notices(connection, [_behind(page)])
        return True

    async def _trim(self, connection: Connection, webhook: Webhook, made: int) -> None:
        key = webhook.key
        written = self._written.pop(key.id, 0) + made
        if written < TRIM_EVERY:
            self._written[key.id] = written
        else:
            await deliveries.trim_deliveries(connection, key, KEPT_MAX)


def _page(webhook: Webhook, page: EventPage, traces: Mapping[str, bytes]) -> _Page:
    wanted = EventFilter(kinds=webhook.terms.kinds)
    made = [
        NewDelivery(event.position, event.kind, body_of(event), traces.get(event.job or ""))
        for event in page.events
        if wanted.matches(event)
    ]
    lost = max(page.trimmed_to - webhook.position, 0) % EVENT_GAP  # which a restore leaves out
    last = page.events[-1].position if page.events else max(page.trimmed_to, webhook.position)
    return _Page(webhook, made, last, lost)


def _behind(page: _Page) -> NewEvent:
    key = page.webhook.key
    return NewEvent(
        key.tenant,
        "webhook.behind",
        key.id,
        f"{page.lost} events were past their retention before this webhook's receiver had taken"
        " what came before them; they are not sent to it.",
    )
