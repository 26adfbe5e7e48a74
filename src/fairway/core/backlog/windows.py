"""The windows in memory: how much they hold, what is read into them, and who makes room.

A read brings as many jobs as there is room for, by count and by bytes, shared among those that want
one. When there is no
room, whoever holds the most gives its windows up: its jobs are in the store. So a tenant that fills
the memory and then may not run, say at its cap, keeps nobody else from being read.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from fairway.core.backlog.counts import BacklogCounts
from fairway.core.backlog.holds import Holds
from fairway.core.backlog.reading import READ_JOBS_MIN, Budget, Found, Reading, budget_of
from fairway.core.backlog.streams import Stream, StreamKey, WindowLimits
from fairway.core.backlog.tenant_backlog import TenantBacklog
from fairway.core.job import QueuedJob

MAKE_ROOM_US = 1_000_000  # once a second at most: it looks at every tenant
ROOM_MADE = 0.25


class Windows(BacklogCounts):
    def __init__(self, limits: WindowLimits, is_crowded: Callable[[int], bool]) -> None:
        super().__init__()
        self.limits = limits
        self.jobs_held = 0
        self.bytes_held = 0
        # being written here: they arrive, a read must not bring them
        self.inserting_ids: set[str] = set()
        # ran here; the store shows them as queued until it is told
        self.unrecorded_ids: set[str] = set()
        self.holds = Holds()
        self.reading = Reading(is_crowded)
        self._room_at_us = 0

    def _known(self, key: StreamKey) -> Stream | None:
        tenant = self._tenants.get((key.pool, key.tenant))
        return tenant.streams.get(key) if tenant is not None else None

    def _ready(self, streams: Iterable[Stream], now_us: int) -> None:
        """Jobs came to these streams; those that stay in the store are no reason to wait."""
        for stream in streams:
            lanes = self._tenants[stream.key.pool, stream.key.tenant].lanes
            if lanes is not None:
                lanes.wake(stream, now_us)
                if not stream.window:
                    lanes.drained(stream)

    def _drained(self, stream: Stream) -> None:
        """The stream's window is empty."""
        lanes = self._tenants[stream.key.pool, stream.key.tenant].lanes
        if lanes is not None:
            lanes.drained(stream)

    # -- memory ------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        limits = self.limits
        return self.jobs_held >= limits.jobs_total or self.bytes_held >= limits.bytes_total

    def _make_room(self, now_us: int) -> None:
        """For tenants that have nothing here: those that hold the most give it up.

        They are read again, in turn and in small parts.
        """
        if now_us < self._room_at_us:
            return
        self._room_at_us = now_us + MAKE_ROOM_US  # a look that finds nobody left out counts, too
        if not self._is_somebody_left_out():
            return
        part = self._part_held()
        holders = [one for one in self._tenants.values() if one.ready]
        for holder in sorted(holders, key=part, reverse=True):
            if self._part_free() >= ROOM_MADE:
                return
            for stream in holder.streams.values():
                if stream.window:
                    self._evict(stream)
                    self._want(stream)

    def _is_somebody_left_out(self) -> bool:
        keys = (stream.key for stream in self.reading.now_wanting())
        return any(not self._tenants[key.pool, key.tenant].ready for key in keys)

    def _part_free(self) -> float:
        limits = self.limits
        return 1 - max(self.jobs_held / limits.jobs_total, self.bytes_held / limits.bytes_total)

    def _part_held(self) -> Callable[[TenantBacklog], float]:
        """How much of what is scarce a tenant holds: a function, for there are many tenants."""
        limits = self.limits
        if self.jobs_held >= limits.jobs_total:
            return lambda one: one.ready / limits.jobs_total
        return lambda one: one.bytes_ready() / limits.bytes_total

    def _evict(self, stream: Stream) -> None:
        """Give up a window: its jobs are in the store, and are read again when they can run."""
        if window := stream.window:
            self.jobs_held -= len(window)
            self.bytes_held -= sum([len(job.payload) for job in window])
            self._tenants[stream.key.pool, stream.key.tenant].ready -= len(window)
            window.clear()
        self._drained(stream)
        stream.more, stream.missed = True, stream.reading
        stream.rewind()

    def _count(self, job: QueuedJob, sign: int) -> None:
        self.jobs_held += sign
        self.bytes_held += sign * len(job.payload)
        self._tenants[job.pool, job.tenant].ready += sign

    # -- reads -------------------------------------------------------------------------------

    def _want(self, stream: Stream) -> None:
        if not stream.blocked:
            self.reading.want(stream)

    @property
    def _jobs_per_read(self) -> int:
        """An even part of the room for each that wants a read, and enough to be worth one."""
        room = self.limits.jobs_total - self.jobs_held
        part = room // (self.reading.wanting + 1)
        return min(self.limits.jobs_per_read, max(part, READ_JOBS_MIN))

    @property
    def low(self) -> int:
        """A window with no more jobs than this wants a read."""
        return self._jobs_per_read // 4

    @property
    def wants_reads(self) -> bool:
        return bool(self.reading)

    def begin_reads(self, streams_max: int, now_us: int) -> list[tuple[Stream, int]]:
        """Streams to read next, each with how many jobs to ask for; all become `reading`."""
        if self.is_full and self.wants_reads:
            self._make_room(now_us)
        if self.is_full:
            return []
        room, share = self.limits.jobs_total - self.jobs_held, self._jobs_per_read
        chosen = self.reading.begin(streams_max)
        share = min(share, max(room // max(len(chosen), 1), 1))
        return [(stream, self.reading.portion(stream, share)) for stream in chosen]

    def budget_of(self, wishes: Sequence[tuple[Stream, int]]) -> Budget:
        """How many bytes these reads may bring of each stream."""
        return budget_of(wishes, self.limits.bytes_total - self.bytes_held)

    def end_weighed(
        self,
        wish: tuple[Stream, int],
        found: Found,
        budget: Budget,
        held: Container[str],
        now_us: int,
    ) -> bool:
        """As `end_read`, for a read that may have been cut for its weight."""
        stream, limit = wish
        asked = len(found.jobs) if found.is_cut else limit
        weights = [len(job.payload) for job in found.jobs] if stream.heavy else []
        stream.heavy = found.is_cut or max(weights, default=0) > budget.light_bytes
        return self.end_read(stream, found.jobs, asked, held, now_us)

    def end_read(
        self,
        stream: Stream,
        jobs: list[QueuedJob],
        asked: int,
        held: Container[str],
        now_us: int,
    ) -> bool:
        """What a read found; answers whether the stream has jobs to give now."""
        if not self._is_ours(stream):
            self.reading.over(stream)
            return False
        if self.holds and self.holds.on(stream.key):  # since this read began
            self.reading.over(stream)
            self._evict(stream)
            return False
        if stream.rewound:  # since this read began: what comes first is still to be read
            jobs = []
        backlog = self._tenants[stream.key.pool, stream.key.tenant]
        fresh = self._news(jobs, stream, held, stream.look)
        stream.window += fresh
        backlog.ready += len(fresh)
        self.jobs_held += len(fresh)
        self.bytes_held += sum([len(job.payload) for job in fresh])
        backlog.depth = max(backlog.depth, backlog.ready)  # others' jobs were not counted before
        self.reading.over(stream)
        stream.read_up_to(jobs[-1].id if jobs else None)
        stream.more = len(jobs) >= asked or stream.missed
        if stream.more and len(stream.window) <= self.low:
            self._want(stream)
        if stream.window:
            self._ready([stream], now_us)
        return bool(stream.window)

    def _news(
        self, jobs: list[QueuedJob], stream: Stream | None, held: Container[str], look: int
    ) -> list[QueuedJob]:
        """Those that are neither here nor under way; mostly all, which sets find out quickly."""
        ids: set[str] = {job.id for job in jobs}
        old = {job_id for job_id in ids if job_id in held}
        old |= (
            ids & self.inserting_ids
            | ids & self.unrecorded_ids
            | self.reading.ended_since(look, ids)
        )
        if stream is not None:
            old |= ids.intersection([job.id for job in stream.window])
        return [job for job in jobs if job.id not in old] if old else jobs

    def _is_underway(self, job_id: str) -> bool:
        """Whether a row that says `queued` is about to be announced, or is old news."""
        return (
            job_id in self.inserting_ids
            or job_id in self.unrecorded_ids
            or self.reading.is_old_news(job_id)
        )

    def fail_read(self, stream: Stream) -> None:
        """The read did not come through: ask again later."""
        self.reading.over(stream)
        stream.read_up_to(None)
        if self._is_ours(stream):
            self._want(stream)

    def _is_ours(self, stream: Stream) -> bool:
        """False when its shard went to another owner while it was read."""
        return self._known(stream.key) is stream
