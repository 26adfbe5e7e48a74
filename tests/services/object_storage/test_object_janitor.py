"""Object storage holds no more than is needed, and never less."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.postgres import connected
from tests.services.platform_room import LONG, QUICK, Hand, add_tenant, new, owner_on, submit
from tests.store.rows import add_jobs, new_job

from fairway.core.ids import Epoch
from fairway.core.object_storage.object_names import (
    ObjectScope,
    checkpoint_name,
    day_of,
    object_name,
)
from fairway.core.run.lease import LeaseProof
from fairway.runtime.settings import replaced
from fairway.services.object_storage.object_janitor import Janitor
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease
from fairway.store.object_storage.storage import MARKER
from fairway.store.schema import partition_retirement, partitions

GONE = "01980a5e-7c1b-7000-8000-04a2b1c3d4e5"  # a job that is nowhere


@pytest.fixture
def settings_storage(tmp_path: Path) -> str:
    return f"file://{tmp_path}/objects"


def janitor_of(platform: Platform) -> Janitor:
    return Janitor(
        platform.database, platform.dispatcher, platform.large_data.objects, platform.store_clock, 7
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
        await platform.large_data.checkpoints.save(proof(lease), 1, b"1")
        await janitor_of(platform).run_once(0)
        assert len(await platform.large_data.objects.names("checkpoints")) == 1
        await hand.report(hand.done(lease))
        await janitor_of(platform).run_once(0)
        assert await platform.large_data.objects.names("checkpoints") == []


async def test_litter_goes_when_its_day_is_past_and_its_job_is_gone(
    database_url: str, settings_storage: str, tmp_path: Path
) -> None:
    async with owner_on(database_url, replaced(QUICK, storage_url=settings_storage)) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(pool=LONG))
        now = platform.store_clock.now()
        old, today = day_of(now - timedelta(days=9)), day_of(now)
        needed = checkpoint_name(ObjectScope(old, tenant.id, job), Epoch(1), 1, b"\x00" * 32)
        recent = object_name("payloads", ObjectScope(today, tenant.id, GONE), "payload")
        litter = checkpoint_name(ObjectScope(old, tenant.id, GONE), Epoch(1), 1, b"\x00" * 32)
        two_days_ago = day_of(now - timedelta(days=2))
        upload = object_name("uploads", ObjectScope(today, tenant.id, "abc"), "body")
        unclaimed = object_name("uploads", ObjectScope(two_days_ago, tenant.id, "def"), "body")
        for name in (needed, recent, litter, upload, unclaimed):
            await platform.large_data.objects.put(name, b"{}")
        half = tmp_path / "objects" / ".parts" / "half"
        half.write_bytes(b"what a crash left")
        os.utime(half, ((now - timedelta(hours=3)).timestamp(),) * 2)
        await janitor_of(platform).run_once(0)
        assert set(await platform.large_data.objects.names("")) == {needed, recent, upload, MARKER}
        assert list(half.parent.iterdir()) == []


async def test_nothing_of_a_job_goes_while_its_partition_is_on_its_way_out(
    database_url: str, settings_storage: str
) -> None:
    """It ended between the survey and the detach: until it is carried, no partition has it."""
    async with (
        owner_on(database_url, replaced(QUICK, storage_url=settings_storage)) as platform,
        connected(database_url) as connection,
    ):
        await platform.loops["pruner"].stop()
        await platform.loops["janitor"].stop()
        now = platform.store_clock.now()
        old = now - timedelta(days=20)
        table = partitions.partition_at(old).name
        await partitions.make_ahead(connection, old)
        job = new_job(at=old)
        await add_jobs(connection, job)
        await connection.execute(
            "UPDATE jobs SET state = 3, finished_at = now() WHERE id = $1", job.id
        )
        needed = object_name("payloads", ObjectScope(day_of(old), job.tenant, job.id), "payload")
        upload = object_name("uploads", ObjectScope(day_of(old), job.tenant, "def"), "body")
        for name in (needed, upload):
            await platform.large_data.objects.put(name, b"{}")
        await partition_retirement.detach(connection, table, late=[])
        janitor = janitor_of(platform)
        await janitor.run_once(0)
        assert set(await platform.large_data.objects.names("")) == {needed, MARKER}, (
            "uploads go all the same"
        )
        await partition_retirement.carry_missed(connection, table, range(100), old)
        await partition_retirement.drop(connection, table)
        litter = object_name("payloads", ObjectScope(day_of(old), job.tenant, GONE), "payload")
        await platform.large_data.objects.put(litter, b"{}")
        await janitor.run_once(0)
        assert set(await platform.large_data.objects.names("")) == {needed, MARKER}, (
            "again on the same day"
        )


async def test_a_partition_stays_while_it_is_asked_whose_job_is_gone(database_url: str) -> None:
    async with connected(database_url) as asking, connected(database_url) as connection:
        old = datetime.now(UTC) - timedelta(days=20)
        await partitions.make_ahead(connection, old)
        table = partitions.partition_at(old).name
        async with asking.transaction():
            assert await partition_retirement.is_settled(asking)
            with pytest.raises(partitions.NOT_NOW):
                await partition_retirement.detach(connection, table, late=[])
        await partition_retirement.detach(connection, table, late=[])
        async with asking.transaction():
            assert not await partition_retirement.is_settled(asking)
