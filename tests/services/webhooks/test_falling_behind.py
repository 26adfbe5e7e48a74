"""A receiver that does not keep up: only so much waits, and what the log lost is said so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.services.platform_room import told_events, until
from tests.services.webhooks.receiver import HANG, OK, receiving
from tests.services.webhooks.steps import deliveries, happen, hook
from tests.services.webhooks.test_destinations import webhook

from fairway.core.tenant import Tenant
from fairway.core.webhooks.retries import Answer
from fairway.core.webhooks.webhook import DeliveryState
from fairway.services.platform import Platform
from fairway.services.webhooks import log_reader
from fairway.services.webhooks.deliverer import settled_by
from fairway.store.schema.restored import EVENT_GAP

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
GOOD, BAD = Answer(200), Answer(500)


async def test_only_so_many_wait_and_the_log_keeps_the_rest(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader, "WAITING_MAX", 3)
    monkeypatch.setattr(log_reader, "FULL_US", 10_000)
    async with receiving(lambda received: HANG) as hanging, receiving() as good:
        made = await hook(platform, tenant, hanging.url)
        await hook(platform, tenant, good.url)
        await happen(platform, tenant.id, 10)
        await until(lambda: len(good.received) == 10)
        assert len(await deliveries(platform, made.key, DeliveryState.WAITING)) == 3
        assert (await platform.outbound.webhooks.read(made.key)).position == 3


async def test_what_is_past_its_retention_is_told(platform: Platform, tenant: Tenant) -> None:
    await platform.loops["webhook log"].stop()
    async with receiving(lambda received: OK) as receiver:
        made = await hook(platform, tenant, receiver.url)
        for _ in range(2):
            await happen(platform, tenant.id, 4)
            await told_events(platform, tenant)
        async with platform.database.upkeep() as connection:
            await connection.execute("DELETE FROM event_log WHERE first_position = 1")
        platform.loops["webhook log"].start()
        await until(lambda: len(receiver.received) == 4)
        assert {one.message["data"]["position"] for one in receiver.received} == {5, 6, 7, 8}
        (told,) = await told_events(platform, tenant, "webhook.behind")
        assert told.subject == made.key.id
        assert str(told.data["detail"]).startswith("4 events")


async def test_positions_that_a_restore_left_out_are_no_loss(
    platform: Platform, tenant: Tenant
) -> None:
    async with receiving() as receiver:
        await hook(platform, tenant, receiver.url)
        await happen(platform, tenant.id, 2)
        await until(lambda: len(receiver.received) == 2)
        async with platform.database.upkeep() as connection:
            await connection.execute("UPDATE event_heads SET last = last + $1", EVENT_GAP)
        await happen(platform, tenant.id, 2)
        await until(lambda: len(receiver.received) == 4)
        assert await told_events(platform, tenant, "webhook.behind") == []


def test_one_good_answer_and_a_receiver_does_well() -> None:
    failing = webhook("https://example.com/")._replace(failures=3, failing_since=NOW)
    well = settled_by(failing, [BAD, GOOD], NOW, 0.0)
    assert (well.failures, well.failing_since, well.rest_seconds) == (0, None, 0)
    worse = settled_by(failing, [BAD], NOW, 0.0)
    assert (worse.failures, worse.failing_since, worse.rest_seconds) == (4, NOW, 40)
    assert settled_by(failing, [], NOW, 0.0).failures == 3


def test_a_receiver_that_asks_for_a_rest_has_it() -> None:
    asked = settled_by(webhook(""), [GOOD, Answer(429, retry_after="90")], NOW, 0.0)
    assert (asked.failures, asked.rest_seconds) == (0, 90)


def test_a_receiver_that_is_gone_is_off_whatever_came_before() -> None:
    assert "410" in settled_by(webhook(""), [GOOD, Answer(410)], NOW, 0.0).disabled_because
    long_ago = webhook("")._replace(failures=9, failing_since=NOW - timedelta(days=4))
    assert "4 days" in settled_by(long_ago, [BAD], NOW, 0.0).disabled_because
