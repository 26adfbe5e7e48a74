"""What is noted of tenants that left: only what the owner of their shard has seen to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tests.services.platform_room import submit

from fairway.core.ids import Term
from fairway.core.regions.homes import DirectoryTerm, Home, HomeTerm
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.regions.leaving_jobs import SETTLE_US, Moving
from fairway.store.regions import regions

AWAY = Home("us", HomeTerm(1), DirectoryTerm(1))


async def test_who_lost_the_shard_notes_nothing(platform: Platform, tenant: Tenant) -> None:
    """It was stopped and resumed: under its old term nothing left the jobs."""
    await submit(platform, tenant)
    terms, dispatcher = [Term(0)], platform.dispatcher
    stale: Any = SimpleNamespace(
        is_open=lambda shard: True,
        term_of=lambda shard: terms[-1],
        is_underway=dispatcher.is_underway,
        cancelled=dispatcher.cancelled,
    )
    homes: Any = SimpleNamespace(
        changes=1, away=lambda: {tenant.id: AWAY}, emptied=lambda tenant, under: None
    )
    shards = platform.tenant_shards
    moving = Moving(platform.database, stale, platform.watchers, homes, tenant_shards=shards)
    async with platform.database.background() as connection:
        await regions.set_home(connection, tenant.id, "us", AWAY.directory_term)

    async def is_noted(now_us: int) -> bool:
        await moving.run_once(now_us)
        async with platform.database.background() as connection:
            return not await regions.not_handed_over(connection, {tenant.id: AWAY})

    await moving.run_once(0)
    assert not await is_noted(SETTLE_US)
    terms.append(cast(Term, dispatcher.term_of(shards.of(tenant.id))))
    assert not await is_noted(10**9), "a page left"
    assert await is_noted(10**9)
