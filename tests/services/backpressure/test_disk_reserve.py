"""A disk that fills up refuses new jobs before it refuses what becomes of the old ones."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.services.platform_room import (
    QUICK,
    SHORT,
    Hand,
    add_tenant,
    new,
    owner_on,
    sight,
    submit,
    until,
)

from fairway.core.errors import Unavailable
from fairway.core.ids import unix_ms_of
from fairway.core.lifecycle import State
from fairway.core.run.follow_ups import FollowUp, WantedFollowUps
from fairway.core.run.lease import LeaseProof
from fairway.services.backpressure.disk_reserve import DiskReserve


async def test_jobs_are_refused_and_those_that_run_can_end(
    database_url: str, tmp_path: Path
) -> None:
    """The embedded PostgreSQL is the one whose disk this server can see."""
    kept = replace(QUICK, data_dir=tmp_path, disk_reserve_bytes=1)
    async with owner_on(database_url, kept) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant, new(), new(), new())
        hand = Hand(platform)
        lease, parent, large = await hand.take(3)
        free_bytes = shutil.disk_usage(tmp_path).free
        platform.admission.disk_reserve._reserve_bytes = (
            2 * free_bytes
        )  # as if others had filled it
        platform.loops["disk reserve"].wake()
        await until(lambda: platform.admission.disk_reserve._is_low)
        with pytest.raises(Unavailable) as refused:
            await submit(platform, tenant)
        assert (refused.value.code, refused.value.retry_after_seconds) == ("DISK_FULL", 30)
        assert platform.ticker._ports.is_full()
        assert await hand.report(hand.done(lease)) == ({1}, set())
        wants = WantedFollowUps(
            unix_ms_of(parent.job.id), [FollowUp("work", SHORT, 5, None, b"{}")]
        )
        await hand.report(hand.done(parent, wants=wants))
        found = (await sight(platform, tenant, parent.job.id)).record
        assert found.state == State.SCHEDULED, "it runs again, and tries to start it then"
        assert b"DISK_FULL" in bytes(found.error or b"")
        state = LeaseProof(tenant.id, large.job.id, large.epoch, large.token)
        checkpoints = platform.large_data.checkpoints
        with pytest.raises(Unavailable, match="no checkpoint is kept"):
            await checkpoints.save(state, 1, b"{}")
        result = b'"%s"' % (b"x" * platform.settings.inline_bytes_max)
        reporting = asyncio.create_task(hand.report(hand.done(large, result=result)))
        await until(lambda: bool(platform.recorder.large_results.waiting))
        platform.admission.disk_reserve._reserve_bytes = 1
        platform.loops["disk reserve"].wake()
        await until(lambda: not platform.admission.disk_reserve._is_low)
        assert len(await submit(platform, tenant)) == 1
        assert await reporting == ({3}, set())


async def test_of_a_database_elsewhere_nobody_here_knows_the_disk(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "not-there"):
        reserve = DiskReserve(folder, 1 << 60)
        await reserve.run_once(0)
        reserve.check()
