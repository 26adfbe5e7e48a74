"""Takes old partitions away, a bounded part at a time, so that nobody notices.

It walks over a partition's pages beside the work, until it knows what must live on. Where it is
up to is kept in memory only: after a restart a walk begins anew, and finds less to do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime

from fairway.core.retention import Load, next_pages
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import logger
from fairway.store.connections.database import Database
from fairway.store.schema import partition_retirement as store
from fairway.store.schema import partitions
from fairway.store.schema.partition_retirement import Late
from fairway.store.schema.partitions import NOT_NOW, TOO_LONG

log = logger("retirement")

PAGES_AT_ONCE = 2_000  # sixteen megabytes
PAGES_THINNED_AT_ONCE = 500
ROUND_US = 2_000_000  # at work; then others have their turn
SOON_SECONDS = 1.0
NOT_NOW_SECONDS = 5.0  # a try stops everybody for a fifth of a second at most
AGAIN_US = 3_600_000_000  # when a partition in which many live on is looked at again


@dataclass
class PartitionWalk:
    """Over the pages of one table, from the first to the last."""

    page: int = 0
    is_thinning: bool = False  # too much lives on: old rows go one by one
    late: list[Late] = field(default_factory=list)
    late_load: Load = field(default_factory=Load)
    rests_until_us: int = 0

    def add(self, rows: list[Late]) -> None:
        self.late_load = self.late_load.plus(Load(len(rows), sum(r.weight_bytes for r in rows)))
        if self.late_load.is_small:
            self.late += rows
        else:  # they are not carried, so they need not be known
            self.late.clear()
            self.is_thinning = True


class Retirement:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._walks: dict[str, PartitionWalk] = {}  # over partitions
        # Over tables that were taken off, be it by somebody else, or by a call whose answer was
        # lost: what we had walked over by then says nothing of rows that ended after that.
        self._last_walks: dict[str, PartitionWalk] = {}

    async def run_once(self, keep_since: datetime) -> float | None:
        """One round; answers when the next is wanted, or None when nothing is under way."""
        async with self._database.upkeep() as connection:
            left = await store.detached(connection)
            old = [
                one.name for one in await partitions.existing(connection) if one.ends < keep_since
            ]
        self._walks = {name: walk for name, walk in self._walks.items() if name in old}
        self._last_walks = {name: one for name, one in self._last_walks.items() if name in left}
        until_us = self._clock.now_us() + ROUND_US
        rests = []
        for name in (*left, *old):
            step = self._drop if name in left else self._retire
            try:
                rests.append(await step(name, keep_since, until_us))
            except Exception as error:  # a table that cannot be read keeps no other from going
                log.warning("partition not retired yet", partition=name, error=repr(error))
                rests.append(NOT_NOW_SECONDS)
        return min((rest for rest in rests if rest is not None), default=None)

    async def _retire(self, name: str, keep_since: datetime, until_us: int) -> float | None:
        walk = self._walks.setdefault(name, PartitionWalk())
        if self._clock.now_us() < walk.rests_until_us:
            return None
        async with self._database.upkeep() as connection:
            waiting = await store.weigh_waiting(connection, name)
        walk.is_thinning = walk.is_thinning or not waiting.is_small
        async for pages in self._pages(name, walk, until_us):
            async with self._database.upkeep() as connection:
                if walk.is_thinning:
                    await store.thin(connection, name, pages, keep_since)
                walk.add(await store.late_rows(connection, name, pages, keep_since))
        if walk.page >= 0:
            return SOON_SECONDS
        if waiting.plus(walk.late_load).is_small:
            return await self._detach(name, walk)
        log.info("partition stays", partition=name, waiting=waiting.rows, late=walk.late_load.rows)
        return self._leave(name)

    def _leave(self, name: str) -> float:
        """It stays for now, and old rows are deleted from it; answers when to look again."""
        self._walks[name] = PartitionWalk(
            is_thinning=True, rests_until_us=self._clock.now_us() + AGAIN_US
        )
        return AGAIN_US / 1e6

    async def _detach(self, name: str, walk: PartitionWalk) -> float | None:
        try:
            async with self._database.upkeep() as connection:
                if await store.is_being_vacuumed(connection, name):
                    return NOT_NOW_SECONDS
                carried = await store.detach(connection, name, walk.late)
        except NOT_NOW as error:
            log.info("partition not taken off yet", partition=name, error=repr(error))
            # One that took too long would stop everybody again.
            return self._leave(name) if isinstance(error, TOO_LONG) else NOT_NOW_SECONDS
        log.info("partition taken off", partition=name, carried=carried)
        del self._walks[name]
        return SOON_SECONDS

    async def _drop(self, name: str, keep_since: datetime, until_us: int) -> float | None:
        """What was taken off: carry what was missed, then drop it."""
        walk = self._last_walks.setdefault(name, PartitionWalk())
        async for pages in self._pages(name, walk, until_us):
            async with self._database.upkeep() as connection:
                await store.carry_missed(connection, name, pages, keep_since)
        if walk.page >= 0:
            return SOON_SECONDS
        try:
            async with self._database.upkeep() as connection:
                await store.drop(connection, name)
        except NOT_NOW:
            return NOT_NOW_SECONDS
        log.info("partition dropped", partition=name)
        del self._last_walks[name]
        return SOON_SECONDS

    async def _pages(self, name: str, walk: PartitionWalk, until_us: int) -> AsyncIterator[range]:
        """The next pages, until the time is up; `page` is below zero when all were walked over."""
        async with self._database.upkeep() as connection:
            count = await store.page_count(connection, name)
        while walk.page >= 0 and self._clock.now_us() < until_us:
            at_once = PAGES_THINNED_AT_ONCE if walk.is_thinning else PAGES_AT_ONCE
            pages = next_pages(walk.page, count, at_once)
            if not pages:
                walk.page = -1
                return
            yield pages
            walk.page = pages.stop
