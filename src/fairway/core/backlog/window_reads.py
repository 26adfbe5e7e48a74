"""What is read into the windows, and who makes room for it.

A read brings as many jobs as there is room for, by count and by bytes, shared among those that want
one. When there is no room, whoever holds the most gives its windows up. So a tenant that fills
the memory and then may not run, say at its cap, keeps nobody else from being read.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from fairway.core.backlog.reading import Budget, Found, Reading, budget_of
from fairway.core.backlog.runnable import RunnableStreams
from fairway.core.backlog.streams import Stream
from fairway.core.backlog.tenant_backlog import TenantBacklogs
from fairway.core.backlog.underway import JobsUnderway
from fairway.core.backlog.windows import Windows
from fairway.core.job import QueuedJob

MAKE_ROOM_US = 1_000_000  # once a second at most: it looks at every tenant
ROOM_MADE = 0.25


class WindowReads:
    def __init__(
        self,
        tenants: TenantBacklogs,
        windows: Windows,
        reading: Reading,
        runnable: RunnableStreams,
        underway: JobsUnderway,
    ) -> None:
        self._tenants = tenants
        self._windows = windows
        self._reading = reading
        self._runnable = runnable
        self._underway = underway
        self._room_at_us = 0

    @property
    def are_wanted(self) -> bool:
        return bool(self._reading)

    def begin(self, streams_max: int, now_us: int) -> list[tuple[Stream, int]]:
        """Streams to read next, each with how many jobs to ask for; all become `reading`."""
        windows, reading = self._windows, self._reading
        if windows.is_full and self.are_wanted:
            self._make_room(now_us)
        if windows.is_full:
            return []
        room, share = windows.limits.jobs_total - windows.jobs_held, reading.jobs_per_read
        chosen = reading.begin(streams_max)
        share = min(share, max(room // max(len(chosen), 1), 1))
        return [(stream, reading.portion(stream, share)) for stream in chosen]

    def budget_of(self, wishes: Sequence[tuple[Stream, int]]) -> Budget:
        """How many bytes these reads may bring of each stream."""
        windows = self._windows
        return budget_of(wishes, windows.limits.bytes_total - windows.bytes_held)

    def end_weighed(
        self,
        wish: tuple[Stream, int],
        found: Found,
        budget: Budget,
        held: Container[str],
        now_us: int,
    ) -> bool:
        """As `end`, for a read that may have been cut for its weight."""
        stream, limit = wish
        asked = len(found.jobs) if found.is_cut else limit
        weights = [len(job.payload) for job in found.jobs] if stream.heavy else []
        stream.heavy = found.is_cut or max(weights, default=0) > budget.light_bytes
        return self.end(stream, found.jobs, asked, held, now_us)

    def end(
        self,
        stream: Stream,
        jobs: list[QueuedJob],
        asked: int,
        held: Container[str],
        now_us: int,
    ) -> bool:
        """What a read found; answers whether the stream has jobs to give now."""
        windows, reading = self._windows, self._reading
        if not windows.is_ours(stream):
            reading.over(stream)
            return False
        if self._runnable.is_held(stream.key):  # since this read began
            reading.over(stream)
            windows.evict(stream)
            return False
        if stream.rewound:  # since this read began: what comes first is still to be read
            jobs = []
        windows.put_in(stream, self._underway.news(jobs, stream, held, stream.look))
        reading.over(stream)  # not before: what ended during this read is remembered until then
        stream.read_up_to(jobs[-1].id if jobs else None)
        stream.more = len(jobs) >= asked or stream.missed
        reading.want_more(stream)
        if stream.window:
            windows.filled([stream], now_us)
        else:
            self._nothing_found(stream)
        return bool(stream.window)

    def _nothing_found(self, stream: Stream) -> None:
        """If nothing waits anywhere else, either, that is known, whatever was counted before."""
        backlog = self._tenants[stream.key.pool, stream.key.tenant]
        if not backlog.ready and backlog.depth > backlog.parked and backlog.is_all_here:
            backlog.depth = backlog.parked

    def fail(self, stream: Stream) -> None:
        """The read did not come through: ask again later."""
        self._reading.over(stream)
        stream.read_up_to(None)
        if self._windows.is_ours(stream):
            self._reading.want(stream)

    def _make_room(self, now_us: int) -> None:
        """For tenants that have nothing here: those that hold the most give it up.

        They are read again, in turn and in small parts.
        """
        if now_us < self._room_at_us:
            return
        self._room_at_us = now_us + MAKE_ROOM_US  # a look that finds nobody left out counts, too
        if not self._is_somebody_left_out():
            return
        part = self._windows.part_held()
        holders = [one for one in self._tenants.values() if one.ready]
        for holder in sorted(holders, key=part, reverse=True):
            if self._windows.part_free() >= ROOM_MADE:
                return
            for stream in holder.streams.values():
                if stream.window:
                    self._windows.evict(stream)
                    self._reading.want(stream)

    def _is_somebody_left_out(self) -> bool:
        keys = (stream.key for stream in self._reading.now_wanting())
        return any(not self._tenants[key.pool, key.tenant].ready for key in keys)
