"""Whether work can be accepted and run now, asked of the store itself.

Anybody may ask, without a key and as often as they like. So one question at a time is put to the
store, and whoever comes meanwhile or a moment later shares its answer: a crowd holds one
connection, not all of them, and costs the store five questions a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from fairway.core.ids import ShardId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.clock import Clock
from fairway.store import leadership, submissions
from fairway.store.connections.database import DISCONNECTED, Database

ANSWER_SECONDS_MAX = 2.0
#: Upkeep holds jobs up for some tenths of a second now and then; that is no reason to turn away.
LOCK_SECONDS_MAX = 1.0
KEPT_US = 200_000
START_US = 10_000_000  # so long a server that starts waits for all shards


def are_enough(opened: int, shards: int, since_start_us: int, *, was_whole: bool) -> bool:
    """Whether a server with so many shards open in the cluster should be sent work.

    One that starts waits for all of them. Later some may be on their way to another owner, or sick:
    every server takes their jobs in all the same, and to turn everybody away would help nobody.
    """
    return opened == shards or (opened > 0 and (was_whole or since_start_us > START_US))


class Readiness:
    def __init__(
        self,
        database: Database,
        tenant_shards: TenantShards,
        clock: Clock,
        opened: Callable[[], Collection[ShardId]],
    ) -> None:
        self._database = database
        self._tenant_shards = tenant_shards
        self._opened = opened  # shards that are open here, which the store hears a moment later
        self._clock = clock
        self._answered_us = 0
        self._began_us = clock.now_us()
        self._was_whole = False
        self._asking: asyncio.Task[dict[str, bool]] | None = None
        self._is_closed = False

    def close(self) -> None:
        """This server is about to stop: whoever asks should send nobody here."""
        self._is_closed = True

    async def checks(self) -> dict[str, bool]:
        """What must hold, each by name."""
        if self._asking is None or (self._asking.done() and not self._is_fresh()):
            self._asking = asyncio.create_task(self._ask(), name="readiness")
        found = await asyncio.shield(self._asking)  # whoever leaves takes nobody's answer along
        return found | {"takes_jobs": False} if self._is_closed else found

    def _is_fresh(self) -> bool:
        return self._clock.now_us() - self._answered_us < KEPT_US

    def _are_enough(self, opened: int) -> bool:
        self._was_whole = self._was_whole or opened == self._tenant_shards.count
        since_us = self._clock.now_us() - self._began_us
        return are_enough(opened, self._tenant_shards.count, since_us, was_whole=self._was_whole)

    async def _ask(self) -> dict[str, bool]:
        """A table that somebody locked refuses every job while the rest of the store answers."""
        found = dict.fromkeys(("database", "jobs_writable", "shards_open"), False)
        try:
            async with self._database.people(ANSWER_SECONDS_MAX) as connection:
                is_open = await leadership.count_open(connection, self._opened())
                found["database"] = True
                found["shards_open"] = self._are_enough(is_open)
                await submissions.insert_nothing(connection, LOCK_SECONDS_MAX)
                found["jobs_writable"] = True
        except DISCONNECTED:
            pass  # what does not hold stands already
        self._answered_us = self._clock.now_us()
        return found
