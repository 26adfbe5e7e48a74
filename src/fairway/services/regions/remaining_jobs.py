"""What a region still has to hand over of tenants that are at home elsewhere.

A tenant goes back to a region only when nothing of it waits there any more: a call that was sent to
both regions with one Idempotency-Key is found out to be one job when the second is handed over, and
never if the home changes before that. Read from the store, so any server can answer for its region:
whether a tenant's jobs were looked through since it left (`leaving_jobs.py` says so), and what is
held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.homes import Home
from fairway.store.connections.database import Database
from fairway.store.regions import held_jobs, regions


class RemainingJobs:
    def __init__(self, database: Database, *, tenant_shards: TenantShards) -> None:
        self._database = database
        self._tenant_shards = tenant_shards

    async def of(self, homes: Mapping[TenantId, Home]) -> dict[TenantId, int]:
        """Those of these tenants that may have something here, and how many of their jobs are held
        so far; `homes` as the directory has them."""
        shards = [ShardId(number) for number in range(self._tenant_shards.count)]
        async with self._database.background() as connection:
            found = Counter(dict.fromkeys(await regions.not_handed_over(connection, homes), 0))
            counts = await held_jobs.counts(connection, shards)  # after: what left the jobs is held
        for one in counts:
            if one.tenant in homes:
                found[one.tenant] += one.jobs
        return dict(found)
