"""Jobs of other owners' shards that are on disk, until those owners are told.

Gathers only; who tells them waits for `news` (`api/relay.py`). What is here may be lost with the
process: an owner's sweep finds the jobs anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import ShardId


class Hints:
    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._firsts: dict[ShardId, dict[StreamKey, str]] = {}

    def add(self, shard: ShardId, firsts: Mapping[StreamKey, str]) -> None:
        """`firsts` has the oldest of each stream; none: there are only jobs for later."""
        known = self._firsts.setdefault(shard, {})
        for key, first in firsts.items():
            known[key] = min(known.get(key, first), first)
        self.news.set()

    @property
    def shards(self) -> list[ShardId]:
        """Those whose owners have something to hear."""
        return list(self._firsts)

    def take(self, shard: ShardId) -> dict[StreamKey, str]:
        """The hint to this shard's owner; there is one."""
        return self._firsts.pop(shard)

    def __contains__(self, shard: ShardId) -> bool:
        return shard in self._firsts
