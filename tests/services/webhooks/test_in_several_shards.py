"""A webhook of a tenant in several shards is switched off in all of them, or in none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.services.platform_room import owner_on, until
from tests.services.webhooks.conftest import SETTINGS
from tests.services.webhooks.receiver import OK, Received, receiving, reply
from tests.services.webhooks.steps import happen, hurry

from fairway.core.audit import PLATFORM
from fairway.core.ids import TenantId
from fairway.core.tenant import TenantSettings
from fairway.core.webhooks.webhook import Webhook, WebhookTerms
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform
from fairway.services.registry.spread_tenants import SpreadTenants, WantedShards
from fairway.store.events.log import read_events

PARTS = 3
FAILED_LONG = "UPDATE webhooks SET failures = 9, failing_since = now() - interval '73 hours'"


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    async with owner_on(database_url, replaced(SETTINGS, shard_count=4)) as platform:
        yield platform


@pytest.fixture
async def parts(platform: Platform) -> tuple[TenantId, ...]:
    spread = SpreadTenants(platform.database, platform.directory, platform.tenant_shards)
    wanted = WantedShards(None, PARTS)
    first = await spread.add("big", TenantSettings(tier="enterprise"), PLATFORM, wanted)
    assert first is not None
    return first.parts


async def hook(platform: Platform, parts: tuple[TenantId, ...], url: str) -> Webhook:
    terms = WebhookTerms(url, ("circuit.*",), "", True)
    return await platform.outbound.webhooks.add(parts[0], terms, also=parts[1:])


async def rows(platform: Platform, parts: tuple[TenantId, ...], made: Webhook) -> list[Webhook]:
    webhooks = platform.outbound.webhooks
    return await webhooks.of_parts(webhooks.keys_of(parts, made.key.id))


async def tell(platform: Platform, part: TenantId) -> None:
    """Something happens in this part."""
    await happen(platform, part)
    platform.events.sequencer.written(platform.tenant_shards.of(part))


async def test_one_decision_for_all_parts(platform: Platform, parts: tuple[TenantId, ...]) -> None:
    async with receiving(lambda received: reply(410)) as gone:
        made = await hook(platform, parts, gone.url)
        async with asyncio.TaskGroup() as all_at_once:  # parts that find it out together
            for part in parts:
                all_at_once.create_task(tell(platform, part))

        async def is_off() -> bool:
            found = await rows(platform, parts, made)
            return not any(one.terms.enabled for one in found)

        await until(is_off)
        found = await rows(platform, parts, made)
        assert ["410" in one.disabled_because for one in found] == [True] * PARTS

    async def told() -> list[str]:
        async with platform.database.background() as connection:
            logs = [
                await read_events(connection, platform.tenant_shards.of(part), part, 0, 50)
                for part in parts
            ]
        found = [event for log in logs for event in log.events]
        return [event.subject or "" for event in found if event.kind == "webhook.disabled"]

    async def is_told() -> bool:
        return bool(await told())

    await until(is_told)
    assert await told() == [made.key.id], "once, by the id that people know"


async def test_days_of_failures_count_only_where_no_part_had_a_success(
    platform: Platform, parts: tuple[TenantId, ...]
) -> None:
    def answer(received: Received) -> bytes:
        """What comes from the last part it cannot read."""
        return reply(500) if received.id.split("_")[1].endswith(f"{PARTS - 1:x}") else OK

    async with receiving(answer) as picky:
        made = await hook(platform, parts, picky.url)
        await tell(platform, parts[0])
        await until(lambda: len(picky.received) == 1)
        async with platform.database.background() as connection:
            last = f"{FAILED_LONG} WHERE tenant = {parts[-1]}"
            await connection.execute(last)
        await tell(platform, parts[-1])

        async def has_failed(times: int) -> bool:
            return (await rows(platform, parts, made))[-1].failures == times

        await until(lambda: has_failed(10))
        assert all(one.terms.enabled for one in await rows(platform, parts, made))
        async with platform.database.background() as connection:
            await connection.execute(
                "UPDATE webhook_deliveries SET last_at = now() - interval '80 hours'"
                " WHERE state = 1"
            )
        await hurry(platform)
        await until(lambda: has_failed(11))
        off = await rows(platform, parts, made)
        assert [one.terms.enabled for one in off] == [False] * PARTS
        assert {"3 days" in one.disabled_because for one in off} == {True}
