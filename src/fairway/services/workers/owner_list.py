"""Which servers own what, as workers are told: only what is news.

And only where there are several, or where the worker speaks through another with the one there is.

A list has a number that grows with every change of owners, as terms do; so a worker that speaks
to several servers is told of a newer one by whoever knows it first, and of an older one by nobody.
So the same number must be the same list: a shard that nobody owns just now is its last owner's, who
may go on with it in the same term, and then nobody would tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairway.core.ids import ShardId
from fairway.store.leadership import Owner

OWNERS_MAX = 256  # that a worker is told of
URL_CHARACTERS_MAX = 512


class ToldOwners(NamedTuple):
    version: int
    shards: dict[str, list[ShardId]]  # address → what it owns


class OwnerList:
    def __init__(self, owners: Callable[[], Mapping[ShardId, Owner]]) -> None:
        self._owners = owners
        self._seen: Mapping[ShardId, Owner] = {}
        self._last: dict[ShardId, Owner] = {}  # of shards that nobody owns just now, too
        self._told = ToldOwners(0, {})

    def news(self, known_version: int, *, is_passed_on: bool = False) -> ToldOwners | None:
        """For a worker that knows the list of this number; 0: none. Its call may have come by way
        of a server that owns nothing."""
        owners = self._owners()
        if owners is not self._seen:
            self._look(owners)
        told = self._told
        if told.version <= known_version or not told.shards:
            return None
        is_news = known_version or is_passed_on or len(told.shards) > 1
        return told if is_news else None

    def _look(self, owners: Mapping[ShardId, Owner]) -> None:
        self._seen = owners
        shards: dict[str, list[ShardId]] = defaultdict(list)
        for shard, owner in owners.items():
            if shard not in self._last or owner.term >= self._last[shard].term:
                self._last[shard] = owner
        for shard, owner in sorted(self._last.items()):
            if _is_address(owner.owner_url):
                shards[owner.owner_url].append(shard)
        kept = dict(sorted(shards.items())[:OWNERS_MAX])
        self._told = ToldOwners(sum(owner.term for owner in self._last.values()), kept)


def _is_address(url: str) -> bool:
    return url.startswith(("http://", "https://")) and len(url) <= URL_CHARACTERS_MAX
