"""Leases: the right to run one job now, as `(job id, epoch, token)`.

The epoch of a job only ever grows, also across owners that never wrote their grants down: its
upper part is the owner's term, so a new owner's first grant passes every grant of the old one.
The token cannot be guessed and proves that a server granted the lease (`lease_token.py`). Fencing:
whoever presents another epoch or token than the one in force can write nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from fairway.core.ids import Epoch, JobId, TenantId, Term
from fairway.core.lifecycle import State

TERM_SHIFT = 24  # grants of one job within one term; far above any delivery bound

LISTEN_SECONDS_MAX = 5.0  # a worker that found nobody tries again within that
RAN_SLACK_US = 10_000_000  # a run may have begun before this owner knew of its lease


class LeaseProof(NamedTuple):
    """What a worker shows of its lease to write something under it."""

    tenant: TenantId
    job: JobId
    epoch: Epoch
    token: str


class StoredLease(NamedTuple):
    """What a job's row says of its lease."""

    state: int
    epoch: Epoch
    token: str | None


class LeaseStanding(Enum):
    """What becomes of a lease that a worker says it holds and the owner's memory lacks."""

    WRITTEN = "written"  # the row says so: it is in force
    UNWRITTEN = "unwritten"  # an earlier owner granted it and had no time to write it down
    OVER = "over"  # ended, lost, or never granted


def next_epoch(stored_epoch: Epoch, term: Term) -> Epoch:
    """The epoch of a new grant by the owner of `term`."""
    return max(stored_epoch, term << TERM_SHIFT) + 1  # type: ignore[return-value]  # each grant


def term_of(epoch: Epoch) -> Term:
    """The term of the owner that granted this epoch."""
    return Term(epoch >> TERM_SHIFT)


def may_adopt(stored_epoch: Epoch, epoch: Epoch, term: Term) -> bool:
    """Whether a lease asserted by a worker can be from an earlier owner and still be the newest.

    It must be newer than anything written down and older than anything this term can grant.
    """
    return stored_epoch < epoch and term_of(epoch) < term


def believable_us(said_us: int, granted_us: int, now_us: int) -> int:
    """How long a run took: as its worker says, and no longer than its lease is old."""
    return min(said_us, max(now_us - granted_us, 0) + RAN_SLACK_US)


def longest_us(timeout_ms: int, grace_seconds: float, large_bytes: int) -> int:
    """How old a lease may grow whose job has a time limit, before the platform takes it back.

    Its worker ends the run long before that: the grace is for its start, and for a payload that
    must be fetched first, at a megabyte a second.
    """
    timeout_us = timeout_ms * 1000
    return timeout_us + max(round(grace_seconds * 1e6), timeout_us // 10) + large_bytes


def is_overtime(
    age_when_heard_us: int, limit_us: int, spoken_us: int | None, grace_us: int
) -> bool:
    """Whether a worker had every chance to report a run that is past its limit, and did not.

    `age_when_heard_us` is how old the lease was when its worker was last heard; silence is no sign
    that a run goes on. `spoken_us` is for how long it has been there, without a long silence; None
    before it said hello. Who was away, or found us away, says first what ended meanwhile.
    """
    if spoken_us is None or spoken_us <= grace_us:
        return False
    return age_when_heard_us > limit_us


def may_judge_silence(listening_seconds: float, lease_seconds: float) -> bool:
    """Whether silence says something of workers: who could speak to nobody was not silent.

    After minutes without an owner all of them seem lost, and are there a moment later.
    """
    return listening_seconds >= min(lease_seconds / 2, LISTEN_SECONDS_MAX)


def standing_of(
    stored: StoredLease | None, epoch: Epoch, token: str, term: Term | None
) -> LeaseStanding:
    """Whether the lease can still be in force; `term` is the owner's, None for one we are not."""
    if stored is None:
        return LeaseStanding.OVER
    if stored.state == State.RUNNING:
        is_it = (stored.epoch, stored.token) == (epoch, token)
        return LeaseStanding.WRITTEN if is_it else LeaseStanding.OVER
    if stored.state != State.QUEUED:
        return LeaseStanding.OVER
    is_newer = stored.epoch < epoch if term is None else may_adopt(stored.epoch, epoch, term)
    return LeaseStanding.UNWRITTEN if is_newer else LeaseStanding.OVER


class Naming(NamedTuple):
    """What a worker's list of all it runs means for the leases that it was sent."""

    missed_since_us: dict[tuple[str, Epoch], int]  # (job, epoch) → when it was first not named
    lost: list[str]  # jobs not named for so long that nobody runs them


def judge_naming(
    sent: Iterable[tuple[str, Epoch]],
    named: Collection[tuple[str, Epoch]],
    missed_since_us: Mapping[tuple[str, Epoch], int],
    now_us: int,
    grace_us: int,
) -> Naming:
    """Which of the leases sent to a worker it does not run; leases are (job, epoch).

    One list proves nothing: it was made before it came, and a lease, or a report, may have crossed
    it on the way. What is missing from every list for as long as a call can be under way is lost.
    """
    missed = {lease: missed_since_us.get(lease, now_us) for lease in sent if lease not in named}
    lost = [lease for lease, since_us in missed.items() if now_us - since_us >= grace_us > 0]
    for lease in lost:
        del missed[lease]
    return Naming(missed, [job for job, _ in lost])
