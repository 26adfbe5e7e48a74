"""New jobs of a tenant in several shards: each goes to the part that judges it, or to the next.

What is judged in one place goes to the first part: a unique job, one with limits by key, one whose
payload was uploaded. A job with an Idempotency-Key goes where that key leads, whatever its size:
sent again, by whatever server and its settings, it meets itself. The rest of a batch stays
together, in the next part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from fairway.core.errors import FairwayError
from fairway.core.tenant import Tenant
from fairway.runtime.loops import WorkInParts
from fairway.services.registry.tenant_parts import TenantParts
from fairway.services.submit.submission_group import NewJob, Verdict, WholeKey

PART_ITEMS = 256  # of a batch, between two looks at the clock


class JobsToPlace(NamedTuple):
    """The jobs of a batch, with the key that all of them have together."""

    jobs: Sequence[NewJob]
    whole: WholeKey | None


def part_for(parts: TenantParts, tenant: Tenant, new: NewJob) -> Tenant:
    """The part that a job goes to which comes alone."""
    in_one_place = _is_judged_in_one_place(new)
    place = parts.for_new(tenant, new.idempotency_key, is_judged_in_one_place=in_one_place)
    return parts.taking(tenant, place)


async def in_parts(
    parts: TenantParts,
    tenant: Tenant,
    wanted: JobsToPlace,
    submit: Callable[[Tenant, list[NewJob]], Awaitable[list[Verdict]]],
) -> list[Verdict]:
    """A verdict for each job, in order. What one part refuses, the others may accept: those of its
    jobs are refused, each by itself; all of them, if no part accepts any."""
    placed = await _placed(parts, tenant, wanted)
    groups = [(parts.taking(tenant, place), ats) for place, ats in placed.items()]
    told = await asyncio.gather(
        *(submit(part, [wanted.jobs[at] for at in ats]) for part, ats in groups),
        return_exceptions=True,
    )
    failed = [one for one in told if isinstance(one, BaseException)]
    others = [one for one in failed if not isinstance(one, FairwayError)]
    if failed and (others or len(failed) == len(told)):
        raise (others or failed)[0]
    verdicts: dict[int, Verdict] = {}
    for (_, ats), found in zip(groups, told, strict=True):
        if isinstance(found, FairwayError):
            verdicts.update((at, found) for at in ats)
        elif not isinstance(found, BaseException):
            verdicts.update(zip(ats, found, strict=True))
    return [verdicts[at] for at in range(len(wanted.jobs))]


async def _placed(parts: TenantParts, tenant: Tenant, wanted: JobsToPlace) -> dict[int, list[int]]:
    """Which of the jobs go to each part; in between other requests, for there may be thousands."""
    jobs, whole = wanted
    if whole is not None:  # by the key alone: sent again, other jobs of it may be refused
        place = parts.for_new(tenant, whole.key, is_judged_in_one_place=False)
        return {place: [*range(len(jobs))]} if jobs else {}
    rest = parts.for_new(tenant, None, is_judged_in_one_place=False)
    work, found = WorkInParts(), dict[int, list[int]]()
    for at, new in enumerate(jobs):
        in_first, key = _is_judged_in_one_place(new), new.idempotency_key
        place = rest
        if in_first or key is not None:
            place = parts.for_new(tenant, key, is_judged_in_one_place=in_first)
        found.setdefault(place, []).append(at)
        if at % PART_ITEMS == PART_ITEMS - 1:
            await work.let_others()
    return found


def _is_judged_in_one_place(new: NewJob) -> bool:
    """An upload is the first part's."""
    return new.unique is not None or new.limits is not None or new.upload is not None
