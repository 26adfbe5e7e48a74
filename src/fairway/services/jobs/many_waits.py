"""One call waits for many jobs of a tenant: which of them have ended, as soon as any has.

Only the owner answers, from what it records; each job's row is asked once, and again only when
something happened to it. A caller that asks anew, with more jobs, takes its own earlier call's
place: that one is answered at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.job import JobRecord
from fairway.core.lifecycle import State
from fairway.runtime.clock import Clock
from fairway.runtime.loops import pause, wait
from fairway.services.jobs.watchers import Watchers
from fairway.services.transient_errors import told_if_away
from fairway.store import history
from fairway.store.connections.database import Database

GATHER_SECONDS = 0.005  # jobs that end together are told together


class Found(NamedTuple):
    """What there is to say of some jobs; those that are not named still go on."""

    ended: list[JobId]
    missing: list[JobId]  # no jobs of this tenant


class ManyWaits:
    def __init__(self, database: Database, watchers: Watchers, clock: Clock) -> None:
        self._database = database
        self._watchers = watchers
        self._clock = clock
        self._callers: dict[tuple[TenantId, str], asyncio.Event] = {}

    async def ended(
        self,
        tenant: TenantId,
        shard: ShardId,
        jobs: Sequence[JobId],
        seconds: float,
        caller: str,
        before_wait: Callable[[], Awaitable[None]],
    ) -> Found:
        """Those that have ended by now, or the first that do; none when the time is over."""
        deadline_us = self._clock.now_us() + round(seconds * 1e6)
        with (
            self._watchers.watch_many(tenant, jobs) as watch,
            self._only_call(tenant, caller, watch.news) as is_last,
        ):
            asked: Collection[JobId] = jobs
            while True:
                found = await self._look(tenant, shard, asked)
                left_seconds = (deadline_us - self._clock.now_us()) / 1e6
                if found.ended or found.missing or left_seconds <= 0:
                    return found
                if self._watchers.is_closed or not is_last():
                    return found
                await before_wait()
                await wait(watch.news, left_seconds)
                if watch.changed:
                    await pause(GATHER_SECONDS)
                asked = watch.take()

    async def views(
        self, tenant: TenantId, shard: ShardId, jobs: Sequence[JobId]
    ) -> list[JobRecord]:
        """As lists show them; fewer when they are heavy."""
        async with told_if_away, self._database.quick(tenant) as connection:
            return await history.list_children(connection, shard, tenant, jobs)

    async def _look(self, tenant: TenantId, shard: ShardId, jobs: Collection[JobId]) -> Found:
        if not jobs:
            return Found([], [])
        async with told_if_away, self._database.quick(tenant) as connection:
            wanted = [(tenant, job) for job in jobs]
            states = await history.read_states(connection, shard, wanted)
        ended = [job for job in jobs if job in states and State(states[job][0]).is_final]
        return Found(ended, [job for job in jobs if job not in states])

    @contextmanager
    def _only_call(
        self, tenant: TenantId, caller: str, news: asyncio.Event
    ) -> Iterator[Callable[[], bool]]:
        """Answers whether no later call of the same caller is here."""
        if not caller:
            yield lambda: True
            return
        key = tenant, caller
        if (earlier := self._callers.get(key)) is not None:
            earlier.set()
        self._callers[key] = news
        try:
            yield lambda: self._callers.get(key) is news
        finally:
            if self._callers.get(key) is news:
                del self._callers[key]
