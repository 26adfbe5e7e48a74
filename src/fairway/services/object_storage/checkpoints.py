"""Checkpoints: what a job saved of itself, so that its next run need not begin at the beginning.

The order is what makes it safe: first the object, then the row that refers to it, and that row only
under the lease in force. So a reader never meets half an object, and a run that lost its lease can
write objects that nobody will ever look at. The newest and the one before it are kept: should the
newest turn out to be broken, the one before it is used.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import NamedTuple

from fairway.core.errors import Conflict, NotFound, Unavailable
from fairway.core.events.event import NewEvent
from fairway.core.ids import Epoch, JobId, ShardId, TenantId
from fairway.core.object_storage.object_names import (
    ObjectFacts,
    ObjectScope,
    checkpoint_name,
    day_of,
    is_intact,
)
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.run.lease import LeaseProof
from fairway.runtime.telemetry import logger
from fairway.services.backpressure.disk_reserve import DiskReserve
from fairway.services.backpressure.owner_slots import OwnerSlots
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import checkpoints as store
from fairway.store.checkpoints import Saved
from fairway.store.connections.database import Database
from fairway.store.events.log import add_notices
from fairway.store.object_storage.storage import Objects

log = logger("checkpoints")

KEPT = 2
TRANSFERS_MAX = 8  # at a time: each holds a whole checkpoint in memory
OWNER_TRANSFERS_MAX = 2  # of one worker, or of all workers of one tenant
SHORT_BYTES = 64 << 10  # hashed in less time than a thread takes to begin


class LoadedCheckpoint(NamedTuple):
    """A checkpoint with what is in it."""

    saved: Saved
    body: bytes
    lost: int = 0  # newer ones, saved and not readable any more


class Checkpoints:
    def __init__(
        self,
        database: Database,
        objects: Objects,
        store_clock: StoreClock,
        room: DiskReserve,
        tenant_shards: TenantShards,
    ) -> None:
        self._tenant_shards = tenant_shards
        self._room = room
        self._database = database
        self._objects = objects
        self._store_clock = store_clock
        self.transfers = OwnerSlots(
            "checkpoints are under way", per_owner=OWNER_TRANSFERS_MAX, in_all=TRANSFERS_MAX
        )

    @property
    def failure(self) -> str | None:
        """Why object storage did not answer the last time, if it did not."""
        return self._objects.failure

    async def save(self, proof: LeaseProof, number: int, body: bytes) -> Saved:
        """Raises Conflict when the lease is no longer in force; it refers to nothing then."""
        self._room.check_object("checkpoint")
        sha256 = await _digest(body)
        scope = ObjectScope(day_of(self._store_clock.now()), proof.tenant, proof.job)
        name = checkpoint_name(scope, proof.epoch, number, sha256)
        facts = ObjectFacts(name, len(body), sha256)
        await self._objects.put(name, body)
        saved = await self._refer(proof, number, facts)
        if saved is None:
            if not await self._is_saved(proof, number, name):
                await self._forget([name])
            raise _lease_lost()
        return saved

    async def check_lease(self, proof: LeaseProof) -> None:
        """Raises Conflict when the lease is not in force now: nothing need be read or kept."""
        async with told_if_away, self._database.people() as connection:
            is_in_force = await store.is_lease_in_force(connection, self._shard(proof), proof)
        if not is_in_force:
            raise _lease_lost()

    async def _refer(self, proof: LeaseProof, number: int, facts: ObjectFacts) -> Saved | None:
        shard = self._shard(proof)
        async with told_if_away, self._database.people() as connection, connection.transaction():
            saved_at = await store.save_checkpoint(connection, shard, proof, number, facts)
            if saved_at is None:
                return None
            past = await store.drop_older_checkpoints(
                connection, shard, proof.tenant, proof.job, KEPT
            )
        await self._forget(past)
        return Saved(proof.epoch, number, facts, saved_at)

    async def _is_saved(self, proof: LeaseProof, number: int, name: str) -> bool:
        """Whether the same words were said before, while the lease stood: the object is in use.

        Nobody can save it from now on: who did held the job's row until it was on disk.
        """
        async with told_if_away, self._database.people() as connection:
            shard = self._shard(proof)
            return await store.is_checkpoint_saved(connection, shard, proof, number, name)

    async def load(
        self, tenant: TenantId, job: JobId, before_epoch: Epoch
    ) -> LoadedCheckpoint | None:
        """The newest whole checkpoint of the runs before this epoch; None when none was saved.

        Those that cannot be read any more are passed over, and the tenant is told. Raises NotFound
        with the code CHECKPOINT_LOST when that leaves none.
        """
        rows = await self._newest(tenant, job, before_epoch)
        for lost, saved in enumerate(rows):
            body = await self._objects.get(saved.facts.name)
            if body is not None and is_intact(saved.facts, len(body), await _digest(body)):
                if lost:
                    await self._tell(tenant, job, f"it goes on from number {saved.number}")
                return LoadedCheckpoint(saved, body, lost)
            if body is None:
                await self._objects.check()
            found_bytes = None if body is None else len(body)
            log.error("checkpoint broken", object=saved.facts.name, found_bytes=found_bytes)
        if rows:
            await self._tell(tenant, job, "it begins at the beginning")
            raise NotFound(
                "The job's checkpoints are gone from object storage, or damaged: it begins at the"
                " beginning.",
                code="CHECKPOINT_LOST",
            )
        return None

    async def _tell(self, tenant: TenantId, job: JobId, what_now: str) -> None:
        detail = (
            f"The newest checkpoint of the job {job} is gone from object storage, or damaged:"
            f" {what_now}."
        )
        async with told_if_away, self._database.background() as connection:
            await add_notices(connection, [NewEvent(tenant, "checkpoint.lost", job, detail, job)])

    async def _newest(self, tenant: TenantId, job: JobId, before_epoch: Epoch) -> list[Saved]:
        async with told_if_away, self._database.people() as connection:
            shard = self._tenant_shards.of_job(tenant, job)
            return await store.newest_checkpoints(
                connection, shard, tenant, job, before_epoch=before_epoch, limit=KEPT
            )

    def _shard(self, proof: LeaseProof) -> ShardId:
        return self._tenant_shards.of_job(proof.tenant, proof.job)

    async def _forget(self, names: list[str]) -> None:
        """Objects that nothing refers to. Left behind by a failure, the sweep finds them."""
        try:
            await self._objects.delete(names)
        except Unavailable as error:
            log.warning("objects left behind", count=len(names), error=error.message)


async def _digest(body: bytes) -> bytes:
    if len(body) <= SHORT_BYTES:
        return hashlib.sha256(body).digest()
    return (await asyncio.to_thread(hashlib.sha256, body)).digest()


def _lease_lost() -> Conflict:
    return Conflict("The lease is no longer in force: another run has the job.", code="LEASE_LOST")
