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
