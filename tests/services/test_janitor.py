"""Object storage holds no more than is needed, and never less."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from tests.services.platform_room import LONG, QUICK, Hand, add_tenant, new, owner_on, submit

from fairway.core.lease import LeaseProof
from fairway.core.objects import Place, checkpoint_name, day_of, object_name
from fairway.runtime.settings import replaced
from fairway.services.janitor import Janitor
from fairway.services.platform import Platform
from fairway.services.sessions import Lease


@pytest.fixture
def settings_storage(tmp_path: Path) -> str:
    return f"file://{tmp_path}/objects"


def janitor_of(platform: Platform) -> Janitor:
    return Janitor(
        platform.database, platform.dispatcher, platform.objects, platform.store_clock, 7
    )


def proof(lease: Lease) -> LeaseProof:
    return LeaseProof(lease.job.tenant, lease.job.id, lease.epoch, lease.token)


async def test_checkpoints_go_when_their_job_has_ended(
    database_url: str, settings_storage: str
) -> None:
    async with owner_on(database_url, replaced(QUICK, storage_url=settings_storage)) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant, new(pool=LONG))
        hand = Hand(platform, long=1)
        (lease,) = await hand.take()
        await platform.checkpoints.save(proof(lease), 1, b"1")
        await janitor_of(platform).run_once(0)
        assert len(await platform.objects.names("checkpoints")) == 1
        await hand.report(hand.done(lease))
        await janitor_of(platform).run_once(0)
        assert await platform.objects.names("checkpoints") == []


async def test_litter_goes_when_its_day_is_past_and_its_job_is_gone(
    database_url: str, settings_storage: str, tmp_path: Path
) -> None:
    async with owner_on(database_url, replaced(QUICK, storage_url=settings_storage)) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(pool=LONG))
        now = platform.store_clock.now()
        gone = "01980a5e-7c1b-7000-8000-04a2b1c3d4e5"
        old, today = day_of(now - timedelta(days=9)), day_of(now)
        needed = checkpoint_name(Place(old, tenant.id, job), 1, 1, b"\x00" * 32)
        recent = object_name("payloads", Place(today, tenant.id, gone), "payload")
        litter = checkpoint_name(Place(old, tenant.id, gone), 1, 1, b"\x00" * 32)
        two_days_ago = day_of(now - timedelta(days=2))
        upload = object_name("uploads", Place(today, tenant.id, "abc"), "body")
        unclaimed = object_name("uploads", Place(two_days_ago, tenant.id, "def"), "body")
        for name in (needed, recent, litter, upload, unclaimed):
            await platform.objects.put(name, b"{}")
        half = tmp_path / "objects" / ".parts" / "half"
        half.write_bytes(b"what a crash left")
        os.utime(half, ((now - timedelta(hours=3)).timestamp(),) * 2)
        await janitor_of(platform).run_once(0)
        assert set(await platform.objects.names("")) == {needed, recent, upload}
        assert list(half.parent.iterdir()) == []
