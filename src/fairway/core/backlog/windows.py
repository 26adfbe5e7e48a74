"""The windows in memory: how much they hold, and what it means to give one up.

Losing a window loses nothing: its jobs are in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from fairway.core.backlog.streams import Stream, StreamKey, WindowLimits
from fairway.core.backlog.tenant_backlog import TenantBacklog, TenantBacklogs
from fairway.core.job import QueuedJob, weight_bytes, weights_bytes

HEAD_JOBS = 16  # of a window: who comes back stands behind those that are older


class Windows:
    def __init__(self, tenants: TenantBacklogs, limits: WindowLimits) -> None:
        self._tenants = tenants
        self.limits = limits
        self.jobs_held = 0
        self.bytes_held = 0

    @property
    def is_full(self) -> bool:
        limits = self.limits
        return self.jobs_held >= limits.jobs_total or self.bytes_held >= limits.bytes_total

    def part_free(self) -> float:
        limits = self.limits
        return 1 - max(self.jobs_held / limits.jobs_total, self.bytes_held / limits.bytes_total)

    def part_held(self) -> Callable[[TenantBacklog], float]:
        """How much of what is scarce a tenant holds: a function, for there are many tenants."""
        limits = self.limits
        if self.jobs_held >= limits.jobs_total:
            return lambda one: one.ready / limits.jobs_total
        return lambda one: one.bytes_ready() / limits.bytes_total

    def known(self, key: StreamKey) -> Stream | None:
        tenant = self._tenants.get((key.pool, key.tenant))
        return tenant.streams.get(key) if tenant is not None else None

    def is_ours(self, stream: Stream) -> bool:
        """False when its shard went to another owner while it was read."""
        return self.known(stream.key) is stream

    def count(self, job: QueuedJob, sign: int) -> None:
        """A job came into a window, or left it."""
        self.jobs_held += sign
        self.bytes_held += sign * weight_bytes(job)
        self._tenants[job.pool, job.tenant].ready += sign

    def put_in(self, stream: Stream, jobs: list[QueuedJob]) -> None:
        """As many of a stream's jobs as a read brought, behind those that are here."""
        backlog = self._tenants[stream.key.pool, stream.key.tenant]
        stream.window += jobs
        backlog.ready += len(jobs)
        self.jobs_held += len(jobs)
        self.bytes_held += weights_bytes(jobs)
        backlog.depth = max(backlog.depth, backlog.ready)  # others' jobs were not counted before

    def put_behind(self, stream: Stream, tenant: TenantBacklog, jobs: list[QueuedJob]) -> bool:
        """Jobs that came go behind those that are here; all of them, or none: answers which."""
        limits, count, size_bytes = self.limits, len(jobs), weights_bytes(jobs)
        if (
            stream.blocked
            or len(stream.window) + count > limits.jobs_per_stream
            or self.jobs_held + count > limits.jobs_total
            or (self.bytes_held + size_bytes > limits.bytes_total and count > 1)
            or self.bytes_held >= limits.bytes_total
        ):
            return False
        stream.window += jobs
        tenant.ready += count
        self.jobs_held += count
        self.bytes_held += size_bytes
        stream.cursor = max(stream.cursor, max([job.id for job in jobs]))
        return True

    def put_at_head(self, stream: Stream, job: QueuedJob, now_us: int) -> None:
        """One that comes back: it stands behind those at the head that are older."""
        backlog, window = self._tenants[job.pool, job.tenant], stream.window
        if not window or window[0].id > job.id:
            window.appendleft(job)  # as a rule
        else:
            older = sum([one.id < job.id for one in islice(window, HEAD_JOBS)])
            window.insert(older, job)
        backlog.ready += 1
        self.jobs_held += 1
        self.bytes_held += weight_bytes(job)
        if backlog.lanes is not None:
            self.filled([stream], now_us)

    def filled(self, streams: Iterable[Stream], now_us: int) -> None:
        """Jobs came to these streams; those that stay in the store are no reason to wait."""
        for stream in streams:
            lanes = self._tenants[stream.key.pool, stream.key.tenant].lanes
            if lanes is not None:
                lanes.wake(stream, now_us)
                if not stream.window:
                    lanes.drained(stream)

    def drained(self, stream: Stream) -> None:
        """The stream's window is empty."""
        lanes = self._tenants[stream.key.pool, stream.key.tenant].lanes
        if lanes is not None:
            lanes.drained(stream)

    def evict(self, stream: Stream) -> None:
        """Give up a window: its jobs are in the store, and are read again when they can run."""
        if window := stream.window:
            self.jobs_held -= len(window)
            self.bytes_held -= weights_bytes(window)
            self._tenants[stream.key.pool, stream.key.tenant].ready -= len(window)
            window.clear()
        self.drained(stream)
        stream.more, stream.missed = True, stream.reading
        stream.rewind()
