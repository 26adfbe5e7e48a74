"""A tenant that is at home elsewhere has nothing started here before all of it was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairway.core.ids import TenantId
from fairway.core.regions.homes import DirectoryTerm, Home, HomeTerm
from fairway.core.regions.region_map import region_map
from fairway.services.regions.home_table import HomeTable
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.restraints.holds import HoldRegistry
from fairway.store.regions import regions as store
from fairway.store.regions.regions import RegionRow

ONE = TenantId(1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Holds:
    def __init__(self) -> None:
        self.of: dict[TenantId, Any] = {}

    def replace_for(self, source: str, found: Mapping[TenantId, Any]) -> None:
        self.of |= found


async def test_who_left_again_is_held_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was here between two looks, or came back while it was looked through."""
    told: dict[TenantId, Home] = {}

    async def read_region(connection: Any) -> RegionRow:
        return RegionRow("eu", "eu", DirectoryTerm(1), NOW, 0, NOW)

    async def homes_since(connection: Any, since: datetime) -> dict[TenantId, Home]:
        return dict(told)

    monkeypatch.setattr(store, "read_region", read_region)
    monkeypatch.setattr(store, "homes", homes_since)
    regions, holds = region_map("eu", "eu=http://127.0.0.1:8;us=http://127.0.0.1:9"), Holds()
    assert regions is not None
    directory = cast(Directory, SimpleNamespace(tenants={ONE: None}))
    table = HomeTable(regions, directory, cast(HoldRegistry, holds))

    async def hear(region: str, term: int) -> Home:
        told[ONE] = Home(region, HomeTerm(term), DirectoryTerm(1))
        await table.read(cast(Any, None))
        return told[ONE]

    away = await hear("us", 1)
    table.emptied(ONE, away)
    assert not holds.of[ONE]
    away = await hear("us", 3)
    assert holds.of[ONE], "its jobs of meanwhile are not started"
    await hear("eu", 4)
    table.emptied(ONE, away)
    await hear("us", 5)
    assert holds.of[ONE]
