"""What a deleted tenant leaves behind goes, page by page; its name when its time is over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.services.billing.test_statements import DAY, LAST, close_all, turn_back, use
from tests.services.platform_room import (
    MEDIUM,
    Hand,
    add_tenant,
    another_directory,
    new,
    stored,
    submit,
    until,
)
from tests.services.scheduling.test_schedules import put

from fairway.core.backlog.holds import Hold
from fairway.core.errors import Conflict
from fairway.core.ids import FIRST_SHARD, HIGHEST_JOB_ID, LOWEST_JOB_ID, ShardId, TenantId
from fairway.core.job import JobFilter
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.random_ids import new_api_key
from fairway.services.jobs.control import Ending
from fairway.services.maintenance import deleted_tenants
from fairway.services.maintenance.deleted_tenants import DeletedTenants
from fairway.services.platform import Platform
from fairway.services.restraints.pauses import Pauser
from fairway.store.connections.database import Connection
from fairway.store.registry.tenant_states import forget_tenant
from fairway.store.registry.tenants import read_key

HELD = """
INSERT INTO held_jobs (shard, tenant, id, last_id, kind, job_count, body)
VALUES ($1, $2, $3::text::uuid, $3::text::uuid, 0, 1, '{}')"""


def sweeper(
    platform: Platform, deleted: Callable[[], list[Tenant]] | None = None
) -> DeletedTenants:
    """One of its own, beside the stopped loops; it may have heard otherwise of who is deleted."""
    return DeletedTenants(
        platform.database,
        platform.dispatcher,
        platform.control,
        platform.store_clock,
        deleted=deleted or platform.suspensions.deleted,
        forget=platform.suspensions.forget,
        kept=platform.tenant_states.kept,
        tenant_shards=platform.tenant_shards,
    )


async def delete(platform: Platform, tenant: Tenant) -> Tenant:
    return await platform.tenant_states.delete(tenant.name, may_suspend=True)


async def grown_old(platform: Platform, tenant: Tenant) -> None:
    """As if it had been deleted longer ago than it is kept."""
    async with platform.database.background() as connection:
        await connection.execute(
            "UPDATE tenants SET state_since = now() - $1::interval, updated_at = now()"
            " WHERE id = $2",
            platform.tenant_states.kept + timedelta(hours=1),
            tenant.id,
        )
    await platform.directory.refresh()


async def all_is_stated(platform: Platform) -> None:
    """As if all that was used were of months that are stated, and past keeping."""
    async with platform.database.people() as connection:
        await connection.execute("DELETE FROM usage_log")
        await connection.execute("DELETE FROM usage_hours")


async def test_what_waits_is_cancelled_page_by_page_and_schedules_go(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleted_tenants, "JOBS_AT_ONCE", 2)
    await platform.loops["deleted tenants"].stop()
    other = await add_tenant(platform, "other")
    mine = await submit(platform, tenant, *[new()] * 5)
    theirs = await submit(platform, other)
    schedule = await put(platform, tenant, "mine")
    key = new_api_key("tenant")
    await platform.directory.add_key(key, tenant.id)
    assert await platform.directory.authenticate(key.text) is not None
    async with platform.database.background() as connection:
        await connection.execute(HELD, platform.tenant_shards.of(tenant.id), tenant.id, mine[0])
    await delete(platform, tenant)
    assert await platform.directory.authenticate(key.text) is None, "its keys are gone at once"
    sweep = sweeper(platform)
    for waiting in (3, 1, 0):
        assert await sweep.run_once(0) == deleted_tenants.BUSY_SECONDS
        states = [(await stored(platform, job))[0] for job in mine]
        assert states.count(State.QUEUED) == waiting
    assert await platform.schedules.page(schedule.tenant, "", 10) == []
    await sweep.run_once(0)
    assert await sweep.run_once(1) == deleted_tenants.REST_SECONDS, "nothing is left"
    async with platform.database.background() as connection:  # its home would never take it
        assert await connection.fetchval("SELECT count(*) FROM held_jobs") == 0
    assert (await stored(platform, theirs[0]))[0] is State.QUEUED
    hand = Hand(platform)
    (lease,) = await hand.take()
    assert lease.job.id == theirs[0]


async def test_one_whose_page_fails_stops_no_other(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await platform.loops["deleted tenants"].stop()
    other = await add_tenant(platform, "other")
    (mine,), (theirs,) = await submit(platform, tenant), await submit(platform, other)
    await delete(platform, tenant)
    await delete(platform, other)
    cancel_within = platform.control.cancel_within

    async def refused(
        connection: Connection, shard: ShardId, whose: TenantId, *given: Any
    ) -> Ending:
        if whose == tenant.id:
            raise ValueError("a row that nobody can read")
        return await cancel_within(connection, shard, whose, *given)

    monkeypatch.setattr(platform.control, "cancel_within", refused)
    await sweeper(platform).run_once(0)
    assert (await stored(platform, theirs))[0] is State.CANCELLED
    assert (await stored(platform, mine))[0] is State.QUEUED
    assert platform.dispatcher.holds().is_suspended(tenant.id), "and nothing of it starts"


async def test_a_name_is_free_when_its_time_is_over_and_nothing_is_inherited(
    platform: Platform, tenant: Tenant
) -> None:
    await platform.loops["deleted tenants"].stop()
    await platform.pauses.pause(Hold(tenant.id), Pauser(asker=tenant.id))
    (job,) = await submit(platform, tenant)
    await delete(platform, tenant)
    sweep = sweeper(platform)
    assert await platform.directory.add_tenant(tenant.name) is None, "it can be restored"
    await grown_old(platform, tenant)
    with pytest.raises(Conflict, match="past restoring"):
        await platform.tenant_states.restore(tenant.name)
    await sweep.run_once(0)  # its job is cancelled
    await sweep.run_once(1)  # nothing is left
    made = await platform.directory.add_tenant(tenant.name)
    assert made is not None
    assert made.id != tenant.id
    await platform.pauses.run_once(0)
    assert platform.dispatcher.holds().naming(made.id) == []
    assert await platform.pauses.of(made.id) == ()
    everything = JobFilter(HIGHEST_JOB_ID, LOWEST_JOB_ID, None, None, None, 10)
    assert await platform.job_lookup.jobs(made.id, everything) == []
    again = another_directory(platform.database)
    await again.run_once(0)
    assert again.tenants[again.tenant_ids[tenant.name]].id == made.id
    assert (await stored(platform, job))[0] is State.CANCELLED


async def test_it_is_not_forgotten_while_a_job_of_it_is_live(
    platform: Platform, tenant: Tenant
) -> None:
    """A run that will not end: without its tenant its next try would be held by nothing."""
    hand = Hand(platform, medium=1)
    await submit(platform, tenant, new(pool=MEDIUM))
    (lease,) = await hand.take()
    await platform.loops["deleted tenants"].stop()
    await delete(platform, tenant)
    await grown_old(platform, tenant)
    sweep = sweeper(platform)
    await sweep.run_once(0)
    assert await platform.directory.add_tenant(tenant.name) is None
    word = hand.done(lease)
    assert await hand.report(word) == ({word.number}, set())
    await until(lambda: lease.job.id not in platform.dispatcher.leases)
    await all_is_stated(platform)
    await sweep.run_once(deleted_tenants.AGAIN_US)
    assert await platform.directory.add_tenant(tenant.name) is not None


async def test_one_that_was_brought_back_loses_nothing(platform: Platform, tenant: Tenant) -> None:
    """A server that heard of the deletion and not of its end comes to forget it."""
    await platform.loops["deleted tenants"].stop()
    key = new_api_key("tenant")
    await platform.directory.add_key(key, tenant.id)
    async with platform.database.background() as connection:
        assert not await forget_tenant(connection, FIRST_SHARD, tenant.id, timedelta(0))
        assert await read_key(connection, key.id) is not None


async def test_one_that_was_brought_back_elsewhere_is_left_alone(
    platform: Platform, tenant: Tenant
) -> None:
    """The owner of its shard has not heard of it yet: what is new there stays."""
    await platform.loops["deleted tenants"].stop()
    await delete(platform, tenant)
    heard = platform.suspensions.deleted()
    assert [one.id for one in heard] == [tenant.id]
    await platform.tenant_states.restore(tenant.name)
    await platform.tenant_states.resume(tenant.name)
    schedule = await put(platform, tenant, "mine")
    (job,) = await submit(platform, tenant)
    await sweeper(platform, lambda: heard).run_once(0)
    assert len(await platform.schedules.page(schedule.tenant, "", 10)) == 1
    assert (await stored(platform, job))[0] is State.QUEUED


async def test_it_is_not_forgotten_before_its_month_is_stated(
    platform: Platform, tenant: Tenant
) -> None:
    """Whether what it used still stands in the log, or in hours; else nobody would be billed."""
    for name in ("deleted tenants", "months", "usage"):
        await platform.loops[name].stop()
    await turn_back(platform, LAST)
    await use(platform, tenant, LAST.begins + DAY, 5_000_000)
    await delete(platform, tenant)
    await grown_old(platform, tenant)
    sweep = sweeper(platform)
    await sweep.run_once(0)
    assert await platform.directory.add_tenant(tenant.name) is None
    await platform.billing.roll_up.drain(FIRST_SHARD)
    await sweep.run_once(deleted_tenants.AGAIN_US)
    assert await platform.directory.add_tenant(tenant.name) is None
    await close_all(platform)
    await sweep.run_once(2 * deleted_tenants.AGAIN_US)
    assert await platform.directory.add_tenant(tenant.name) is not None
    async with platform.database.people() as connection:
        billed = await connection.fetchval("SELECT array_agg(tenant) FROM statements")
    assert billed == [tenant.id]
