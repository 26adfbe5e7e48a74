"""Jobs accepted for a home that cannot be reached: on disk in this region, bounded, found by id.

How many there are is counted every second by each server: with several the bound may be passed by
what they take in within that second. Nothing here dispatches anything.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from fairway.core.errors import NotFound, Unavailable
from fairway.core.ids import JobId, ShardId, TenantId, id_at, place_among
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.held import HeldCall, HeldKind
from fairway.runtime.loops import pause
from fairway.services.backpressure.owner_slots import OwnerSlots
from fairway.services.regions.encoded_calls import jobs_at
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.region_metrics import RegionMetrics
from fairway.services.submit.submission_group import NewJob
from fairway.services.transient_errors import not_known, told_if_away
from fairway.store.connections.database import Database
from fairway.store.regions import held_jobs as store
from fairway.store.regions.held_jobs import FoundHeld, HeldCount

TENANT_PART = 4  # of all that may be held, this part is one tenant's at most
BYTES_AT_ONCE = 4 << 20  # of calls that are read for a look at some of their jobs
BYTES_MAX_A_JOB = 16 << 10  # on average: bounds what is held in bytes, too
COUNT_SECONDS = 1.0
FORGET_EVERY_US = 600_000_000
SMALL_BYTES = 256 << 10  # a call that is read at once, whoever else reads
REST_SECONDS_A_BYTE = 10e-9  # four times what it takes to read and decode one
LOOKS = 3  # for a job whose call is settled while it is looked for


class _Sums:
    """Of each tenant, how many jobs, and bytes."""

    def __init__(self) -> None:
        self.jobs = Counter[TenantId]()
        self.bytes = Counter[TenantId]()

    def add(self, tenant: TenantId, jobs: int, size_bytes: int) -> None:
        self.jobs[tenant] += jobs
        self.bytes[tenant] += size_bytes

    def remove(self, tenant: TenantId, jobs: int, size_bytes: int) -> None:
        for counts, count in ((self.jobs, jobs), (self.bytes, size_bytes)):
            counts[tenant] -= count
            if not counts[tenant]:
                del counts[tenant]


class HeldSight(NamedTuple):
    """Jobs of one call that wait here for their home; or the one that a job turned out to be."""

    found: FoundHeld
    jobs: Mapping[JobId, NewJob]  # those asked for, of a call as it was handed in
    row: bytes  # of an unfinished job, as it left the jobs
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
        self._there = _Sums()
        self._coming = _Sums()  # on their way to the store
        self._reading = OwnerSlots(
            "jobs of yours that are held are being read", per_owner=1, in_all=4
        )
        self._forgot_us = 0
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
        self._there = _Sums()
        for one in found:
            self._there.add(one.tenant, one.jobs, one.bytes)
        self.jobs = self._there.jobs.total()
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
        if not self._has_room(call):
            raise Unavailable(
                "The tenant's home region does not answer, and as many jobs are held for it here as"
                " may be. Nothing of this was accepted.",
                code="HELD_FULL",
            )
        counted = call.tenant, call.jobs, len(call.body)
        # Before it is written: all who wait for a home that hangs come here at one moment.
        self._coming.add(*counted)
        try:
            async with told_if_away, self._database.people() as connection:
                is_there = await store.hold(connection, call)
        finally:
            self._coming.remove(*counted)
        if not is_there and call.jobs > 1:
            # Late: its first job went to the home, and came here. Of the others nobody knows.
            raise not_known()
        self._there.add(*counted)
        self.jobs += call.jobs

    def _has_room(self, call: HeldCall) -> bool:
        """In all, and in the tenant's part of it."""
        there, coming, tenant = self._there, self._coming, call.tenant
        jobs_max, bytes_max = self._jobs_max, self._jobs_max * BYTES_MAX_A_JOB
        jobs = call.jobs + there.jobs.total() + coming.jobs.total()
        size_bytes = len(call.body) + there.bytes.total() + coming.bytes.total()
        my_jobs = call.jobs + there.jobs[tenant] + coming.jobs[tenant]
        my_bytes = len(call.body) + there.bytes[tenant] + coming.bytes[tenant]
        return (
            jobs <= jobs_max
            and size_bytes <= bytes_max
            and my_jobs <= jobs_max // TENANT_PART
            and my_bytes <= bytes_max // TENANT_PART
        )

    async def find(self, tenant: TenantId, job: JobId) -> HeldSight | None:
        """A job that is held here, or was, and became another at its home. NotFound: refused."""
        shard = self._tenant_shards.of_job(tenant, job)
        for _ in range(LOOKS):
            async with told_if_away, self._database.quick(tenant) as connection:
                calls = await store.find(connection, shard, tenant, job)
            placed = ((one, place_among(one.id, one.jobs, job)) for one in calls)
            found, place = next((one for one in placed if one[1] is not None), (None, None))
            if found is None or place is None:
                return None
            if found.told is not None:
                return _became(found, place)
            if (sight := await self._read(shard, tenant, found, [place])) is not None:
                return sight
        return None  # it goes on while we look

    async def among(self, tenant: TenantId, jobs: Sequence[JobId]) -> set[JobId]:
        """Which of these wait here."""
        calls = await self._calls_of(tenant, jobs)
        return {id_at(found.id, place) for found, places in calls for place in places}

    async def sights(self, tenant: TenantId, jobs: Sequence[JobId]) -> list[HeldSight]:
        """Those of these that wait here; of the first calls, if they are large."""
        shard, sights, left_bytes = self._tenant_shards.of(tenant), list[HeldSight](), BYTES_AT_ONCE
        for found, places in await self._calls_of(tenant, jobs):
            if sights and found.size_bytes > left_bytes:
                break
            left_bytes -= found.size_bytes
            if (sight := await self._read(shard, tenant, found, places)) is not None:
                sights.append(sight)
        return sights

    async def _calls_of(
        self, tenant: TenantId, jobs: Sequence[JobId]
    ) -> list[tuple[FoundHeld, list[int]]]:
        """The calls that these came with and wait here, each with their places in it."""
        shards = self._tenant_shards
        shard = shards.of(tenant)
        own = [job for job in jobs if shards.of_job(tenant, job) == shard]
        if not own:
            return []
        async with told_if_away, self._database.quick(tenant) as connection:
            near = await store.find_many(connection, shard, tenant, own)
        calls = dict[JobId, tuple[FoundHeld, list[int]]]()
        for job, one in near:
            place = place_among(one.id, one.jobs, job)
            if place is not None:
                calls.setdefault(one.id, (one, []))[1].append(place)
        return list(calls.values())

    async def _read(
        self, shard: ShardId, tenant: TenantId, found: FoundHeld, places: Sequence[int]
    ) -> HeldSight | None:
        """These jobs of the call; None: it was settled or taken apart since. A large call is read
        whole for any of them, so its tenant's are read one at a time, and with rests."""
        async with AsyncExitStack() as turn:
            if found.size_bytes > SMALL_BYTES:
                await turn.enter_async_context(self._reading.held(tenant))
                await pause(found.size_bytes * REST_SECONDS_A_BYTE)
            async with told_if_away, self._database.quick(tenant) as connection:
                body = await store.body_of(connection, shard, tenant, found.id, found.jobs)
            if body is None:
                return None
            if found.kind == HeldKind.JOB:
                return HeldSight(found, {}, body, None)
            ids = (id_at(found.id, place) for place in places)
            return HeldSight(found, dict(zip(ids, jobs_at(body, places), strict=True)), b"", None)


def _became(found: FoundHeld, place: int) -> HeldSight | None:
    """None: it left for its home, and is what it was. NotFound: refused there."""
    told = json.loads(found.told or '""')
    said = told[place] if isinstance(told, list) else told
    if isinstance(said, dict):
        raise NotFound(
            "The job was accepted while its home could not be reached, and refused there:"
            f" {said.get('detail', '')}"
        )
    return HeldSight(found, {}, b"", JobId(said)) if said else None
