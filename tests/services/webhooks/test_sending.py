"""Events on their way to receivers: signed, tried again, given up, replayed; nothing is lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from tests.services.platform_room import add_tenant, freeze, kill, owner_on, told_events, until
from tests.services.webhooks.conftest import SETTINGS
from tests.services.webhooks.receiver import OK, receiving, reply
from tests.services.webhooks.steps import KIND, deliveries, happen, hook, hurry

from fairway.core.errors import LimitReached, NotFound
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.core.webhooks.webhook import DeliveryState
from fairway.services.platform import Platform
from fairway.services.webhooks.log_reader import LogReader
from fairway.services.webhooks.webhooks import TESTS_MAX


async def test_what_happens_arrives_signed_and_once(platform: Platform, tenant: Tenant) -> None:
    webhooks = platform.outbound.webhooks
    async with receiving() as receiver:
        made = await hook(platform, tenant, receiver.url)
        await happen(platform, tenant.id, kind="quarantine.imposed")  # not asked for
        await happen(platform, tenant.id, 20)
        await until(lambda: len(receiver.received) == 20)
        first = receiver.received[0]
        assert first.line == "POST /hook?a=b HTTP/1.1"
        assert first.headers["host"] == f"127.0.0.1:{receiver.port}"
        told = Verifier(made.secrets.present).verify(first.body, first.headers)
        assert (told["type"], told["data"]["subject"]) == (KIND, "work")
        assert {one.message["data"]["position"] for one in receiver.received} == set(range(2, 22))
        assert len({one.id for one in receiver.received}) == 20
        assert receiver.connections < 20  # they are used again within a turn

        secret, ends_at = await webhooks.rotate(made.key, 60)
        assert ends_at is not None
        sent = await webhooks.test(made.key)
        await until(lambda: len(receiver.received) == 21)
        test = receiver.received[-1]
        assert (test.message["type"], test.id) == ("webhook.test", sent.id)
        for one in (secret, made.secrets.present):
            Verifier(one).verify(test.body, test.headers)
        await webhooks.rotate(made.key, 0)
        await webhooks.test(made.key)
        await until(lambda: len(receiver.received) == 22)
        assert " " not in receiver.received[-1].headers["webhook-signature"]

        async def all_told() -> bool:
            found = await deliveries(platform, made.key, DeliveryState.DELIVERED)
            return len(found) == 22

        await until(all_told)
        newest = (await deliveries(platform, made.key))[0]
        assert (newest.attempts, newest.last_status, newest.last_error) == (1, 200, "")


async def test_what_fails_is_tried_again_under_the_same_id(
    platform: Platform, tenant: Tenant
) -> None:
    answers = [reply(500), reply(302, "location: http://127.0.0.1:1/"), OK]
    async with receiving(lambda received: answers.pop(0)) as receiver:
        made = await hook(platform, tenant, receiver.url)
        await happen(platform, tenant.id)
        for tries, error in ((1, "500"), (2, "redirects are not followed")):

            async def is_written(tries: int = tries, error: str = error) -> bool:
                found = await deliveries(platform, made.key, DeliveryState.WAITING)
                return bool(found) and found[0].attempts == tries and error in found[0].last_error

            await until(is_written)
            now = await platform.outbound.webhooks.read(made.key)
            assert (now.failures, now.failing_since is not None) == (tries, True)
            await hurry(platform)

        async def is_delivered() -> bool:
            return bool(await deliveries(platform, made.key, DeliveryState.DELIVERED))

        await until(is_delivered)
        assert len({one.id for one in receiver.received}) == 1
        assert len(receiver.received) == 3
        now = await platform.outbound.webhooks.read(made.key)
        assert (now.failures, now.failing_since) == (0, None)


async def test_a_receiver_that_is_gone_is_switched_off_with_a_notice(
    platform: Platform, tenant: Tenant
) -> None:
    webhooks = platform.outbound.webhooks
    async with receiving() as other, receiving(lambda received: reply(410)) as gone:
        made = await hook(platform, tenant, gone.url)
        await hook(platform, tenant, other.url, "webhook.disabled")
        await happen(platform, tenant.id)
        await until(lambda: other.kinds() == ["webhook.disabled"])
        now = await webhooks.read(made.key)
        assert not now.terms.enabled
        assert "410" in now.disabled_because
        assert other.received[0].message["data"]["subject"] == made.key.id
        await happen(platform, tenant.id, 3)
        gone.answer = lambda received: OK
        enabled = made.terms._replace(enabled=True)
        changed = await webhooks.change(made.key, lambda terms: enabled)
        assert (changed.disabled_because, changed.terms.enabled) == ("", True)
        (failed,) = await deliveries(platform, made.key, DeliveryState.FAILED)
        await webhooks.replay(made.key, failed.id)
        # Beside it may come what happened before and stands in the log since it is switched on.
        await until(lambda: [one.id for one in gone.received].count(failed.id) == 2)


async def test_one_that_failed_for_days_is_switched_off(platform: Platform, tenant: Tenant) -> None:
    async with receiving(lambda received: reply(503)) as receiver:
        made = await hook(platform, tenant, receiver.url)
        async with platform.database.background() as connection:
            await connection.execute(
                "UPDATE webhooks SET failures = 9, failing_since = now() - interval '73 hours'"
            )
        await happen(platform, tenant.id)

        async def is_off() -> bool:
            return not (await platform.outbound.webhooks.read(made.key)).terms.enabled

        await until(is_off)
        assert "3 days" in (await platform.outbound.webhooks.read(made.key)).disabled_because


async def test_replays_since_a_time(platform: Platform, tenant: Tenant) -> None:
    """All that the log has, also of a time when it was switched off; or what was given up."""
    webhooks, since = platform.outbound.webhooks, platform.store_clock.now() - timedelta(hours=1)
    async with receiving() as receiver:
        made = await hook(platform, tenant, receiver.url, enabled=False)
        await happen(platform, tenant.id, 5)
        await until(lambda: _has(platform, tenant, 5))
        await webhooks.change(made.key, lambda terms: terms._replace(enabled=True))
        assert (await webhooks.read(made.key)).position == 5
        assert (await webhooks.replay_all(made.key, since)).deliveries is None
        await until(lambda: len(receiver.received) == 5)
        await webhooks.replay_all(made.key, since)
        await until(lambda: len(receiver.received) == 10)
        assert len({one.id for one in receiver.received}) == 5
        await webhooks.replay_all(made.key, platform.store_clock.now() + timedelta(hours=1))
        assert (await webhooks.read(made.key)).position == 5

        async with platform.database.background() as connection:
            await connection.execute(
                "UPDATE webhook_deliveries SET state = 2, next_at = NULL WHERE number <= 2"
            )
        assert (await webhooks.replay_failed(made.key, since)).deliveries == 2
        await until(lambda: len(receiver.received) == 12)


async def _has(platform: Platform, tenant: Tenant, events: int) -> bool:
    return (await platform.events.reader.page(tenant.id, 0, 10)).last == events


async def test_nothing_is_lost_between_writing_and_sending(database_url: str) -> None:
    async with receiving() as receiver:
        async with owner_on(database_url, SETTINGS) as first:
            await first.loops["webhook calls"].stop()
            tenant = await add_tenant(first)
            made = await hook(first, tenant, receiver.url)
            await happen(first, tenant.id, 3)

            async def are_written() -> bool:
                return len(await deliveries(first, made.key, DeliveryState.WAITING)) == 3

            await until(are_written)
            await kill(first)
        assert receiver.received == []
        async with owner_on(database_url, SETTINGS):
            await until(lambda: len(receiver.received) == 3)


async def test_a_delivery_of_nobody_cannot_be_replayed(platform: Platform, tenant: Tenant) -> None:
    made = await hook(platform, tenant, "http://127.0.0.1:40000/")
    for wrong in ("msg_1", "x" * 500, f"msg_{made.key.id.replace('-', '')}_7"):
        with pytest.raises(NotFound):
            await platform.outbound.webhooks.replay(made.key, wrong)


async def test_nothing_is_sent_for_a_suspended_tenant_until_it_is_resumed(
    platform: Platform, tenant: Tenant
) -> None:
    other = await add_tenant(platform, "other")
    async with receiving() as receiver:
        await hook(platform, tenant, f"{receiver.url}&whose=mine")
        await hook(platform, other, f"{receiver.url}&whose=other")
        await platform.tenant_states.suspend(tenant.name, "An intruder.", cancels_running=False)
        await happen(platform, tenant.id)
        await happen(platform, other.id)
        await until(lambda: bool(receiver.received))
        await hurry(platform)
        assert ["whose=other" in one.line for one in receiver.received] == [True]
        await platform.tenant_states.resume(tenant.name)
        await until(lambda: len(receiver.received) == 2)
        assert "whose=mine" in receiver.received[1].line


async def test_so_many_tests_wait_and_no_more(platform: Platform, tenant: Tenant) -> None:
    async with receiving(lambda received: reply(500)) as failing:
        made = await hook(platform, tenant, failing.url)
        for _ in range(TESTS_MAX):
            await platform.outbound.webhooks.test(made.key)
        with pytest.raises(LimitReached, match="wait for its receiver"):
            await platform.outbound.webhooks.test(made.key)


async def test_logs_of_tenants_that_are_read_for_are_read_at_once(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    woken: list[TenantId] = []
    reader = LogReader(
        platform.database,
        platform.dispatcher,
        platform.instruments,
        on_news=lambda: woken.append(tenant.id),
        on_written=lambda: None,
    )
    await hook(platform, tenant, "http://127.0.0.1:19999/")
    await happen(platform, tenant.id)
    assert len(await told_events(platform, tenant)) == 1
    reader.logs_grew([tenant.id])
    assert woken == [], "nobody is known to be read for"
    await reader.run_once(platform.clock.now_us())
    reader.logs_grew([TenantId(999)])
    assert woken == []
    reader.logs_grew([TenantId(999), tenant.id])
    assert woken == [tenant.id]
