"""A few jobs let out of streams that are held: probes of a circuit that is half open.

The hold stays; only these jobs are in the window, so nothing follows them. The next change of
holds puts what was not taken back into the store.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from fairway.core.backlog.counts import BacklogCounts
from fairway.core.backlog.holds import Hold
from fairway.core.backlog.reading import Reading
from fairway.core.backlog.runnable import RunnableStreams
from fairway.core.backlog.streams import Stream
from fairway.core.backlog.underway import JobsUnderway
from fairway.core.backlog.windows import Windows
from fairway.core.ids import PoolId
from fairway.core.job import QueuedJob


class CircuitProbes:
    def __init__(
        self,
        counts: BacklogCounts,
        windows: Windows,
        reading: Reading,
        runnable: RunnableStreams,
        underway: JobsUnderway,
    ) -> None:
        self._counts = counts
        self._windows = windows
        self._reading = reading
        self._runnable = runnable
        self._underway = underway

    def begin(self, hold: Hold, pools: Iterable[PoolId]) -> list[Stream]:
        """The streams with jobs that this hold keeps back, to be read; all become `reading`.

        It names a tenant, and nobody else is looked at; `pools` are all there are.
        """
        found = [
            stream
            for stream in self._counts.streams_of(hold.tenant, [hold.pool] if hold.pool else pools)
            if (not hold.type or stream.type == hold.type)
            and stream.more
            and not stream.reading
            # What is in its window may not start, and a probe would go with it.
            and not self._runnable.is_unsettled(stream)
            # A stream that is paused too starts nothing, not even a probe.
            and all(each.reason == hold.reason for each in self._runnable.holds.all_on(stream.key))
        ]
        for stream in found:
            self._reading.start(stream)
        return found

    def end(
        self, stream: Stream, jobs: Sequence[QueuedJob], held: Container[str], now_us: int
    ) -> list[QueuedJob]:
        """Put those of the jobs into the window that are free to start; answers them."""
        free = [job for job in jobs if not (job.id in held or job.id in self._underway)]
        self._reading.over(stream)
        stream.read_up_to(None)
        if not self._windows.is_ours(stream):
            return []
        known = {job.id for job in stream.window}
        let_out = [job for job in free if job.id not in known]
        for job in let_out:
            stream.window.append(job)
            self._windows.count(job, +1)
        if let_out:
            self._windows.filled([stream], now_us)
        self._reading.want(stream)  # the hold may be gone since: then all of it is read
        return let_out
