"""A running owner and a tenant on it, for tests of services."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.services.platform_room import add_tenant, owner_on

from fairway.core.tenant import Tenant
from fairway.services.platform import Platform


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    """A server that owns its one shard, every loop going."""
    async with owner_on(database_url) as platform:
        yield platform


@pytest.fixture
async def tenant(platform: Platform) -> Tenant:
    return await add_tenant(platform)
