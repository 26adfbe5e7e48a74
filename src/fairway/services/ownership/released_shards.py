"""Shards that are closed here and still ours in the store: let go there when it can be said.

What fails is tried again with the next round. A shard that is taken again meanwhile is not let go.
Closes nothing and speaks with the store only when it is told to (`ownership.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fairway.core.ids import ShardId, Term
from fairway.services.ownership.move_times import RELEASED, MoveTimes
from fairway.services.ownership.rate_hand_over import RateHandOver
from fairway.store import leadership as store
from fairway.store.connections.database import Connection


class ReleasedShards:
    def __init__(self, rates: RateHandOver, moves: MoveTimes) -> None:
        self._rates = rates
        self._moves = moves
        self._terms: dict[ShardId, Term] = {}
        self._whole: set[ShardId] = set()  # of these, all that workers run of them is on disk

    def add(self, terms: Mapping[ShardId, Term], whole: Collection[ShardId] = ()) -> None:
        """To be let go of under these terms; whoever takes a whole one need not ask workers."""
        self._terms.update(terms)
        self._whole.update(whole)

    def taken_again(self, shard: ShardId) -> None:
        """Ours under a new term: the earlier one is over anyway."""
        self._terms.pop(shard, None)
        self._whole.discard(shard)

    async def write(self, connection: Connection) -> None:
        """Make them anybody's; a shard whose row somebody holds is tried again."""
        if self._terms:
            released, whole = self._terms, self._whole
            await self._rates.write(connection)
            locked = await store.release_shards(connection, released, written=whole)
            self._moves.note(RELEASED, released.keys() - locked)
            self._terms = {one: term for one, term in released.items() if one in locked}
            self._whole = whole & locked
