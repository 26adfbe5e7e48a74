"""Submissions that another server has written under the same ids.

A server that got no answer from the owner writes what it passed on by itself. Whoever of the two is
second finds the rows there: a job whose id is there is there, and is not written twice. Each
submission is written whole, so one row tells of all; but for jobs that were not the only one.
Jobs with keys are found by these, for as long as a key is kept; then by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fairway.core.errors import FairwayError
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.unique import Lost
from fairway.services.submit.idempotency_keys import dedup_claims, is_all_keyed
from fairway.services.submit.submission_group import (
    Submission,
    Verdict,
    jobs_in,
    verdicts_of,
)
from fairway.services.transient_errors import not_known
from fairway.store import history
from fairway.store.connections.database import Connection
from fairway.store.submissions import KeyClaim, KeyHolder, claim_keys


class Double(NamedTuple):
    submission: Submission
    verdicts: list[Verdict]


async def find_doubles(
    connection: Connection, group: list[Submission], homes: TenantShards
) -> list[Double] | None:
    """Those of the group that are there; None: nothing of it is, and another try would end alike.

    Keys find their own at another try. Beside jobs without one others may have keys: those are
    answered by what is there, too.
    """
    plain = [one for one in group if not is_all_keyed([one])]
    there = await _there(connection, [(job.tenant, job.id) for job in jobs_in(plain)], homes)
    found = []
    for one in plain:
        if any(job.id in there for job in one.jobs):
            verdicts = zip(one.jobs, verdicts_of(one._replace(claims=None), {}), strict=True)
            found.append(Double(one, [_verdict(job.id in there, said) for job, said in verdicts]))
    return found if found or await _are_keys_held_anew(connection, group, homes) else None


async def _are_keys_held_anew(
    connection: Connection, group: list[Submission], homes: TenantShards
) -> bool:
    """Let jobs that are there have their keys again, if these were free: another try finds them.

    A region may be away for longer than a key is kept, and be sent then what it has.
    """
    keyed = [one for one in group if is_all_keyed([one])]
    claims = dedup_claims(keyed).values()
    there = await _there(connection, [(one.tenant, one.job) for one in claims], homes)
    is_any = False
    for claim in (one for one in claims if one.job in there):
        shard = homes.of_job(claim.tenant, claim.job)
        is_any |= not await claim_keys(connection, shard, [claim])
    return is_any


async def _there(
    connection: Connection, jobs: Iterable[tuple[TenantId, JobId]], homes: TenantShards
) -> set[str]:
    """Those of these jobs that are in the store."""
    asked: dict[ShardId, list[tuple[TenantId, JobId]]] = {}
    for tenant, job in jobs:
        asked.setdefault(homes.of_job(tenant, job), []).append((tenant, job))
    there = set[str]()
    for shard, wanted in asked.items():
        there.update(await history.read_states(connection, shard, wanted))
    return there


def written_before(
    claims: Mapping[tuple[TenantId, str], KeyClaim],
    taken: Mapping[tuple[TenantId, str], KeyHolder],
    lost: Mapping[JobId, Lost],
) -> Iterator[JobId]:
    """Jobs that found their own key or name taken by themselves."""
    for key, holder in taken.items():
        if holder.job == claims[key].job:
            yield holder.job
    for job, found in lost.items():
        if found.holder == job:
            yield job


def jobs_there(submission: Submission, there: frozenset[JobId]) -> frozenset[JobId]:
    """Those of it that are not new: with the key of a batch, all or none."""
    if submission.whole is not None and submission.whole.job in there:
        return frozenset(job.id for job in submission.jobs)
    return there


def _verdict(is_there: bool, said: Verdict) -> Verdict:
    """One that was written with others of its call, and is not there, was refused as a double."""
    return said if is_there or isinstance(said, FairwayError) else not_known()
