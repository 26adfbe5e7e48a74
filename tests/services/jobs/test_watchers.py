"""Who waits for news of a job: told of every change, and forgotten when it leaves."""

from __future__ import annotations

from tests.services.platform_room import (
    until,
)

from fairway.core.ids import TenantId
from fairway.services.platform import Platform


async def test_watchers_are_told_and_forgotten(platform: Platform) -> None:
    with (
        platform.watchers.watch(TenantId(1), "job") as one,
        platform.watchers.watch(TenantId(1), "job") as two,
    ):
        platform.watchers.notify(["other"])
        assert not one.is_set()
        platform.watchers.notify(["job"])
        assert one.is_set()
        assert two.is_set()
        assert platform.watchers.watched() == [(1, "job")]
    assert platform.watchers.watched() == []
    await until(lambda: platform.watchers.watched() == [])
