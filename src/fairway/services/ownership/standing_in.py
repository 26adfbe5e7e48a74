"""Degraded mode: a server that is not to own shards takes those that nobody has owned for long.

It says which are due, and claims them in the store under a term of their own; an owner that comes
back ends that. What follows a claim is the same as with any other (`ownership.py`); how jobs are
given out then is in `services/dispatch/pulls.py`.
"""

from __future__ import annotations

from collections.abc import Collection

from fairway.core.backlog.pulls import UnownedShards
from fairway.core.ids import ShardId, Term
from fairway.runtime.clock import Clock
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.store import leadership as store
from fairway.store.connections.database import Connection

log = logger("ownership")

LOOKS_APART_SECONDS = 10.0  # they say nothing of the time between


class StandingIn:
    def __init__(self, settings: Settings, clock: Clock, server_name: str) -> None:
        self._settings = settings
        self._clock = clock
        self._server_name = server_name
        self._unowned = UnownedShards()

    async def take(self, connection: Connection, held: Collection[ShardId]) -> dict[ShardId, Term]:
        """Claim what has been without an owner for long enough, but for those held already."""
        settings = self._settings
        unowned = await store.unowned_shards(connection)
        patience_us = round(settings.degraded_after_seconds * 1e6)
        apart_us = round(max(2 * settings.term_seconds, LOOKS_APART_SECONDS) * 1e6)
        due = self._unowned.look(unowned, self._clock.now_us(), patience_us, apart_us)
        wanted = due.difference(held)
        if not wanted:
            return {}
        try:
            taken = await store.stand_in(
                connection, self._server_name, settings.url, settings.term_seconds, wanted
            )
        except Exception:
            self._unowned.forget()
            raise
        for shard in taken:
            log.error(
                "degraded mode: no owner for long, workers are given jobs from the store",
                shard=shard,
                after_seconds=settings.degraded_after_seconds,
            )
        return taken
