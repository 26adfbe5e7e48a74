"""Terms of ownership that end too far ahead to be true, and that nobody renews.

An owner writes the end of its term by the database's clock. Is that clock set back after the owner
died, its term seems to last for as long as the clock went back, and nobody could take the shard.
A living owner renews several times a term; so an end that stands still for longer than a term, by
the clock of whoever looks, is a dead owner's, whatever the database's clock says. An end that lies
within a term or two is not judged here: it comes by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import ShardId

OVERLONG_TERMS = 2  # an end further ahead than so many terms was not written by today's clock
PATIENCE_TERMS = 2  # trust in a term ends before one: so a slower clock does no harm


class _Seen(NamedTuple):
    end: datetime
    since_us: int


class OverlongTerms:
    def __init__(self) -> None:
        self._seen: dict[ShardId, _Seen] = {}

    def look(
        self, ends: Mapping[ShardId, datetime], asked_us: int, heard_us: int, patience_us: int
    ) -> dict[ShardId, datetime]:
        """Those of the far ends that stand since before our patience began, by shard.

        They were asked for and heard of at these moments of a monotonic clock.
        """
        before = self._seen
        self._seen = {
            shard: seen
            if (seen := before.get(shard)) is not None and seen.end == end
            else _Seen(end, heard_us)
            for shard, end in ends.items()
        }
        return {
            shard: seen.end
            for shard, seen in self._seen.items()
            if asked_us - seen.since_us >= patience_us
        }
