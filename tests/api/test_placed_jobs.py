"""Where jobs of a tenant in several shards are written: to a part that is known, or nowhere."""

from __future__ import annotations

import pytest

from fairway.api.tenant_parts.placing import JobsToPlace, in_parts, part_for
from fairway.core.errors import Unavailable
from fairway.core.ids import JobId, PoolId, TenantId
from fairway.core.tenant import Tenant
from fairway.services.registry.tenant_parts import TenantParts
from fairway.services.submit.submission_group import Accepted, NewJob, Verdict

IDS = tuple(TenantId(n) for n in (1, 2, 3, 4))
WHOLE = Tenant(IDS[0], "big", 1, 1, parts=IDS)
KNOWN = {one: WHOLE._replace(id=one) for one in IDS}
JOBS = [NewJob("t", PoolId(1), 5, None, b"%d" % n, idempotency_key=f"k{n}") for n in range(1000)]


async def _submit(part: Tenant, jobs: list[NewJob]) -> list[Verdict]:
    return [Accepted(JobId(f"{part.id} {bytes(new.payload).decode()}")) for new in jobs]


async def test_each_job_of_a_batch_has_the_answer_of_its_own_part() -> None:
    parts = TenantParts(KNOWN)
    told = await in_parts(parts, WHOLE, JobsToPlace(JOBS, None), _submit)
    places = [part_for(parts, WHOLE, new).id for new in JOBS]
    assert {*places} == {*IDS}
    assert told == [Accepted(JobId(f"{place} {n}")) for n, place in enumerate(places)]
    assert await in_parts(parts, WHOLE, JobsToPlace([], None), _submit) == []


async def test_nothing_is_written_to_a_part_that_is_not_known_here() -> None:
    """By its number alone it would be looked for in a shard that is none of the tenant's."""
    parts = TenantParts({one: KNOWN[one] for one in IDS[:3]})
    with pytest.raises(Unavailable):
        await in_parts(parts, WHOLE, JobsToPlace(JOBS, None), _submit)
    led = [new for new in JOBS if part_for(TenantParts(KNOWN), WHOLE, new).id == IDS[3]]
    with pytest.raises(Unavailable):
        part_for(parts, WHOLE, led[0])
