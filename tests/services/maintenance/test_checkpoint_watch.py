"""A long run without a checkpoint is told of, once; one with a checkpoint is not."""

from __future__ import annotations

from pathlib import Path

from tests.services.platform_room import (
    LONG,
    QUICK,
    Hand,
    add_tenant,
    new,
    owner_on,
    submit,
    told_events,
)

from fairway.core.run.lease import LeaseProof
from fairway.runtime.settings import replaced


async def test_a_long_run_without_a_checkpoint_is_told_of_once(
    database_url: str, tmp_path: Path
) -> None:
    settings = replaced(QUICK, storage_url=f"file://{tmp_path}/objects")
    async with owner_on(database_url, settings) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant, new(pool=LONG), new(pool=LONG))
        hand = Hand(platform, long=2)
        careful, careless = await hand.take(2)
        proof = LeaseProof(tenant.id, careful.job.id, careful.epoch, careful.token)
        await platform.large_data.checkpoints.save(proof, 1, b"{}")
        watch = platform.checkpoint_watch
        now_us = platform.clock.now_us()
        await watch.run_once(now_us + 299_000_000)
        assert not await told_events(platform, tenant, "checkpoint.missing")
        for _ in range(2):
            await watch.run_once(now_us + 301_000_000)
        (event,) = await told_events(platform, tenant, "checkpoint.missing")
        assert event.job == careless.job.id
        assert careless.job.id in str(event.data["detail"])
        assert platform.metrics.without_checkpoint._value.get() == 1
