"""Jobs accepted for a home that cannot be reached: on disk in this region, bounded, found by id.

How many there are is counted every second by each server: with several the bound may be passed by
what they take in within that second. Nothing here dispatches anything.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import NamedTuple

from fairway.core.errors import NotFound, Unavailable
from fairway.core.ids import JobId, ShardId, TenantId, ids_from
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.held import HeldCall
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.region_metrics import RegionMetrics
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.regions import held_jobs as store
from fairway.store.regions.held_jobs import FoundHeld, HeldCount

TENANT_PART = 4  # of all that may be held, this part is one tenant's at most
BYTES_MAX_A_JOB = 16 << 10  # on average: bounds what is held in bytes, too
COUNT_SECONDS = 1.0
FORGET_EVERY_US = 600_000_000


class HeldSight(NamedTuple):
    """A job that waits here for its home; or the one that it turned out to be."""

    found: FoundHeld
    nth: int  # of its call, from 0
    became: JobId | None


class HeldJobs:
    def __init__(
        self,
        database: Database,
        metrics: RegionMetrics,
        homes: HomeTable,
        jobs_max: int,
        retention_days: int,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._tenant_shards = tenant_shards
        self._database = database
        self._metrics = metrics
        self._homes = homes
        self._jobs_max = jobs_max
        self._retention_days = retention_days
        self._of = Counter[TenantId]()
        self._forgot_us = 0
        self._bytes = 0
        self.jobs = 0
        self.in_doubt = 0

    async def count(self, now_us: int) -> float:
        """A loop: how many there are, and what was told long enough is forgotten."""
        async with self._database.background() as connection:
            shards = [ShardId(number) for number in range(self._tenant_shards.count)]
            found = await store.counts(connection, shards)
            if now_us - self._forgot_us > FORGET_EVERY_US:
                await store.forget_told(connection, shards, self._retention_days)
                self._forgot_us = now_us
        self._of = Counter()
        for one in found:
            self._of[one.tenant] += one.jobs
        self.jobs = self._of.total()
        self._bytes = sum(one.bytes for one in found)
        self.in_doubt = sum(one.jobs for one in found if self._is_in_doubt(one))
        self._metrics.held.set(self.jobs)
        self._metrics.in_doubt.set(self.in_doubt)
        return COUNT_SECONDS

    def _is_in_doubt(self, one: HeldCount) -> bool:
        """What was sent to the home itself is not: it is sent there again until it is taken, as
        what is of a pool that the home lacks."""
        return one.offered_to not in (None, self._homes.home_of(one.tenant))

    async def hold(self, call: HeldCall) -> None:
        """On disk when this returns; the same ids again are the same jobs."""
        mine = self._of.get(call.tenant, 0) + call.jobs
        is_full = self.jobs + call.jobs > self._jobs_max or mine > self._jobs_max // TENANT_PART
        if is_full or self._bytes + len(call.body) > self._jobs_max * BYTES_MAX_A_JOB:
            raise Unavailable(
                "The tenant's home region does not answer, and as many jobs are held for it here as"
                " may be. Nothing of this was accepted.",
                code="HELD_FULL",
            )
        async with told_if_away, self._database.people() as connection:
            await store.hold(connection, call)
        self._of[call.tenant] = mine
        self.jobs += call.jobs
        self._bytes += len(call.body)

    async def find(self, tenant: TenantId, job: JobId) -> HeldSight | None:
        """A job that is held here, or was, and became another at its home. NotFound: refused."""
        async with told_if_away, self._database.people() as connection:
            shard = self._tenant_shards.of_job(tenant, job)
            calls = await store.find(connection, shard, tenant, job)
        placed = ((one, _place(one, job)) for one in calls)
        found, place = next((one for one in placed if one[1] is not None), (None, None))
        if found is None or place is None:
            return None
        if found.told is None:
            return HeldSight(found, place, None)
        told = json.loads(found.told)
        said = told[place] if isinstance(told, list) else told
        if isinstance(said, dict):
            raise NotFound(
                "The job was accepted while its home could not be reached, and refused there:"
                f" {said.get('detail', '')}"
            )
        return HeldSight(found, place, JobId(said)) if said else None


def _place(found: FoundHeld, job: JobId) -> int | None:
    ids = ids_from(found.id, found.jobs) if found.jobs > 1 else [found.id]
    return ids.index(job) if job in ids else None
