"""Jobs that were cancelled a moment ago, so that nobody puts them back into a queue.

Whoever read or wrote a job just before it was cancelled still holds it as waiting. Such news is
seconds old at most, so stones are taken away after a minute. When more jobs are cancelled within
it than there may be stones, the oldest go early: a job that comes back through that gap is refused
by its row when it ends, or when its lease is written.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice, takewhile

from fairway.core.job import QueuedJob

KEEP_US = 60_000_000
STONES_MAX = 100_000  # some twenty megabytes
CLEARED_AT_ONCE = 8  # for each that is raised: enough to catch up, and never much work


class Tombstones:
    def __init__(self, stones_max: int = STONES_MAX) -> None:
        self._max = stones_max
        # Oldest first, and the oldest is at hand: a plain dict walks over all that are gone.
        self._raised_us: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._raised_us)

    def raise_for(self, job: str, now_us: int) -> None:
        self._raised_us[job] = now_us
        self._raised_us.move_to_end(job)  # raised again, it is the youngest
        self._clear(now_us, CLEARED_AT_ONCE)
        if len(self._raised_us) > self._max:
            self._raised_us.popitem(last=False)

    def clear_old(self, now_us: int) -> None:
        """Take away all that are past their minute; for upkeep, when nobody cancels any more."""
        self._clear(now_us, self._max)

    def _clear(self, now_us: int, most: int) -> None:
        raised = self._raised_us
        oldest = islice(raised, most)
        for old in list(takewhile(lambda one: raised[one] <= now_us - KEEP_US, oldest)):
            del raised[old]

    def __contains__(self, job: str) -> bool:
        return job in self._raised_us

    def without_dead(self, jobs: Sequence[QueuedJob]) -> Sequence[QueuedJob]:
        """The jobs that are still wanted; costs nothing while nobody cancels."""
        if not self._raised_us:
            return jobs
        return [job for job in jobs if job.id not in self._raised_us]
