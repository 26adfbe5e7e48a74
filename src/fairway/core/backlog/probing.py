"""A backlog that lets a few jobs out of streams that are held: probes of a circuit half open.

The hold stays; only these jobs are in the window, so nothing follows them. The next change of
holds puts what was not taken back into the store.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from fairway.core.backlog.backlog import Backlog
from fairway.core.backlog.holds import Hold
from fairway.core.backlog.streams import Stream
from fairway.core.job import QueuedJob


class ProbingBacklog(Backlog):
    def begin_probe(self, hold: Hold, pools: Iterable[int]) -> list[Stream]:
        """The streams with jobs that this hold keeps back, to be read; all become `reading`.

        It names a tenant, and nobody else is looked at; `pools` are all there are.
        """
        found = [
            stream
            for stream in self.streams_of(hold.tenant, [hold.pool] if hold.pool else pools)
            if (not hold.type or stream.type == hold.type)
            and stream.more
            and not stream.reading
            # What is in its window may not start, and a probe would go with it.
            and not self._is_unsettled(stream)
            # A stream that is paused too starts nothing, not even a probe.
            and all(each.reason == hold.reason for each in self.holds.all_on(stream.key))
        ]
        for stream in found:
            self.reading.start(stream)
        return found

    def end_probe(
        self, stream: Stream, jobs: Sequence[QueuedJob], held: Container[str], now_us: int
    ) -> list[QueuedJob]:
        """Put those of the jobs into the window that are free to start; answers them."""
        free = [job for job in jobs if not (job.id in held or self._is_underway(job.id))]
        self.reading.over(stream)
        stream.read_up_to(None)
        if not self._is_ours(stream):
            return []
        known = {job.id for job in stream.window}
        let_out = [job for job in free if job.id not in known]
        for job in let_out:
            stream.window.append(job)
            self._count(job, +1)
        if let_out:
            self._ready([stream], now_us)
        self._want(stream)  # the hold may be gone since: then all of it is read
        return let_out
