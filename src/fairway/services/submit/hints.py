"""Jobs of other owners' shards that are on disk, until those owners are told.

Gathers only; who tells them waits for `news` (`api/relay.py`). What is here may be lost with the
process: an owner's sweep finds the jobs anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fairway.core.backlog.streams import StreamKey


class Hints:
    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._firsts: dict[int, dict[StreamKey, str]] = {}

    def add(self, shard: int, firsts: Mapping[StreamKey, str]) -> None:
        """`firsts` has the oldest of each stream; none: there are only jobs for later."""
        known = self._firsts.setdefault(shard, {})
        for key, first in firsts.items():
            known[key] = min(known.get(key, first), first)
        self.news.set()

    @property
    def shards(self) -> list[int]:
        """Those whose owners have something to hear."""
        return list(self._firsts)

    def take(self, shard: int) -> dict[StreamKey, str]:
        """The hint to this shard's owner; there is one."""
        return self._firsts.pop(shard)

    def __contains__(self, shard: int) -> bool:
        return shard in self._firsts
