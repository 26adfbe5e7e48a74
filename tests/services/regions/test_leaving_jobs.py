"""What is noted of tenants that left: only what the owner of their shard has seen to."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.postgres import connected
from tests.services.platform_room import new, submit

from fairway.core.ids import FIRST_SHARD, JobId, TenantId, Term
from fairway.core.regions.held import HeldCall, SentTo
from fairway.core.regions.homes import NEVER_MOVED, DirectoryTerm, Home, HomeTerm
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.regions.leaving_jobs import SETTLE_US, Moving
from fairway.store.connections.database import Connection
from fairway.store.regions import held_jobs, regions

AWAY = Home("us", HomeTerm(1), DirectoryTerm(1))


class Leaving:
    """A tenant that is at home elsewhere, and the server that has been told that it owns its
    shard: under which term is up to the test."""

    def __init__(self, platform: Platform, tenant: Tenant, term: Term | None) -> None:
        self._database = platform.database
        self._tenant = tenant.id
        self.term = term
        self.emptied: list[TenantId] = []
        dispatcher: Any = SimpleNamespace(
            is_open=lambda shard: True,
            term_of=lambda shard: self.term,
            is_underway=platform.dispatcher.is_underway,
            cancelled=platform.dispatcher.cancelled,
        )
        homes: Any = SimpleNamespace(
            changes=1,
            away=lambda: {tenant.id: AWAY},
            emptied=lambda tenant, under: self.emptied.append(tenant),
        )
        shards = platform.tenant_shards
        self._moving = Moving(
            platform.database, dispatcher, platform.watchers, homes, tenant_shards=shards
        )

    async def begin(self) -> None:
        async with self._database.background() as connection:
            await regions.set_home(connection, self._tenant, "us", AWAY.directory_term)
        await self._moving.run_once(0)

    async def is_noted(self, now_us: int) -> bool:
        """Looks once more; whether all that was here is noted as handed over."""
        await self._moving.run_once(now_us)
        async with self._database.background() as connection:
            return not await regions.not_handed_over(connection, {self._tenant: AWAY})


def term_of(platform: Platform) -> Term:
    return cast(Term, platform.dispatcher.term_of(FIRST_SHARD))


async def test_who_lost_the_shard_notes_nothing(platform: Platform, tenant: Tenant) -> None:
    """It was stopped and resumed: under its old term nothing left the jobs."""
    await submit(platform, tenant)
    leaving = Leaving(platform, tenant, Term(0))
    await leaving.begin()
    assert not await leaving.is_noted(SETTLE_US)
    leaving.term = term_of(platform)
    assert not await leaving.is_noted(10**9), "a page left"
    assert await leaving.is_noted(10**9)


async def handed_to_itself(platform: Platform, tenant: Tenant) -> JobId:
    """The job of a call that was held here, and has come here; the call is not settled yet."""
    (job,) = await submit(platform, tenant)
    async with platform.database.background() as connection:
        call = HeldCall(FIRST_SHARD, tenant.id, job, job, 1, b"", "here", NEVER_MOVED)
        await held_jobs.hold(connection, call)
    return job


async def settle(connection: Connection, tenant: Tenant, job: JobId) -> None:
    here = SentTo(FIRST_SHARD, tenant.id, "here", NEVER_MOVED)
    await held_jobs.handed_over(connection, here, [job])


async def test_what_waits_for_its_call_is_not_handed_over(
    platform: Platform, tenant: Tenant
) -> None:
    """A failback would be told that nothing is left, while a job is neither held nor gone."""
    job = await handed_to_itself(platform, tenant)
    leaving = Leaving(platform, tenant, term_of(platform))
    await leaving.begin()
    assert not await leaving.is_noted(SETTLE_US)
    async with platform.database.background() as connection:
        await settle(connection, tenant, job)
    assert not await leaving.is_noted(10**9), "it leaves now"
    assert await leaving.is_noted(10**9)
    assert leaving.emptied == [tenant.id]


async def test_a_call_that_is_settled_within_a_look_leaves_its_job_to_nobody_else(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was passed over as one that waits, and a moment later taken for one that does not."""
    job = await handed_to_itself(platform, tenant)
    hold_jobs = held_jobs.hold_jobs

    async def settled_then(connection: Connection, *asked: Any) -> set[str] | None:
        left = await hold_jobs(connection, *asked)
        await settle(connection, tenant, job)
        return left

    monkeypatch.setattr(held_jobs, "hold_jobs", settled_then)
    leaving = Leaving(platform, tenant, term_of(platform))
    await leaving.begin()
    assert not await leaving.is_noted(SETTLE_US)
    assert leaving.emptied == [], "it would be started here"
    await leaving.is_noted(10**9)
    async with platform.database.background() as connection:
        home = SentTo(FIRST_SHARD, tenant.id, "us", NEVER_MOVED)
        held = await held_jobs.held_of(connection, home, 10)
    assert [row.id for row in held] == [job]


async def test_a_job_whose_call_comes_to_wait_at_that_moment_stays(
    platform: Platform, tenant: Tenant
) -> None:
    """Its server stood still before it held what the home had taken, and handed over since."""
    job, other = await submit(platform, tenant, new(), new())
    stood_still = connected(platform.database.dsn)
    async with stood_still as late, platform.database.background() as owner:
        writing = late.transaction()
        await writing.start()
        call = HeldCall(FIRST_SHARD, tenant.id, job, job, 1, b"", "us", NEVER_MOVED)
        assert await held_jobs.hold(late, call)
        asked = FIRST_SHARD, term_of(platform), tenant.id, [job, other]
        leaving = asyncio.create_task(held_jobs.hold_jobs(owner, *asked))
        assert (await asyncio.wait([leaving], timeout=0.3))[1], "it waits for the other row"
        await writing.commit()
        assert await leaving is None
        assert await owner.fetchval("SELECT count(*) FROM jobs") == 2, "one was lost"
        assert await held_jobs.hold_jobs(owner, *asked) == {other}, "and the next look leaves it"
