"""What comes while a call is under way, or a change: none undoes the other, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from tests.services.platform_room import until
from tests.services.webhooks.receiver import Raw, receiving, reply
from tests.services.webhooks.steps import KIND, deliveries, happen, hook

from fairway.core.errors import Conflict
from fairway.core.ids import FIRST_SHARD
from fairway.core.tenant import Tenant
from fairway.core.webhooks.retries import ATTEMPTS_MAX
from fairway.core.webhooks.webhook import DeliveryState, Webhook, WebhookTerms
from fairway.services.platform import Platform
from fairway.store.webhooks.deliveries import forget_deliveries


def late(gate: asyncio.Event, status: int) -> Raw:
    """An answer that comes when it is let."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(reply(status))

    return answer


async def execute(platform: Platform, statement: str) -> None:
    async with platform.database.background() as connection:
        await connection.execute(statement)


async def unsent(platform: Platform, tenant: Tenant, url: str) -> Webhook:
    """A webhook with one delivery that waits, and nobody who sends it."""
    await platform.loops["webhook calls"].stop()
    made = await hook(platform, tenant, url)
    await happen(platform, tenant.id)

    async def is_written() -> bool:
        return bool(await deliveries(platform, made.key, DeliveryState.WAITING))

    await until(is_written)
    return made


@pytest.mark.parametrize("status", [410, 503])
async def test_what_the_old_address_answers_is_not_held_against_the_new(
    platform: Platform, tenant: Tenant, status: int
) -> None:
    """Gone, or failing for days: it was asked to move, and its successor gets what it refused."""
    webhooks, gate = platform.outbound.webhooks, asyncio.Event()
    async with receiving() as new, receiving(raw=late(gate, status)) as old:
        made = await hook(platform, tenant, old.url)
        await execute(
            platform,
            "UPDATE webhooks SET failures = 9, failing_since = now() - interval '73 hours'",
        )
        await happen(platform, tenant.id)
        await until(lambda: len(old.received) == 1)
        await webhooks.change(made.key, lambda terms: terms._replace(url=new.url))
        gate.set()
        await until(lambda: len(new.received) == 1)
        now = await webhooks.read(made.key)
        assert (now.terms.enabled, now.disabled_because, now.failures) == (True, "", 0)
        assert new.received[0].id == old.received[0].id


@asynccontextmanager
async def described_while(
    platform: Platform, webhook: Webhook, statement: str
) -> AsyncIterator[asyncio.Task[Webhook]]:
    """A change of words that has read the webhook before the statement, and writes after it."""
    has_read = asyncio.Event()

    def change(terms: WebhookTerms) -> WebhookTerms:
        has_read.set()
        return terms._replace(description="Ours.")

    async with platform.database.people() as connection, connection.transaction():
        await connection.execute("SELECT FROM webhooks FOR UPDATE")
        changing = asyncio.create_task(platform.outbound.webhooks.change(webhook.key, change))
        await until(has_read.is_set)
        await connection.execute(statement)
    yield changing


async def test_a_change_of_words_does_not_switch_it_on_again(
    platform: Platform, tenant: Tenant
) -> None:
    made = await hook(platform, tenant, "http://127.0.0.1:40000/")
    off = "UPDATE webhooks SET enabled = false, disabled_because = 'It is gone.'"
    async with described_while(platform, made, off) as changing:
        changed = await changing
    assert changed.terms == made.terms._replace(description="Ours.", enabled=False)
    assert changed.disabled_because == "It is gone."


async def test_an_address_that_nobody_looked_at_is_not_taken(
    platform: Platform, tenant: Tenant
) -> None:
    made = await hook(platform, tenant, "http://127.0.0.1:40000/")
    moved = "UPDATE webhooks SET url = 'http://127.0.0.1:40001/'"
    async with described_while(platform, made, moved) as changing:
        with pytest.raises(Conflict, match="address"):
            await changing
    assert (await platform.outbound.webhooks.read(made.key)).terms.description == ""


async def test_a_replay_during_the_last_try_has_all_its_tries(
    platform: Platform, tenant: Tenant
) -> None:
    webhooks, gate = platform.outbound.webhooks, asyncio.Event()
    async with receiving(raw=late(gate, 500)) as receiver:
        made = await unsent(platform, tenant, receiver.url)
        await execute(platform, f"UPDATE webhook_deliveries SET attempts = {ATTEMPTS_MAX - 1}")
        platform.loops["webhook calls"].start()
        await until(lambda: len(receiver.received) == 1)
        await platform.loops["webhook calls"].stop()  # the call goes on; no other is begun
        await webhooks.replay(made.key, receiver.received[0].id)
        gate.set()

        async def is_judged() -> bool:
            return (await webhooks.read(made.key)).failures == 1

        await until(is_judged)
        (replayed,) = await deliveries(platform, made.key)
        assert (replayed.state, replayed.attempts) == (DeliveryState.WAITING, 0)


async def test_a_replay_since_a_time_finds_what_stands_out_of_order(
    platform: Platform, tenant: Tenant
) -> None:
    """The seventh is of a transaction that began before that time and ended after it."""
    webhooks, now = platform.outbound.webhooks, platform.store_clock.now()
    ages = [600] * 3 + [60] * 3 + [130] + [50] * 5
    async with receiving() as receiver:
        made = await hook(platform, tenant, receiver.url, enabled=False)
        async with platform.database.background() as connection:
            await connection.executemany(
                "INSERT INTO event_inbox (shard, tenant, at, kind, subject, detail)"
                f" VALUES ({FIRST_SHARD}, {tenant.id}, $1, '{KIND}', 'work', '')",
                [(now - timedelta(seconds=age),) for age in ages],
            )
        platform.events.sequencer.written(FIRST_SHARD)

        async def is_told() -> bool:
            return (await platform.events.reader.page(tenant.id, 0, 1)).last == len(ages)

        await until(is_told)
        await webhooks.change(made.key, lambda terms: terms._replace(enabled=True))
        await webhooks.replay_all(made.key, now - timedelta(seconds=100))

        def told() -> set[int]:
            return {one.message["data"]["position"] for one in receiver.received}

        await until(lambda: len(told()) >= 9)
        assert told() == set(range(4, 13)), "one too many is no harm; the oldest are not sent"


async def test_what_waits_is_not_forgotten_for_its_age(platform: Platform, tenant: Tenant) -> None:
    """An old one that was replayed; one that has waited as long itself is past keeping."""
    made = await unsent(platform, tenant, "http://127.0.0.1:40000/")
    before = platform.store_clock.now() - timedelta(hours=167)
    await execute(platform, "UPDATE webhook_deliveries SET created_at = now() - interval '8 days'")
    async with platform.database.background() as connection:
        await forget_deliveries(connection, FIRST_SHARD, before, 10)
    assert len(await deliveries(platform, made.key)) == 1
    await execute(platform, "UPDATE webhook_deliveries SET next_at = created_at")
    async with platform.database.background() as connection:
        await forget_deliveries(connection, FIRST_SHARD, before, 10)
    assert await deliveries(platform, made.key) == []
