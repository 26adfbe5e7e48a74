"""The history of alarms in the store, and what operators' webhooks are sent of it.

Every server judges alarms for itself; the owner of shard 0 writes, under its term, so each alarm
has one line however many servers there are. A line and the messages about it are one transaction:
whoever hears of an alarm finds it in the history, and the other way round. Whoever begins to look,
or to write, takes over what is still open: a restart neither ends an alarm nor raises it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import Unavailable
from fairway.core.events.event_filter import is_among
from fairway.core.ids import ShardId, Term
from fairway.core.insight.alarm_lines import (
    AlarmLine,
    Changes,
    body_of_alarm,
    changes,
    kind_of,
    number_of,
    raised_of,
)
from fairway.core.insight.alarms import ALARMS, SUBJECTS_MAX, Key, Raised
from fairway.core.unix_time import from_unix_ms
from fairway.core.webhooks.webhook import Webhook
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.store_clock import StoreClock
from fairway.store.connections.database import DISCONNECTED, Connection, Database
from fairway.store.connections.error_classes import reason_of
from fairway.store.insight import alarm_history as store
from fairway.store.insight.alarm_history import NewAlarm
from fairway.store.webhooks import deliveries, webhooks
from fairway.store.webhooks.deliveries import NewDelivery

log = logger("alarms")

SHARD = ShardId(0)  # whose owner does what is done once for all
OPEN_MAX = len(ALARMS) * SUBJECTS_MAX
WAITING_MAX = 1000  # messages for one receiver; more would tell it nothing
KEPT_MAX = 1000  # messages to one receiver that are over


class AlarmLedger:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        store_clock: StoreClock,
        on_written: Callable[[], None],
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._clock = store_clock
        self._on_written = on_written  # something may be to be sent
        self._term: Term | None = None  # in which the open lines were read
        self._open: dict[Key, AlarmLine] | None = None  # None: to be read

    async def take_over(self) -> list[Raised]:
        """What others left open, when this server begins to look or to write; else nothing."""
        term = self._dispatcher.term_of(SHARD)
        if self._open is not None and term == self._term:
            return []
        was_known = self._open is not None or self._term is not None
        try:
            async with self._database.background() as connection:
                await self._read(connection)
        except (*DISCONNECTED, Unavailable):
            return []  # at the next look
        is_handed_on = term is not None and term != self._term
        self._term = term
        return list(raised_of((self._open or {}).values())) if is_handed_on or not was_known else []

    async def write(self, raised: Sequence[Raised]) -> None:
        """Nothing, where another writes; what cannot be written now is by the next look."""
        if self._open is None or self._term is None:
            return
        wanted = changes(self._open, raised)
        if not (wanted.begun or wanted.over):
            return
        try:
            async with self._database.background() as connection:
                async with connection.transaction():
                    is_ours = await self._change(connection, self._term, wanted)
                if is_ours:
                    await self._read(connection)
                    self._on_written()
        except (*DISCONNECTED, Unavailable):
            self._open = None
        except Exception as error:
            self._open = None
            log.error("the history of alarms is not written", error=reason_of(error))

    async def _read(self, connection: Connection) -> None:
        lines = await store.open_alarms(connection, OPEN_MAX)
        self._open = {line.key: line for line in lines}

    async def _change(self, connection: Connection, term: Term, wanted: Changes) -> bool:
        """False: another owns the shard by now."""
        if await deliveries.hold_term(connection, SHARD, term) is None:
            return False
        now, ids = self._clock.now(), [line.id for line in wanted.over]
        lines = await store.end_alarms(connection, ids, now) if ids else []
        if wanted.begun:
            lines += await store.raise_alarms(connection, [_new(one) for one in wanted.begun])
        await self._send(connection, lines)
        return True

    async def _send(self, connection: Connection, lines: Sequence[AlarmLine]) -> None:
        """Webhooks in the order in which all lock them."""
        found = await webhooks.list_webhooks(connection, SHARD, STAFF)
        for one in sorted(found, key=lambda webhook: webhook.key.id):
            made = list(map(_message, filter(partial(_is_wanted, one), lines)))
            if made and one.terms.enabled:
                await self._send_to(connection, one, made)

    async def _send_to(
        self, connection: Connection, webhook: Webhook, made: Sequence[NewDelivery]
    ) -> None:
        key = webhook.key
        if await webhooks.lock_webhook(connection, key) is None:
            return
        if await deliveries.count_waiting(connection, key, WAITING_MAX) >= WAITING_MAX:
            log.warning("alarms are not sent: too many wait for this receiver", webhook=key.id)
            return
        await deliveries.write_deliveries(connection, key, made)
        await webhooks.wake_webhook(connection, key)
        await deliveries.trim_deliveries(connection, key, KEPT_MAX)


def _is_wanted(webhook: Webhook, line: AlarmLine) -> bool:
    kinds = webhook.terms.kinds
    return not kinds or is_among(kind_of(line), kinds)


def _message(line: AlarmLine) -> NewDelivery:
    return NewDelivery(number_of(line), kind_of(line), body_of_alarm(line))


def _new(one: Raised) -> NewAlarm:
    alarm, since = one.alarm, from_unix_ms(one.since_ms)
    said = one.subject, one.text, one.reading.value, one.threshold
    return NewAlarm(alarm.name, alarm.severity, *said, since)
