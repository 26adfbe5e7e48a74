"""Jobs that a run starts: as it wants them, and as they are written with its success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairway.core.ids import NO_EPOCH, Epoch, PoolId, TypeId
from fairway.core.job import JobMarks, QueuedJob, with_events
from fairway.core.run.follow_up_ids import follow_up_ids
from fairway.core.scheduling.timing import Timing, Wish, timing_of


class FollowUp(NamedTuple):
    """A job that a run wants, as the edge understood it: names, and JSON text."""

    type: str
    pool: PoolId
    priority: int
    timeout_ms: int | None
    payload: bytes
    lane: int = 0
    wish: Wish | None = None
    marks: JobMarks | None = None  # the tenant's own words, if it has any
    limits: bytes | None = None  # of its tenant's own, packed
    trace: bytes | None = None  # of the run


class WantedFollowUps(NamedTuple):
    """All that one run wants, and the moment that their ids name."""

    at_ms: int
    jobs: Sequence[FollowUp]

    def with_events(self) -> WantedFollowUps:
        """The same, and their tenant hears what becomes of them."""
        jobs = [one._replace(marks=with_events(one.marks)) for one in self.jobs]
        return self._replace(jobs=jobs)


class Children(NamedTuple):
    """What is written with the success of their parent."""

    at_ms: int
    jobs: Sequence[QueuedJob]
    scheduled: frozenset[str] = frozenset()  # those that are not due yet
    marks: Mapping[str, JobMarks] | None = None  # of those that have any

    @property
    def size_bytes(self) -> int:
        """What they hold in memory until they are written; what all have is left out."""
        size = sum([len(job.payload) + len(job.limits or b"") for job in self.jobs])
        for tags, metadata, _ in (self.marks or {}).values():
            size += sum(map(len, tags or ())) + len(metadata or b"")
        return size


def children_of(
    parent: QueuedJob,
    epoch: Epoch,
    wanted: WantedFollowUps,
    types: Sequence[TypeId],
    timings: Sequence[Timing | None],
) -> list[QueuedJob]:
    """As they wait: the tenant's of their parent."""
    ids = follow_up_ids(parent.id, epoch, wanted.at_ms, len(wanted.jobs))
    return [
        QueuedJob(
            id_,
            parent.tenant,
            one.pool,
            type_,
            one.priority,
            one.lane,
            NO_EPOCH,
            0,
            0,
            one.timeout_ms,
            one.payload,
            timing=None if timing is None else timing.row,
            limits=one.limits,
            trace=one.trace,
        )
        for id_, one, type_, timing in zip(ids, wanted.jobs, types, timings, strict=True)
    ]


def marks_of_children(
    jobs: Sequence[QueuedJob], wanted: WantedFollowUps
) -> dict[str, JobMarks] | None:
    """By job, of those that have any; None when none has."""
    pairs = zip(jobs, wanted.jobs, strict=True)
    return {job.id: one.marks for job, one in pairs if one.marks is not None} or None


def timing_of_wish(wish: Wish | None, now_ms: int, sample: float) -> Timing | None:
    """The times of a follow-up that is accepted now; None when it is due at once."""
    return None if wish is None else timing_of(wish, now_ms, sample)
