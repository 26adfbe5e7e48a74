"""This server's part in spreading the shards: which free ones to take now, which to let go.

What is even is decided in `core/shard_spread.py`; here is what a server remembers between two looks
at the store, by its own clock: since when a shard is free or not open yet, and what was tried in
vain. A shard that stays free for longer than a moment is anybody's, so that none is orphaned, and
after some moments also theirs who could not open it: what kept it closed may be over. No I/O:
`ownership.py` reads the rows and acts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from fairway.core.backlog.pulls import UnownedShards
from fairway.core.ids import ShardId, Term
from fairway.core.shard_spread import LiveServer, Spread, is_awaited, plan, scattered
from fairway.store.leadership import Server, ShardRow

ORPHAN_US = 1_000_000  # a shard that is free for so long is taken by whoever sees it
APART_US = 5_000_000  # looks say nothing of the time between when they are further apart
OPENING_US = 5_000_000  # a shard that does not open by then holds up no others; its owner gets none
NOBODYS_US = 5_000_000  # free for so long, it is tried by whoever shuns it, too
SHUNNED_US = 30_000_000  # what could not be opened here is others' to try for so long, first
SHUNNED_US_MAX = 3_600_000_000  # twice as long each time that it could not
ADOPTED_US = 30_000_000  # what its planned taker left stays here for so long
TRY_AGAIN_US = 10_000_000  # after a hand-over that led to nothing


class ClusterLook(NamedTuple):
    """What the store said, and what is here."""

    servers: Sequence[Server]
    rows: Sequence[ShardRow]
    to_be_had: Collection[ShardId]  # though their terms last: their owners are dead
    held: Mapping[ShardId, Term]
    opened: Collection[ShardId]
    hopeless: Collection[ShardId] = ()  # of those held, what cannot be opened here


class Part(NamedTuple):
    """What this server does of the plan."""

    take: set[ShardId]
    give: list[ShardId]
    give_up: Collection[ShardId] = ()  # at once, as they are: another may open them


class Spreading:
    def __init__(self, server_name: str) -> None:
        self._name = server_name
        self._free = UnownedShards()
        self._free_for_long = UnownedShards()
        self._unopened: dict[tuple[ShardId, Term], int] = {}  # → since when, by our clock
        self._given: set[ShardId] = set()  # let go for somebody, who has not taken them yet
        self._kept_until_us: dict[ShardId, int] = {}  # of these nothing could be handed over
        self._give_after_us = 0
        self._shunned_until_us: dict[ShardId, int] = {}
        self._shunned_us: dict[ShardId, int] = {}  # for how long, the last time
        self.is_awaited = False  # by others that own nothing yet

    def part(self, look: ClusterLook, now_us: int) -> Part:
        """What to do now, by the newest look."""
        free = {row.shard for row in look.rows if row.is_free} | set(look.to_be_had)
        free -= look.held.keys()  # a term of ours that nobody took is good
        orphans = self._free.look(free, now_us, ORPHAN_US, APART_US)
        nobodys = self._free_for_long.look(free, now_us, NOBODYS_US, APART_US)
        # Not one that a tenant is being moved into: nobody can own it until that is done.
        owned = {row.shard: row.owner for row in look.rows if row.has_owner}
        owned = {shard: owner for shard, owner in owned.items() if shard not in free}
        owned |= dict.fromkeys(look.held, self._name)
        moving, stuck = self._moving(look, free, now_us), self._stuck(look, now_us)
        closed = {row.shard for row in look.rows if not row.is_open} - set(look.opened)
        spread = Spread(self._live(look.servers, stuck), owned, free, moving, closed)
        self.is_awaited = is_awaited(spread, self._name)
        planned = plan(spread)
        take = orphans | {shard for shard, name in planned.take.items() if name == self._name}
        if self._given & orphans:  # nobody wants them: do not try it over and over
            self._give_after_us = now_us + TRY_AGAIN_US
        self._given &= free
        left = {shard for shard in orphans if planned.take.get(shard) != self._name}
        self._kept_until_us.update(dict.fromkeys(left, now_us + ADOPTED_US))
        mine = sum(owned[shard] == self._name for shard in planned.give)
        give_up = look.hopeless if self._may_another(look.servers, stuck) else ()
        self._shun(give_up, look.opened, now_us)
        shunned = {shard for shard, us in self._shunned_until_us.items() if us > now_us}
        take = (take - shunned) | nobodys
        return Part(take, self._to_give(mine, look.opened, now_us), give_up)

    def _shun(self, shards: Collection[ShardId], opened: Collection[ShardId], now_us: int) -> None:
        for shard in self._shunned_us.keys() & set(opened):  # whatever it was, it is over
            del self._shunned_us[shard], self._shunned_until_us[shard]
        for shard in shards:
            longer_us = min(2 * self._shunned_us.get(shard, SHUNNED_US // 2), SHUNNED_US_MAX)
            self._shunned_us[shard] = longer_us
            self._shunned_until_us[shard] = now_us + longer_us

    def _may_another(self, servers: Sequence[Server], stuck: Collection[str]) -> bool:
        """Whether somebody else could take what is let go: where all are stuck it is the store."""
        others = [one for one in self._live(servers, stuck) if one.name != self._name]
        return any(one.is_settled and one.is_prompt and not one.is_leaving for one in others)

    def given(self, shards: Collection[ShardId]) -> None:
        """These were let go."""
        self._given.update(shards)

    def not_given(self, shards: Collection[ShardId], now_us: int) -> None:
        """These could not be handed over as a whole: others go first, for a while."""
        self._kept_until_us.update(dict.fromkeys(shards, now_us + TRY_AGAIN_US))

    def _to_give(self, count: int, opened: Collection[ShardId], now_us: int) -> list[ShardId]:
        if now_us < self._give_after_us:
            return []
        kept = {one: us for one, us in self._kept_until_us.items() if us > now_us}
        self._kept_until_us = kept
        may_go = (shard for shard in opened if shard not in kept)
        return sorted(may_go, key=scattered, reverse=True)[:count]

    def _moving(self, look: ClusterLook, free: Collection[ShardId], now_us: int) -> int:
        """How many taken shards are about to be opened."""
        unopened = [
            (row.shard, row.term)
            for row in look.rows
            if row.has_owner and not row.is_open
            if row.shard not in free and row.shard not in look.opened
        ]
        before = self._unopened
        self._unopened = {one: before.get(one, now_us) for one in unopened}
        return sum(now_us - since_us < OPENING_US for since_us in self._unopened.values())

    def _stuck(self, look: ClusterLook, now_us: int) -> set[str]:
        """Owners that have not opened what they took, for too long."""
        since_us = self._unopened
        return {
            row.owner
            for row in look.rows
            if now_us - since_us.get((row.shard, row.term), now_us) >= OPENING_US
        }

    def _live(self, servers: Sequence[Server], stuck: Collection[str]) -> list[LiveServer]:
        """Those that may own shards; we know that we are there.

        One that is stuck is as good as late: what it were given nobody would grant from.
        """
        return [
            LiveServer(
                one.name,
                one.is_settled,
                (one.is_prompt or one.name == self._name) and one.name not in stuck,
                one.is_leaving,
                one.process_group,
                one.busy_per_mille,
            )
            for one in servers
            if one.owns_shards
        ]
