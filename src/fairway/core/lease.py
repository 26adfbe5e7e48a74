"""Leases: the right to run one job now, as `(job id, epoch, token)`.

The epoch of a job only ever grows, also across owners that never wrote their grants down: its
upper part is the owner's term, so a new owner's first grant passes every grant of the old one.
The token is random and tells apart two holders should an epoch ever be guessed. Whoever presents
another epoch or token than the one in force can write nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.ids import JobId

TERM_SHIFT = 24  # grants of one job within one term; far above any delivery bound

RAN_SLACK_US = 10_000_000  # a run may have begun before this owner knew of its lease


class LeaseProof(NamedTuple):
    """What a worker shows of its lease to write something under it."""

    tenant: int
    job: JobId
    epoch: int
    token: str


def next_epoch(stored_epoch: int, term: int) -> int:
    """The epoch of a new grant by the owner of `term`."""
    return max(stored_epoch, term << TERM_SHIFT) + 1


def term_of(epoch: int) -> int:
    """The term of the owner that granted this epoch."""
    return epoch >> TERM_SHIFT


def may_adopt(stored_epoch: int, epoch: int, term: int) -> bool:
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
