"""A server that may send webhooks to loopback ports, and what tests tell it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.services.platform_room import QUICK, add_tenant, owner_on

from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform

SETTINGS = replaced(
    QUICK,
    webhook_http=True,
    webhook_private_networks="127.0.0.0/8",
    webhook_call_seconds=60.0,  # longer than any test waits
)


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    async with owner_on(database_url, SETTINGS) as platform:
        yield platform


@pytest.fixture
async def tenant(platform: Platform) -> Tenant:
    return await add_tenant(platform)
