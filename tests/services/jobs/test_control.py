"""Cancelling: waiting jobs at once, running ones by asking, and never a job that has ended."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from tests.services.platform_room import (
    MEDIUM,
    Hand,
    add_tenant,
    freeze,
    holding,
    new,
    platform_on,
    stored,
    submit,
)

from fairway.core.errors import Conflict, NotFound, Unavailable
from fairway.core.lifecycle import State
from fairway.core.run.outcome import Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.jobs import control as control_module
from fairway.services.platform import Platform
from fairway.store import outcomes


async def test_a_waiting_job_is_cancelled_at_once_and_never_granted(
    platform: Platform, tenant: Tenant
) -> None:
    doomed, other = await submit(platform, tenant, new(), new())
    seen = await platform.control.cancel(tenant.id, doomed)
    assert seen.record.state == State.CANCELLED
    leases = await Hand(platform).take()
    assert [lease.job.id for lease in leases] == [other]


async def test_a_running_job_is_asked_to_stop(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    assert (await platform.control.cancel(tenant.id, job)).record.state == State.RUNNING
    await platform.control.cancel(tenant.id, job)  # asking twice asks once
    news = await hand.say()
    assert news is not None
    assert news.cancels == [job]
    await hand.report(hand.done(lease, Outcome(OutcomeKind.CANCELLED, 5)))
    assert (await stored(platform, job))[0] is State.CANCELLED


async def test_a_run_that_finishes_before_it_hears_has_succeeded(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    await platform.control.cancel(tenant.id, job)
    await hand.report(hand.done(lease))
    assert (await stored(platform, job))[0] is State.SUCCEEDED


async def test_what_has_ended_cannot_be_cancelled(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    await platform.control.cancel(tenant.id, job)
    with pytest.raises(Conflict, match="cancelled"):
        await platform.control.cancel(tenant.id, job)


async def test_another_tenants_job_is_not_there(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    stranger = await add_tenant(platform, "stranger")
    with pytest.raises(NotFound):
        await platform.control.cancel(stranger.id, job)
    assert (await stored(platform, job))[0] is State.QUEUED


async def test_only_the_owner_cancels(database_url: str, platform: Platform) -> None:
    tenant = await add_tenant(platform)
    (job,) = await submit(platform, tenant)
    async with platform_on(database_url) as other:
        with pytest.raises(Unavailable) as refusal:
            await other.control.cancel(tenant.id, job)
        assert refusal.value.code == "NOT_OWNER"


async def test_a_lazy_lease_on_a_job_cancelled_in_the_store_is_revoked(
    platform: Platform, tenant: Tenant
) -> None:
    """The writer of leases finds the row gone from the queue, and takes the job back."""
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    await hand.take()
    async with platform.database.background() as connection:
        await connection.execute(
            "UPDATE jobs SET state = 5, finished_at = now() WHERE id = $1", job
        )
    while True:
        news = await hand.say(wait_seconds=0.2)
        assert news is not None
        if news.revoked:
            break
    assert news.revoked == [job]
    await freeze(platform)
    assert platform.dispatcher.leases == {}


async def test_a_cancellation_of_a_run_that_nobody_knows_ends_soon(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "CANCEL_SECONDS_MAX", 0.1)
    (job,) = await submit(platform, tenant, new(pool=MEDIUM))
    hand = Hand(platform, medium=1)
    (lease,) = await hand.take()
    platform.dispatcher.not_written(lease)  # the memory lost it, the store did not
    async with asyncio.timeout(30):
        with pytest.raises(Unavailable):
            await platform.control.cancel(tenant.id, job)
    hand.names_all = True
    await hand.say(running=[holding(lease)])  # its worker says that it runs it
    await platform.control.cancel(tenant.id, job)
    news = await hand.say(running=[holding(lease)])
    assert news is not None
    assert news.cancels == [job]


@pytest.mark.parametrize("is_on_disk", [True, False])
async def test_nothing_starts_while_nobody_knows_whether_it_is_cancelled(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, is_on_disk: bool
) -> None:
    """The reply to the commit is lost: what became of it is read again before it may start."""
    await platform.loops["bulk actions"].stop()
    doomed, other = await submit(platform, tenant, new(), new())
    cancel_waiting = outcomes.cancel_waiting

    async def lost(*given: Any, **named: Any) -> bool:
        if is_on_disk:
            await cancel_waiting(*given, **named)
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(outcomes, "cancel_waiting", lost)
        with pytest.raises(Unavailable):
            await platform.control.cancel(tenant.id, doomed)
    assert [lease.job.id for lease in await Hand(platform).take()] == [other]
    await platform.control.make_sure()
    (last,) = await submit(platform, tenant)
    started = [last] if is_on_disk else [doomed, last]
    taken = await Hand(platform, short=3).take(len(started))
    assert sorted(lease.job.id for lease in taken) == sorted(started)
