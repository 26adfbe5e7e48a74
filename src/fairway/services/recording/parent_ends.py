"""Ends of runs that start others: their rows, and who hears of what they started.

The owner of the parent owns its children, too: they are in its shard. What is being written is kept
from the readers of the backlog until it is announced; what was written beside the lanes is found by
a read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fairway.core.backlog.streams import StreamKey, key_of
from fairway.core.job import QueuedJob, is_heavy
from fairway.core.run.follow_ups import Children
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.group_commit import Sizes
from fairway.services.sessions.sessions import End
from fairway.store import outcomes

NOTHING = Children(0, ())


def size_bytes(end: End) -> int:
    return len(end.result or b"") + (end.children or NOTHING).size_bytes


def is_large(end: End) -> bool:
    """Whether writing it takes much longer than writing one that starts a job or two."""
    return is_heavy(len((end.children or NOTHING).jobs), size_bytes(end))


SIZES = Sizes[End](lambda end: 1 + len((end.children or NOTHING).jobs), size_bytes)


class ParentEnds:
    def __init__(
        self, dispatcher: Dispatcher, metrics: Metrics, on_scheduled: Callable[[], None]
    ) -> None:
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._on_scheduled = on_scheduled

    @contextmanager
    def writing(self, ends: Sequence[End]) -> Iterator[list[outcomes.Parent]]:
        """Their rows; no read brings what they start before it is announced."""
        ids = [job.id for end in ends for job in (end.children or NOTHING).jobs]
        self._dispatcher.inserting(ids)
        try:
            yield [row_of(end) for end in ends]
        finally:
            self._dispatcher.inserted(ids)

    def announce(self, ends: Sequence[End]) -> None:
        """These are on disk, written by a lane."""
        for end in ends:
            self._dispatcher.arrived([end.lease.shard], self._due(end))

    def hint(self, ends: Sequence[End]) -> None:
        """These are on disk, and a read may have brought what they started."""
        for end in ends:
            firsts: dict[StreamKey, str] = {}
            for job in self._due(end):
                firsts.setdefault(key_of(job), job.id)
            self._dispatcher.hinted(end.lease.shard, firsts)

    def _due(self, end: End) -> list[QueuedJob]:
        children = end.children or NOTHING
        self._metrics.accepted.inc(len(children.jobs))
        self._metrics.activity.accepted(children.jobs)
        if children.scheduled:
            self._on_scheduled()
        return [job for job in children.jobs if job.id not in children.scheduled]


def row_of(end: End) -> outcomes.Parent:
    return outcomes.Parent(success_of(end), end.children or NOTHING)


def success_of(end: End) -> outcomes.Success:
    lease, job = end.lease, end.lease.job
    return outcomes.Success(lease.shard, job.tenant, job.id, lease.epoch, end.ran_us, end.result)
