"""Shards become more while servers own them and jobs run: nobody moves, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.services.dispatch.roaming_worker import RoamingWorker
from tests.services.ownership.test_spreading import Load, joined, of_every_shard, opened
from tests.services.platform_room import MEDIUM, QUICK, add_tenant, new, submit, until

from fairway.core.audit import PLATFORM
from fairway.core.errors import Conflict, Unavailable
from fairway.core.ids import shard_of
from fairway.core.tenant import Tenant
from fairway.runtime.settings import Settings
from fairway.services.platform import Platform
from fairway.services.registry import shard_count

FEW, MANY = 4, 8
TERM_SECONDS = 2.0
QUEUED = int(os.environ.get("FAIRWAY_SPLIT_QUEUED", "1000000"))  # of one tenant, in the soak
QUEUED_AT_ONCE = 2_000
PHASE_SECONDS = 20.0


async def split(platform: Platform, count: int) -> int:
    return await shard_count.grow(platform.database, platform.audit_log, count, PLATFORM)


async def test_shards_become_more_under_load_and_new_tenants_use_them(database_url: str) -> None:
    settings = replace(QUICK, shard_count=FEW, term_seconds=TERM_SECONDS)
    first, second = [await joined(database_url, settings) for _ in range(2)]
    servers = first, second
    await until(lambda: opened(*servers) == [FEW // 2] * 2)
    old, worker = await of_every_shard(first), RoamingWorker()
    await second.directory.run_once(0)
    homes = {one.id: second.tenant_shards.of(one.id) for one in old}
    load = Load(list(old))
    worker.meet(*servers)
    load.begin(*servers)
    await until(lambda: len(load.jobs) >= 20)

    assert await split(second, MANY) == FEW
    await until(lambda: opened(*servers) == [MANY // 2] * 2)
    assert await split(first, MANY) == MANY, "said again, it is so already"
    with pytest.raises(Conflict, match="never become fewer"):
        await split(first, MANY - 1)
    assert [one.tenant_shards.count for one in servers] == [MANY] * 2
    assert all((await first.readiness.checks()).values())

    late = [await add_tenant(second, f"late{number}") for number in range(MANY)]
    await first.directory.run_once(0)
    for one in servers:
        assert {one.tenant_shards.of(tenant.id) for tenant in late} == set(range(MANY))
        assert {tenant.id: one.tenant_shards.of(tenant.id) for tenant in old} == homes
    jobs = [job for one in late for job in await submit(first, one)]
    assert sorted(map(shard_of, jobs)) == list(range(MANY))
    await load.end()
    sent = {*load.jobs, *jobs}
    await until(lambda: worker.done >= sent)
    await worker.leave()
    await first.let_go()  # whoever is left has all of them
    await until(lambda: opened(second) == [MANY])
    for one in servers:
        await one.stop()
    assert worker.runs.keys() == sent
    assert max(worker.runs.values()) == 1
    assert worker.trouble == []

    third = await joined(database_url, settings)  # it finds more than it was founded with
    await until(lambda: opened(third) == [MANY])
    assert third.cluster.shard_count == FEW
    assert third.tenant_shards.of(old[0].id) == homes[old[0].id]
    placed = await third.directory.add_tenant("large", shard=third.tenant_shards.of(late[-1].id))
    assert placed is not None
    assert third.tenant_shards.of(placed.id) == third.tenant_shards.of(late[-1].id)
    await third.stop()


async def waits(worker: RoamingWorker, load: Load, seconds: float) -> list[float]:
    """How long jobs of the load took from acceptance until they were recorded."""
    began = dict[str, float]()
    took, known, ends = list[float](), len(load.jobs), time.monotonic() + seconds
    while time.monotonic() < ends:
        await asyncio.sleep(0.002)
        now = time.monotonic()
        began |= dict.fromkeys(load.jobs[known:], now)
        known = len(load.jobs)
        for job in [one for one in began if one in worker.done]:
            took.append(now - began.pop(job))
    return sorted(took)


def p99_ms(took: list[float]) -> float:
    return took[int(len(took) * 0.99)] * 1000


async def queue_for(platform: Platform, tenant: Tenant, count: int) -> int:
    """About so many; answers how many it were."""
    while (queued := await rows_of(platform, tenant)) < count:
        with suppress(Unavailable):  # it may be there all the same
            for _ in range(queued, count, QUEUED_AT_ONCE):
                await submit(platform, tenant, *[new("rest", MEDIUM)] * QUEUED_AT_ONCE)
    return queued


async def rows_of(platform: Platform, tenant: Tenant) -> int:
    asked = "SELECT count(*) FROM jobs WHERE tenant = $1"
    async with platform.database.background() as connection:
        return int(await connection.fetchval(asked, tenant.id, timeout=120))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_16_shards_become_64_beside_a_tenant_with_very_many_jobs(database_url: str) -> None:
    """FAIRWAY_SPLIT_QUEUED says how many; prints what was seen."""
    settings = Settings(data_dir=QUICK.data_dir, shard_count=16)
    servers = [await joined(database_url, settings) for _ in range(2)]
    first = servers[0]
    await until(lambda: opened(*servers) == [8, 8], 30)
    tenants, worker = await of_every_shard(first), RoamingWorker()
    heavy = await add_tenant(first, "heavy", depth_limit=10 * QUEUED)
    await servers[1].directory.run_once(0)
    queued = await queue_for(first, heavy, QUEUED)
    load = Load(tenants)
    worker.meet(*servers)
    load.begin(*servers)
    await waits(worker, load, 3)
    before = await waits(worker, load, PHASE_SECONDS)
    worker.forget_gaps()
    began = time.monotonic()
    await split(first, 64)
    watching = asyncio.create_task(waits(worker, load, PHASE_SECONDS))
    await until(lambda: opened(*servers) == [32, 32], 60)
    opened_seconds = time.monotonic() - began
    during = await watching
    load._tenants = [*tenants, *[await add_tenant(first, f"late{n}") for n in range(64)]]
    await servers[1].directory.run_once(0)
    after = await waits(worker, load, PHASE_SECONDS)
    await load.end()
    sent = set(load.jobs)
    await until(lambda: worker.done >= sent, 120)
    left = await rows_of(first, heavy)
    doubled = [count for count in worker.runs.values() if count > 1]
    print(  # noqa: T201  # what the soak is run for
        f"{len(sent)} jobs beside {queued} of one tenant, lost {len(sent - worker.done)},"
        f" run twice {len(doubled)}, of the many {queued - left} missing; all 64 shards open after"
        f" {opened_seconds:.1f} s; p99 {p99_ms(before):.0f} ms before, {p99_ms(during):.0f} ms"
        f" in the {PHASE_SECONDS:.0f} s of the split, {p99_ms(after):.0f} ms with 80 tenants after;"
        f" longest without a grant {max(worker.gaps.values()):.2f} s; trouble {worker.trouble}"
    )
    await worker.leave()
    for one in servers:
        await one.stop()
    assert (doubled, worker.trouble, left) == ([], [], queued)
    assert len(worker.gaps) == 64
