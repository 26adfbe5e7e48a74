"""Jobs whose rows do not show yet how they stand: being inserted, or ended and not yet recorded.

A read shows the store as it was a moment ago: what is under way must not come in through it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from fairway.core.backlog.reading import Reading
from fairway.core.backlog.streams import Stream
from fairway.core.job import QueuedJob


class JobsUnderway:
    def __init__(self, reading: Reading, parked: Mapping[str, object]) -> None:
        self._reading = reading
        self._parked = parked  # by id: they wait here for a place under a key
        # being written here: they arrive, a read must not bring them
        self.inserting_ids: set[str] = set()
        # ran here; the store shows them as queued until it is told
        self.unrecorded_ids: set[str] = set()

    def news(
        self, jobs: list[QueuedJob], stream: Stream | None, held: Container[str], look: int
    ) -> list[QueuedJob]:
        """Those that are neither here nor under way; mostly all, which sets find out quickly."""
        ids: set[str] = {job.id for job in jobs}
        old = {job_id for job_id in ids if job_id in held}
        old |= (
            ids & self.inserting_ids
            | ids & self.unrecorded_ids
            | self._reading.ended_since(look, ids)
            | ids & self._parked.keys()
        )
        if stream is not None:
            old |= ids.intersection([job.id for job in stream.window])
        return [job for job in jobs if job.id not in old] if old else jobs

    def __contains__(self, job_id: str) -> bool:
        """Whether a row that says `queued` is about to be announced, waits here, or is old news."""
        return (
            job_id in self.inserting_ids
            or job_id in self.unrecorded_ids
            or job_id in self._parked
            or self._reading.is_old_news(job_id)
        )
