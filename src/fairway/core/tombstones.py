"""Jobs that were cancelled a moment ago, so that nobody puts them back into a queue.

Whoever read or wrote a job just before it was cancelled still holds it as waiting. Such news is
seconds old at most, so stones are taken away after a minute: memory is bounded by the rate of
cancelling.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.core.job import QueuedJob

KEEP_US = 60_000_000


class Tombstones:
    def __init__(self) -> None:
        self._raised_us: dict[str, int] = {}  # oldest first

    def raise_for(self, job: str, now_us: int) -> None:
        self._raised_us[job] = now_us
        for old in [one for one in self._oldest() if self._raised_us[one] <= now_us - KEEP_US]:
            del self._raised_us[old]

    def _oldest(self) -> list[str]:
        """Two for each that is added: enough to catch up, and never much work."""
        stones = iter(self._raised_us)
        return [stone for _, stone in zip(range(2), stones, strict=False)]

    def __contains__(self, job: str) -> bool:
        return job in self._raised_us

    def without_dead(self, jobs: Sequence[QueuedJob]) -> Sequence[QueuedJob]:
        """The jobs that are still wanted; costs nothing while nobody cancels."""
        if not self._raised_us:
            return jobs
        return [job for job in jobs if job.id not in self._raised_us]
