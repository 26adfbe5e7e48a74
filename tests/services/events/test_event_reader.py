"""Pages of a tenant's log: one at a time, at its pace, and in nobody else's way."""

from __future__ import annotations

import asyncio

import pytest
from tests.services.events.test_sequencer import note
from tests.services.platform_room import add_tenant, told_events

from fairway.core.errors import LimitReached
from fairway.core.events.event_filter import EventFilter
from fairway.core.tenant import Tenant
from fairway.services.events import event_reader, event_settings
from fairway.services.platform import Platform
from fairway.store.schema.restored import EVENT_GAP

ALL = EventFilter()
IN_LINE = event_reader.PAGES.in_line


async def test_who_asks_for_very_many_pages_at_once_is_refused(
    platform: Platform, tenant: Tenant
) -> None:
    quiet = await add_tenant(platform, "quiet")
    reader = platform.events.reader
    asked = [reader.following(tenant.id, ALL, 0, 1) for _ in range(IN_LINE + 5)]
    found, theirs = await asyncio.gather(
        asyncio.gather(*asked, return_exceptions=True), reader.newest(quiet.id, ALL, None, 1)
    )
    refused = [one for one in found if isinstance(one, LimitReached)]
    assert [one.code for one in refused] == ["TOO_MANY_QUESTIONS"] * 5
    assert theirs.events == []


async def test_the_next_page_comes_later_by_what_was_read(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await note(platform, tenant.id, 10)
    assert len(await told_events(platform, tenant)) == 10
    monkeypatch.setattr(event_reader, "EVENTS_PER_SECOND", 50)
    now = asyncio.get_running_loop().time
    await platform.events.reader.following(tenant.id, ALL, 0, 10)
    began = now()
    await platform.events.reader.newest(tenant.id, ALL, None, 1)
    assert now() - began > 0.1


async def test_the_newest_are_found_beyond_what_a_restore_left_out(
    platform: Platform, tenant: Tenant
) -> None:
    """From the moment of the restore on, and also when events have come since."""
    reader = platform.events.reader
    await note(platform, tenant.id, 3)
    assert len(await told_events(platform, tenant)) == 3
    async with platform.database.upkeep() as connection:
        await connection.execute("UPDATE event_heads SET last = last + $1", EVENT_GAP)
    found = await reader.newest(tenant.id, ALL, None, 10)
    assert [one.position for one in found.events] == [3, 2, 1]
    await note(platform, tenant.id, 2)
    assert len(await told_events(platform, tenant)) == 5
    late = [EVENT_GAP + 5, EVENT_GAP + 4]
    found = await reader.newest(tenant.id, ALL, None, 3)
    assert [one.position for one in found.events] == [*late, 3]
    rest = await reader.newest(tenant.id, ALL, found.cursor, 3)
    assert [one.position for one in rest.events] == [2, 1]
    assert (await reader.newest(tenant.id, ALL, rest.cursor, 3)).events == []
    forward = await reader.following(tenant.id, ALL, 2, 10)
    assert [one.position for one in forward.events] == [3, *reversed(late)]


async def test_job_events_are_not_switched_on_and_off_all_the_time(
    platform: Platform, tenant: Tenant
) -> None:
    settings = platform.events.settings
    for n in range(event_settings.CHANGES_AT_ONCE):
        await settings.set_job_events(tenant.id, n % 2 == 0)
    with pytest.raises(LimitReached, match="too often"):
        await settings.set_job_events(tenant.id, True)
    await settings.set_job_events(tenant.id, False)  # as it is
    other = await add_tenant(platform, "other")
    await settings.set_job_events(other.id, True)
