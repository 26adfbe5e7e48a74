"""What was last read of all shards, for whoever shares them out.

A node of a distributed store that is away says nothing: what was read of its shards before counts
on, for nobody can take them. Decides nothing, takes and lets go of nothing (`ownership.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import ShardId
from fairway.core.overlong_terms import OVERLONG_TERMS, PATIENCE_TERMS, OverlongTerms
from fairway.runtime.clock import Clock
from fairway.services.ownership.process_siblings import ProcessSiblings
from fairway.store import leadership as store
from fairway.store.connections.database import Connection
from fairway.store.leadership import ShardRow


class AllShards(NamedTuple):
    rows: list[ShardRow]
    unrenewed: dict[ShardId, datetime]  # of owners that died while the database's clock was ahead
    bereft: dict[ShardId, datetime]  # of owners that are known to be dead, before their terms end

    @property
    def to_be_had(self) -> dict[ShardId, datetime]:
        """What can be claimed though its term lasts, by its end."""
        return self.unrenewed | self.bereft


class ShardsRead:
    def __init__(self, term_seconds: float, clock: Clock, siblings: ProcessSiblings) -> None:
        self._term_seconds = term_seconds
        self._clock = clock
        self._siblings = siblings
        self._last_read: dict[ShardId, ShardRow] = {}
        self.overlong_terms = OverlongTerms()

    async def read(self, connection: Connection) -> AllShards:
        asked_us = self._clock.now_us()
        rows = await store.read_shards(connection, OVERLONG_TERMS * self._term_seconds)
        far = {row.shard: row.overlong_until for row in rows if row.overlong_until is not None}
        patience_us = round(PATIENCE_TERMS * self._term_seconds * 1e6)
        unrenewed = self.overlong_terms.look(far, asked_us, self._clock.now_us(), patience_us)
        dead = self._siblings.dead({row.owner for row in rows})
        bereft = {one.shard: one.ends_at for one in rows if one.ends_at and one.owner in dead}
        self._last_read |= {row.shard: row for row in rows}
        if len(rows) < len(self._last_read):
            rows = [*self._last_read.values()]
        return AllShards(rows, unrenewed, bereft)
