"""Idempotency keys of what is committed together: who claims one, whose jobs are written for it.

Plain functions of a group. Which keys are taken the store knows (`store/submissions.py`), and what
whoever came second is told is a verdict of the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

from fairway.core.ids import JobId, TenantId
from fairway.core.job import QueuedJob
from fairway.services.submit.submission_group import NewJob, Submission
from fairway.store.submissions import KeyClaim, KeyHolder


def claims_of(jobs: list[QueuedJob], wanted: Sequence[NewJob]) -> list[KeyClaim | None] | None:
    """A claim for each job that came with a key; None when none did."""
    if not any(new.idempotency_key for new in wanted):
        return None
    return [
        KeyClaim(job.tenant, new.idempotency_key, new.body_hash, job.id)
        if new.idempotency_key is not None
        else None
        for job, new in zip(jobs, wanted, strict=True)
    ]


def dedup_claims(group: list[Submission]) -> dict[tuple[TenantId, str], KeyClaim]:
    """Of several jobs with one key in the same group, the first speaks for all."""
    first: dict[tuple[TenantId, str], KeyClaim] = {}
    for submission in group:
        for claim in submission.claims or (submission.whole,):
            if claim is not None:
                first.setdefault((claim.tenant, claim.key), claim)
    return first


def is_all_keyed(group: list[Submission]) -> bool:
    """Whether a second try finds all that a first one wrote, so that nothing is written twice."""
    return all(
        item.whole is not None or (item.claims is not None and None not in item.claims)
        for item in group
    )


def are_few_keyed(group: list[Submission], most: int) -> bool:
    """Whether each has a key, and so many jobs they are at most."""
    return is_all_keyed(group) and sum(len(one.jobs) for one in group) <= most


def jobs_to_write(
    group: list[Submission],
    claims: dict[tuple[TenantId, str], KeyClaim],
    taken: dict[tuple[TenantId, str], KeyHolder],
) -> list[QueuedJob]:
    """Jobs to write: those without a key, and those whose claim was the first of all."""
    winners = {claim.job for key, claim in claims.items() if key not in taken}
    return [
        job for job, claimed_by in with_claims(group) if claimed_by is None or claimed_by in winners
    ]


def with_claims(group: list[Submission]) -> Iterator[tuple[QueuedJob, JobId | None]]:
    """Each job, and the one that must have won its key for it to be written; None: it has none."""
    for item in group:
        if item.whole is not None:
            yield from zip(item.jobs, repeat(item.whole.job))
        elif item.claims is None:
            yield from zip(item.jobs, repeat(None))
        else:
            for job, claim in zip(item.jobs, item.claims, strict=True):
                yield job, None if claim is None else claim.job
