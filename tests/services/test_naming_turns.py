"""Names of job types: made and asked for in turn, and not asked for in vain twice."""

from __future__ import annotations

import asyncio

import pytest
from tests.locked import held_table, somebody_stands, standing
from tests.services.platform_room import add_tenant, another_directory, until

from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.registry import type_names as module

PEOPLE = "fairway-people"
SOON_SECONDS = 1.5  # before whoever stands at a lock gives up
FLOOD = 200


async def test_new_names_of_very_many_tenants_leave_connections_to_others(
    platform: Platform, database_url: str
) -> None:
    names = platform.directory.names
    async with held_table(database_url, "job_types") as holder:
        wanted = [
            names.know(TenantId(1 + number % 20), [f"new.{number}"]) for number in range(FLOOD)
        ]
        flood = [asyncio.create_task(one) for one in wanted]
        await somebody_stands(holder, PEOPLE)
        await one_question(platform)
        assert await standing(holder, PEOPLE) <= module.NAMING_AT_ONCE
    found = await asyncio.gather(*flood, return_exceptions=True)
    made = [one for one in found if isinstance(one, dict)]
    assert made
    assert all(isinstance(one, dict | Unavailable) for one in found)


async def one_question(platform: Platform) -> None:
    """Of an operator's; nobody who made names up may hold it up."""
    async with asyncio.timeout(SOON_SECONDS), platform.database.people() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_tenants_questions_for_names_leave_connections_to_others(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    find = platform.directory.find_type
    async with held_table(database_url, "job_types") as holder:
        asked = [find(f"made.up.{number}", tenant.id) for number in range(FLOOD)]
        flood = [asyncio.create_task(one) for one in asked]
        await somebody_stands(holder, PEOPLE)
        await one_question(platform)
        assert await standing(holder, PEOPLE) <= 2
    assert None in await asyncio.gather(*flood, return_exceptions=True)


async def test_a_tenants_pauses_leave_connections_to_others(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    async with held_table(database_url, "pauses") as holder:
        flood = [asyncio.create_task(platform.pauses.of(tenant.id)) for _ in range(FLOOD)]
        await somebody_stands(holder, PEOPLE)
        await one_question(platform)
        assert await standing(holder, PEOPLE) <= 2
    found = await asyncio.gather(*flood, return_exceptions=True)
    assert () in found


async def test_a_name_that_nobody_knows_is_not_asked_for_again_for_a_moment(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    ours, theirs = platform.directory, another_directory(platform.database)
    assert await theirs.find_type("coming", tenant.id) is None
    async with held_table(database_url, "job_types"), asyncio.timeout(SOON_SECONDS):
        for _ in range(FLOOD):
            if await theirs.find_type("coming", tenant.id) is not None:
                raise AssertionError("nobody made it")
    await ours.know_types(["coming"])
    assert await ours.find_type("coming", tenant.id) == ours.type_ids["coming"]

    async def is_found() -> bool:
        return await theirs.find_type("coming", tenant.id) == ours.type_ids["coming"]

    await until(is_found)


async def test_made_here_it_is_found_here_at_once(platform: Platform) -> None:
    tenant = await add_tenant(platform, "hasty")
    assert await platform.directory.find_type("at.once", tenant.id) is None
    await platform.directory.know_types(["at.once"])
    assert await platform.directory.find_type("at.once", tenant.id) is not None


async def test_so_many_absent_names_are_remembered(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ABSENT_NAMES_REMEMBERED", 3)
    for number in range(6):
        assert await platform.directory.find_type(f"absent.{number}", tenant.id) is None
    assert list(platform.directory.names._not_in_use) == ["absent.3", "absent.4", "absent.5"]
