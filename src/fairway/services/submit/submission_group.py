"""What stands in one commit of submissions, and what each of its callers is told.

Plain functions of a group: what its jobs are marked with, which verdict each has. Whose claim of
an idempotency key counts is in `idempotency_keys.py`, the commit itself in `submission.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from fairway.core.backlog.streams import StreamKey, key_of
from fairway.core.errors import Conflict, FairwayError, InvalidRequest, Unavailable
from fairway.core.ids import JobId, PoolId, ShardId, TenantId, ids_from
from fairway.core.job import JobMarks, QueuedJob, with_events
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.homes import Meant
from fairway.core.scheduling.timing import Wish
from fairway.core.tenant import Tenant
from fairway.core.unique import Lost, UniqueClaim, UniqueWish, Why
from fairway.services.group_commit import Sizes
from fairway.services.submit.refused_places import is_same_body, made_places, refused_places
from fairway.store.submissions import KeyClaim, KeyHolder


class NewJob(NamedTuple):
    """A job as the edge understood it: names, not numbers; JSON text that was looked at."""

    type: str
    pool: PoolId
    priority: int
    timeout_ms: int | None
    payload: bytes
    lane: int = 0
    idempotency_key: str | None = None
    body_hash: bytes = b""
    wish: Wish | None = None  # when it is wanted, if not at once
    upload: str | None = None  # where its payload was put, if not here
    id: JobId | None = None  # when something was kept under it already
    marks: JobMarks | None = None  # the tenant's own words, if it has any
    limits: bytes | None = None  # of its tenant's own, packed
    unique: UniqueWish | None = None
    trace: bytes | None = None  # that it belongs to


def size_bytes_of(jobs: Sequence[NewJob]) -> int:
    """What they weigh, on their way to another server or to the store. Their metadata may be 16 KB
    each, of jobs without any payload."""
    if len(jobs) == 1 and jobs[0].marks is None:  # most often
        return len(jobs[0].payload)
    size_bytes = sum([len(new.payload) for new in jobs])
    marked = [new.marks.metadata for new in jobs if new.marks is not None]
    return size_bytes + sum([len(text) for text in marked if text is not None])


def heard_of(tenant: Tenant, wanted: Sequence[NewJob]) -> Sequence[NewJob]:
    """The same jobs; marked, if their tenant wants to hear what becomes of all that it submits."""
    if not tenant.job_events:
        return wanted
    return [new._replace(marks=with_events(new.marks)) for new in wanted]


class Accepted(NamedTuple):
    id: JobId
    replayed: bool = False  # an earlier call with the same Idempotency-Key made it
    state: str = "queued"


Verdict = Accepted | FairwayError


class WholeKey(NamedTuple):
    """The key of a batch, and the hash of all that it says."""

    key: str
    body_hash: bytes


class Submission(NamedTuple):
    jobs: list[QueuedJob]
    claims: list[KeyClaim | None] | None
    verdicts: asyncio.Future[list[Verdict]]
    size_bytes: int  # of payloads and metadata
    scheduled: frozenset[str] | None = None  # those not due yet; None: no job has times or limits
    marks: dict[str, JobMarks] | None = None  # of those that have any
    unique: dict[str, UniqueWish] | None = None  # of jobs that want it; None when none does
    is_traced: bool = False  # some of its jobs belong to a trace
    whole: KeyClaim | None = None  # one key for all: they are written together or not at all
    meant: Meant | None = None  # by which home another region sent them, if one did


class Written(NamedTuple):
    """What a commit found."""

    holders: dict[tuple[TenantId, str], KeyHolder]  # of every idempotency key
    lost: dict[JobId, Lost]  # jobs that were not the only one, and were not written
    replaced: Sequence[tuple[JobId, StreamKey]] = ()  # waited, and are cancelled
    superseded: frozenset[JobId] = frozenset()  # of these jobs; cancelled by others of them
    there: frozenset[JobId] = frozenset()  # whose claims another server has made, with these ids


SIZES = Sizes[Submission](lambda one: len(one.jobs), attrgetter("size_bytes"))


def limited(jobs: list[QueuedJob], wanted: Sequence[NewJob]) -> list[QueuedJob]:
    """The same jobs, with the limits of those that have any."""
    return [
        replace(job, limits=new.limits) if new.limits else job
        for job, new in zip(jobs, wanted, strict=True)
    ]


def traced(jobs: list[QueuedJob], wanted: Sequence[NewJob]) -> list[QueuedJob]:
    """The same jobs, with the traces of those that belong to one."""
    return [
        replace(job, trace=new.trace) if new.trace is not None else job
        for job, new in zip(jobs, wanted, strict=True)
    ]


def is_traced(group: list[Submission]) -> bool:
    return any(item.is_traced for item in group)


def oldest_by_stream(jobs: list[QueuedJob]) -> dict[StreamKey, str]:
    """The oldest of these jobs in each stream."""
    firsts: dict[StreamKey, str] = {}
    for job in jobs:
        key = key_of(job)
        firsts[key] = min(firsts.get(key, job.id), job.id)
    return firsts


def shards_of(group: list[Submission], homes: TenantShards) -> set[ShardId]:
    """Of these submissions: each is of one tenant, so of one shard."""
    return {homes.of_job(item.jobs[0].tenant, item.jobs[0].id) for item in group}


def first_shard(group: list[Submission], homes: TenantShards) -> ShardId:
    """One of theirs: on a distributed store all of a group lie together."""
    first = group[0].jobs[0]
    return homes.of_job(first.tenant, first.id)


def apart(
    jobs: list[QueuedJob], foreign: Container[ShardId], homes: TenantShards
) -> tuple[list[QueuedJob], dict[ShardId, list[QueuedJob]]]:
    """Those of our own shards; and by shard those of others'."""
    ours: list[QueuedJob] = []
    others: dict[ShardId, list[QueuedJob]] = {}
    for job in jobs:
        shard = homes.of_job(job.tenant, job.id)
        (others.setdefault(shard, []) if shard in foreign else ours).append(job)
    return ours, others


def jobs_in(group: list[Submission]) -> list[QueuedJob]:
    return group[0].jobs if len(group) == 1 else [job for item in group for job in item.jobs]


def scheduled_in(group: list[Submission]) -> set[str] | None:
    """Jobs of the group that are not due yet; None when none of its jobs has times or limits."""
    found = [item.scheduled for item in group if item.scheduled is not None]
    return set().union(*found) if found else None


def marks_of(
    jobs: list[QueuedJob], wanted: Sequence[NewJob], *, is_heard_of: bool
) -> dict[str, JobMarks] | None:
    """By job, of those that have any; None when none has. `is_heard_of`: their tenant wants to
    hear what becomes of all that it submits."""
    if is_heard_of:
        return {job.id: with_events(new.marks) for job, new in zip(jobs, wanted, strict=True)}
    return {
        job.id: new.marks for job, new in zip(jobs, wanted, strict=True) if new.marks is not None
    } or None


def marks_in(group: list[Submission]) -> dict[str, JobMarks] | None:
    found: dict[str, JobMarks] = {}
    for item in group:
        found |= item.marks or {}
    return found or None


def has_events(group: list[Submission]) -> bool:
    """Whether somebody wants to hear what becomes of one of its jobs."""
    return any(marks.events for item in group if item.marks for marks in item.marks.values())


def unique_wishes(jobs: list[QueuedJob], wanted: Sequence[NewJob]) -> dict[str, UniqueWish] | None:
    """By job, of those that want to be the only one of their kind."""
    pairs = zip(jobs, wanted, strict=True)
    return {job.id: new.unique for job, new in pairs if new.unique is not None} or None


def wishes_in(group: list[Submission]) -> dict[str, UniqueWish]:
    return {id_: wish for item in group for id_, wish in (item.unique or {}).items()}


def unique_claims(wishes: Mapping[str, UniqueWish], jobs: list[QueuedJob]) -> list[UniqueClaim]:
    """Of those of the jobs that want to be the only one, in their order."""
    return [
        UniqueClaim(job.tenant, wish.digest, job.id, wish.states, wish.within_ms, wish.replaces)
        for job in jobs
        if (wish := wishes.get(job.id)) is not None
    ]


def told_of_others(
    submission: Submission, verdicts: list[Verdict], written: Written
) -> list[Verdict]:
    """The same verdicts, where jobs found another of their kind, or were replaced by one.

    A verdict may name another's job, whose key it has: what it wished for itself is what counts.
    """
    wishes = submission.unique or {}
    return [
        _told(verdict, wishes.get(job.id), written) if isinstance(verdict, Accepted) else verdict
        for job, verdict in zip(submission.jobs, verdicts, strict=True)
    ]


def _told(verdict: Accepted, wish: UniqueWish | None, written: Written) -> Verdict:
    if verdict.id in written.superseded:
        return verdict._replace(state="cancelled")
    lost = written.lost.get(verdict.id)
    if lost is None or lost.holder == verdict.id:  # itself: another server wrote it before us
        return verdict
    if lost.holder is None:
        return Unavailable(code="NOT_OWNER")
    if wish is not None and wish.returns:
        return Accepted(lost.holder, replayed=True)
    return Conflict(
        f"Job {lost.holder} is the same by its unique key{_BECAUSE[lost.why]}; this one was not"
        " made.",
        code="NOT_UNIQUE",
        field="/unique",
    )


_BECAUSE = {
    Why.COUNTS: ", and still counts",
    Why.RUNS: ", and cannot be replaced: it runs, or has ended and still counts."
    " (Without `running` among the states it would not count.)",
    Why.IN_FLOW: ", and cannot be replaced: other jobs of a flow count on it."
    " Cancel it, or its flow, first",
}


def verdicts_of(
    submission: Submission, holders: dict[tuple[TenantId, str], KeyHolder]
) -> list[Verdict]:
    verdicts: list[Verdict]
    if submission.whole is not None:
        verdicts = _verdicts_of_whole(submission.jobs, submission.whole, holders)
    elif submission.claims is None:
        verdicts = [Accepted(job.id) for job in submission.jobs]
    else:
        verdicts = [
            _verdict(job, claim, holders)
            for job, claim in zip(submission.jobs, submission.claims, strict=True)
        ]
    if submission.scheduled:
        for index, (job, verdict) in enumerate(zip(submission.jobs, verdicts, strict=True)):
            if job.id in submission.scheduled and isinstance(verdict, Accepted):
                verdicts[index] = verdict._replace(state="scheduled")
    return verdicts


def _verdicts_of_whole(
    jobs: list[QueuedJob], claim: KeyClaim, holders: dict[tuple[TenantId, str], KeyHolder]
) -> list[Verdict]:
    """Of a batch with one key: if it was there before, the ids that were made together then."""
    holder = holders.get((claim.tenant, claim.key))
    if holder is not None and is_same_body(holder.body_hash, claim.body_hash):
        if holder.job != jobs[0].id:
            return _made_before(jobs, claim, holder)
        return [Accepted(job.id) for job in jobs]
    return [_verdict(jobs[0], claim, holders)] * len(jobs)


def _made_before(jobs: list[QueuedJob], claim: KeyClaim, holder: KeyHolder) -> list[Verdict]:
    """By place: other jobs of it may have been refused then than are now."""
    if holder.body_hash == claim.body_hash:
        return [Accepted(id_, replayed=True) for id_ in ids_from(holder.job, len(jobs))]
    places = made_places(claim.body_hash, len(jobs))
    all_jobs = len(jobs) + len(refused_places(claim.body_hash))
    made = made_places(holder.body_hash, all_jobs - len(refused_places(holder.body_hash)))
    ids = dict(zip(made, ids_from(holder.job, len(made)), strict=True))
    return [
        Accepted(ids[place], replayed=True) if place in ids else _refused_before()
        for place in places
    ]


def _refused_before() -> InvalidRequest:
    return InvalidRequest(
        "This job was refused when its batch came first under this Idempotency-Key, and was not"
        " made; send it under another key.",
        code="IDEMPOTENCY_KEY_REUSED",
    )


def _verdict(
    job: QueuedJob, claim: KeyClaim | None, holders: dict[tuple[TenantId, str], KeyHolder]
) -> Verdict:
    if claim is None:
        return Accepted(job.id)
    holder = holders.get((claim.tenant, claim.key))
    if holder is None:  # its day ended between two looks
        return Unavailable()
    if holder.body_hash != claim.body_hash:
        return InvalidRequest(
            "This Idempotency-Key was used with another body; use a new key for a new job.",
            code="IDEMPOTENCY_KEY_REUSED",
        )
    return Accepted(holder.job, replayed=holder.job != job.id)


def made_by(
    submission: Submission, verdicts: list[Verdict], but: Collection[JobId]
) -> list[QueuedJob]:
    return [
        job
        for job, verdict in zip(submission.jobs, verdicts, strict=True)
        if isinstance(verdict, Accepted) and verdict.id == job.id and job.id not in but
    ]
