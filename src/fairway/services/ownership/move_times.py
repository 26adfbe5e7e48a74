"""When each step of a shard's last moves was done here, for people who ask where the time went.

    suspended ─▶ released ─▶ claimed ─▶ restored ─▶ opened ─▶ discovered

The first two are noted by who lets go, the others by who takes over: of a move between two servers
each knows its own part. A few steps of each shard are kept, no more. Decides nothing.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from fairway.core.ids import ShardId
from fairway.runtime.clock import Clock

SUSPENDED = "suspended"  # nothing is granted any more
RELEASED = "released"  # the store says so, and others were told
CLAIMED = "claimed"
RESTORED = "restored"  # its written leases are here
OPENED = "opened"
DISCOVERED = "discovered"  # what waits is about to be read

STEPS_KEPT = 12  # of a shard: its last two moves


class Step(NamedTuple):
    at_us: int  # by this process's monotonic clock
    name: str


class MoveTimes:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps: dict[ShardId, deque[Step]] = defaultdict(lambda: deque(maxlen=STEPS_KEPT))

    def note(self, name: str, shards: Iterable[ShardId]) -> None:
        at_us = self._clock.now_us()
        for shard in shards:
            self._steps[shard].append(Step(at_us, name))

    def between(self, shard: ShardId, since_us: int, until_us: int) -> list[Step]:
        known = self._steps.get(shard, ())
        return [step for step in known if since_us <= step.at_us <= until_us]

    def last_move_ms(self, shard: ShardId) -> dict[str, int]:
        """Of the last take-over of it here: how long each step took, in milliseconds."""
        steps = list(self._steps.get(shard, ()))
        claims = [place for place, step in enumerate(steps) if step.name == CLAIMED]
        if not claims:
            return {}
        last = steps[claims[-1] :]
        return {
            after.name: (after.at_us - before.at_us) // 1000 for before, after in pairwise(last)
        }
