"""The garbage collector, told what a job platform looks like.

Hot paths make hundreds of thousands of small objects a second and no cycles; looking for cycles
among them every few hundred objects costs a tenth of the time. What lives since the start is set
aside, and the collector looks less often; memory is bounded by the windows, not by it.

Among the old objects a server looks at times of its own. A look takes as long as there are objects,
a tenth of a second for a few hundred thousand, and everybody waits for it; left to itself, the
collector looked as often as tenants' calls made it, several times a minute. So the longer a look
took, the later comes the next: with a hundred thousand tenants it is a million objects and more.
"""

from __future__ import annotations

import gc

from fairway.runtime.loops import Effort

YOUNG_OBJECTS = 5_000  # a look at so many takes milliseconds
YOUNG_ROUNDS = 2  # what outlives its first look has one more, with that of so many looks
OLD_ROUNDS = 2_500
NEVER_ROUNDS = 1 << 30
COLLECT_SECONDS = 300.0  # at least, from one look to the next
COLLECT_TIMES = 2_000  # as long as a look took: half a thousandth of the time at most


def tune_gc(*, looks_at_old: bool = True) -> None:
    """Call once, when a program has loaded what it needs and before it serves.

    Without `looks_at_old`, `OldObjects` must be run.
    """
    gc.collect()
    gc.freeze()
    old_rounds = OLD_ROUNDS if looks_at_old else NEVER_ROUNDS
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, old_rounds)


class OldObjects:
    """A step of a loop: looks for cycles among old objects, from time to time."""

    def __init__(self) -> None:
        self._is_first = True

    async def run_once(self, now_us: int) -> float:
        look = Effort()
        if not self._is_first:
            gc.collect()
        self._is_first = False
        return look.rest_seconds(COLLECT_SECONDS, times=COLLECT_TIMES)
