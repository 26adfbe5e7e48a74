"""Sends what is due to receivers, for the shards this server owns: bounded, fair, each apart.

Webhooks have turns, those that wait longest first; a turn is a few deliveries to one receiver
(`sender.py`). How many turns there are at a time, of one tenant and in all, and that those who do
not answer are in nobody's way, is in `core/webhooks/turns.py`. What a turn came to is written
together with that of others, under the owner's term. What was sent and not written down is sent
again, with the same id: at least once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.backpressure.connections import STAFF
from fairway.core.events.event import NewEvent
from fairway.core.ids import ShardId, Term
from fairway.core.webhooks.retries import (
    GONE,
    Answer,
    disabled_because,
    rest_seconds,
    verdict_of,
)
from fairway.core.webhooks.turns import Turns
from fairway.core.webhooks.webhook import DeliveryState, Webhook, WebhookKey
from fairway.runtime.telemetry import Instruments, logger
from fairway.services.bad_rows import each_apart, in_each_shard
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.group_commit import GroupCommit, ShardCommits
from fairway.services.store_clock import StoreClock
from fairway.services.webhooks.sender import AnsweredCall, Sender
from fairway.services.webhooks.switching_off import SwitchingOff
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.error_classes import reason_of
from fairway.store.events.log import add_notices
from fairway.store.webhooks import deliveries, webhooks
from fairway.store.webhooks.deliveries import CallMade, DueDelivery
from fairway.store.webhooks.webhooks import HeldWebhook, SettledWebhook, Wanted

log = logger("webhooks")

TURN_DELIVERIES = 32
TURNS_AT_ONCE = 100  # that one look begins
REST_SECONDS = 1.0
ASIDE_SECONDS = 30.0  # a webhook whose calls cannot be written down


class Done(NamedTuple):
    """A turn that is over, to be written down."""

    shard: ShardId
    term: Term
    settled: SettledWebhook
    calls: list[CallMade]
    url: str  # that was called
    written: asyncio.Future[None]


class Deliverer:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        sender: Sender,
        turns: Turns,
        store_clock: StoreClock,
        instruments: Instruments,
        switching_off: SwitchingOff,
        *,
        on_free: Callable[[], None],
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._sender = sender
        self._turns = turns
        self._store_clock = store_clock
        self._metrics = instruments.metrics
        self._switching_off = switching_off
        self._on_free = on_free  # there is room for another turn
        self._tasks: set[asyncio.Task[None]] = set()
        self._commits: ShardCommits[Done] = ShardCommits(
            lambda: GroupCommit("webhook calls", self._flush, instruments=instruments),
            lambda done: done.shard,
            lambda shard: shard,
        )

    async def run_once(self, now_us: int) -> float:
        shards = self._dispatcher.open_shards()
        sending = await busy_shards(self._database, "with_webhooks", shards)
        rests = await in_each_shard(sending, self._round)
        return min(rests, default=REST_SECONDS)

    async def close(self) -> None:
        """What is under way is cut short; whoever owns the shards next sends it again."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _round(self, shard: ShardId) -> float:
        term = self._dispatcher.term_of(shard)
        wanted = self._wanted()
        if term is None or not (wanted.with_others or wanted.with_failing):
            return REST_SECONDS
        async with self._database.background() as connection:
            due = await webhooks.due_webhooks(connection, shard, wanted)
            begun = [one for one in due if self._begins(one)]
            try:
                work = await self._work(connection, shard, begun)
                seconds = await webhooks.seconds_to_next(connection, shard)
            except BaseException:
                for one in begun:
                    self._turns.end(one.key.id)
                raise
        for one in begun:
            self._start(term, one, work.get(one.key.id, []))
        if len(due) == wanted.limit and begun:
            return 0.0
        return REST_SECONDS if seconds is None else min(max(seconds, 0.0), REST_SECONDS)

    def _wanted(self) -> Wanted:
        turns = self._turns
        return Wanted(
            busy=list(turns.busy),
            quick_tenants=list(turns.quick.full_tenants()),
            slow_tenants=list(turns.slow.full_tenants()),
            with_others=turns.quick.free > 0,
            with_failing=turns.slow.free > 0,
            limit=TURNS_AT_ONCE,
        )

    def _begins(self, webhook: Webhook) -> bool:
        key = webhook.key
        return self._turns.begin(key.id, key.tenant, is_failing=webhook.failures > 0)

    async def _work(
        self, connection: Connection, shard: ShardId, begun: Sequence[Webhook]
    ) -> dict[str, list[DueDelivery]]:
        """A receiver that failed last is asked by one call."""
        asked = [
            (one.key.tenant, one.key.id, 1 if one.failures else TURN_DELIVERIES) for one in begun
        ]
        return await deliveries.due_deliveries(connection, shard, asked) if asked else {}

    def _start(self, term: Term, webhook: Webhook, due: list[DueDelivery]) -> None:
        task = asyncio.create_task(self._turn(term, webhook, due), name=f"webhook:{webhook.key.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _turn(self, term: Term, webhook: Webhook, due: list[DueDelivery]) -> None:
        key, aside_seconds = webhook.key, 0.0
        try:
            calls = await self._sent(webhook, due)
            written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done = self._judged(term, webhook, calls, written)
            self._commits.add_many([done])
            await written
        except Exception as error:
            aside_seconds = ASIDE_SECONDS
            log.error("webhook set aside", webhook=key.id, error=reason_of(error))
            self._metrics.rows_set_aside.labels("webhooks").inc()
        finally:
            if aside_seconds:  # else it would be sent again and again
                asyncio.get_running_loop().call_later(aside_seconds, self._turns.end, key.id)
            else:
                self._turns.end(key.id)
            self._on_free()

    async def _sent(self, webhook: Webhook, due: list[DueDelivery]) -> list[AnsweredCall]:
        if not due:
            return []

        def may_wait() -> bool:
            is_let = self._turns.slowed(webhook.key.id, webhook.key.tenant)
            self._on_free()
            return is_let

        return await self._sender.send(webhook, due, may_wait)

    def _judged(
        self,
        term: Term,
        webhook: Webhook,
        calls: Sequence[AnsweredCall],
        written: asyncio.Future[None],
    ) -> Done:
        now = self._store_clock.now()
        made = [self._made(webhook, call) for call in calls]
        settled = settled_by(webhook, [call.answer for call in calls], now, random.random())
        return Done(webhook.key.shard, term, settled, made, webhook.terms.url, written)

    def _made(self, webhook: Webhook, call: AnsweredCall) -> CallMade:
        delivery, answer = call
        verdict = verdict_of(answer, delivery.attempts + 1, random.random())
        self._metrics.webhook_calls.labels(verdict.state.label).inc()
        return CallMade(
            webhook.key.tenant,
            webhook.key.id,
            delivery.number,
            verdict.state,
            verdict.next_in_seconds,
            answer.status,
            verdict.error,
            delivery.attempts,
        )

    # -- writing down ------------------------------------------------------------------------

    async def _flush(self, group: list[Done]) -> None:
        """Whoever the store refuses stands alone; the others are written."""

        def refuse(done: Done, error: Exception) -> None:
            _end(done, error)

        try:
            await each_apart(group, self._write, refuse)
        except Exception as error:
            for done in group:
                _end(done, error)

    async def _write(self, group: Sequence[Done]) -> None:
        """What changes rows of other shards, too, has a transaction of its own: it must hold all of
        those before any other."""
        keys = [self._switching_off.keys_of(done.settled) for done in group]
        if together := [done for done, parts in zip(group, keys, strict=True) if not parts]:
            await self._write_held(together)
        for done, parts in zip(group, keys, strict=True):
            if parts:
                await self._write_held([done], parts)

    async def _write_held(self, group: Sequence[Done], parts: Sequence[WebhookKey] = ()) -> None:
        shard, term = group[0].shard, group[0].term
        async with self._database.background() as connection, connection.transaction():
            if await deliveries.hold_term(connection, shard, term) is not None:
                in_parts = await self._switching_off.held(connection, parts)
                held = await webhooks.lock_webhooks(
                    connection, shard, [one.settled for one in group]
                )
                group = [_still_true(done, held.get(done.settled.id)) for done in group]
                if parts:
                    group = [await self._decided(connection, done, in_parts) for done in group]
                settled = [done.settled for done in group]
                calls = [call for done in group for call in done.calls]
                if calls:
                    await deliveries.record_calls(connection, shard, calls)
                await webhooks.settle_webhooks(connection, shard, settled)
                disabled = [one for one in settled if one.disabled_because]
                for one in disabled:
                    log.warning("webhook disabled", webhook=one.id, because=one.disabled_because)
                name = parts[0].id if parts else None
                notices = [_disabled(one, name) for one in disabled if one.tenant != STAFF]
                if notices:
                    await add_notices(connection, notices)
        for done in group:
            _end(done, None)

    async def _decided(
        self, connection: Connection, done: Done, in_parts: Sequence[Webhook]
    ) -> Done:
        """Of a tenant in several shards: for all of them, unless its address changed meanwhile."""
        if not done.settled.disabled_because:
            return done
        is_gone = any(call.status == GONE for call in done.calls)
        decided = self._switching_off.decided
        settled = await decided(connection, in_parts, done.settled, is_gone=is_gone)
        return done._replace(settled=settled)


def settled_by(
    webhook: Webhook, answers: Sequence[Answer], now: datetime, chance: float
) -> SettledWebhook:
    """How a receiver does after a turn: one good answer, and it does well."""
    key, is_well = webhook.key, any(answer.is_success for answer in answers)
    failed = [answer for answer in answers if not answer.is_success]
    if not answers:
        rest = 0.0
        failures, since, because = webhook.failures, webhook.failing_since, ""
    else:
        failures = 0 if is_well else webhook.failures + 1
        since = None if is_well else webhook.failing_since or now
        worst = max(failed, key=lambda one: len(one.retry_after), default=answers[0])
        asks = any(answer.retry_after for answer in failed)
        rest = rest_seconds(max(failures, int(asks)), worst, now, chance)
        gone = next((answer for answer in failed if answer.status == GONE), worst)
        because = disabled_because(gone, failures, since, now) if failed else ""
    return SettledWebhook(key.tenant, key.id, failures, since, rest, because)


def _still_true(done: Done, held: HeldWebhook | None) -> Done:
    """What an address came to says nothing of the one that took its place meanwhile."""
    if held is None or held.url == done.url:
        return done
    settled = done.settled._replace(
        failures=held.failures,
        failing_since=held.failing_since,
        rest_seconds=0.0,
        disabled_because="",
    )
    calls = [call for call in done.calls if call.state == DeliveryState.DELIVERED]
    return done._replace(settled=settled, calls=calls)


def _end(done: Done, error: Exception | None) -> None:
    if done.written.done():
        return
    if error is None:
        done.written.set_result(None)
    else:
        done.written.set_exception(error)


def _disabled(settled: SettledWebhook, name: str | None) -> NewEvent:
    """`name`: the id that people know it by, if that is another."""
    detail = f"Nothing is sent to it any more. {settled.disabled_because}"
    return NewEvent(settled.tenant, "webhook.disabled", name or settled.id, detail)
