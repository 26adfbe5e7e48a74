"""Texts too large for rows: kept in object storage, with a reference in the row.

Payloads are kept before their job is written, under the id that the job will have; so nothing ever
refers to an object that is not there, and one that no job came to need is removed at once, or swept
with its day. A reference carries size and digest: what is read is what was written, or is said to
be gone or damaged, never passed on.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple, TypeAlias

from fairway.core.errors import Gone, Refused, Unavailable
from fairway.core.ids import JobId, TenantId
from fairway.core.object_storage.object_names import (
    ObjectFacts,
    ObjectScope,
    day_of,
    is_intact,
    object_name,
)
from fairway.core.object_storage.reference import refer, referred
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.random_ids import JobIdFactory
from fairway.runtime.telemetry import logger
from fairway.services.backpressure.disk_reserve import DiskReserve
from fairway.services.backpressure.owner_slots import OwnerSlots
from fairway.services.object_storage.upload_checks import Look
from fairway.services.object_storage.uploads import Uploads
from fairway.services.sessions.sessions import Lease
from fairway.services.store_clock import StoreClock
from fairway.services.submit.submission_group import Accepted, NewJob, Verdict
from fairway.store.object_storage.storage import Objects

log = logger("vault")

TRANSFERS_MAX = 8  # at a time of payloads, and of results: each holds a whole text in memory
TENANT_TRANSFERS_MAX = 4  # of one tenant
SUSPECTS_MAX = 1000

LookFor: TypeAlias = Callable[[NewJob], Look]  # at what was uploaded for this job


class Reading(NamedTuple):
    """A text on its way out, wherever it is. Whoever has it closes it."""

    size_bytes: int
    pieces: AsyncGenerator[bytes, None]


class LargePayloads:
    def __init__(
        self,
        objects: Objects,
        tenant_shards: TenantShards,
        store_clock: StoreClock,
        ids: JobIdFactory,
        uploads: Uploads,
        room: DiskReserve,
    ) -> None:
        self._room = room
        self._objects = objects
        self._tenant_shards = tenant_shards
        self._store_clock = store_clock
        self._ids = ids
        self._uploads = uploads
        self._payloads = _slots("large payloads are being stored for you")
        self._results = _slots("large results are being stored")  # they wait for no payload
        self._suspects: dict[str, None] = {}  # read once and found damaged

    # -- payloads ------------------------------------------------------------------------------

    async def offload_large_payloads(
        self, tenant: TenantId, jobs: Sequence[NewJob], inline_bytes_max: int, look_for: LookFor
    ) -> list[NewJob | Refused]:
        """The same jobs, with what is large or was uploaded behind a reference.

        In place of a job whose upload is no good: why. Call it for jobs that were let in already.
        When one of them cannot be kept now, none is.
        """

        async def one(new: NewJob) -> NewJob:
            if new.upload is not None:
                return await self._take_over(tenant, new, new.upload, look_for(new))
            return await self._keep(tenant, new) if len(new.payload) > inline_bytes_max else new

        answers, failures = await _each(jobs, one)
        if failures:
            await self.drop([new for new in answers if isinstance(new, NewJob)])
            raise failures[0]
        return [answer for answer in answers if answer is not None]

    async def settle(self, kept: Sequence[NewJob], verdicts: Sequence[Verdict]) -> None:
        """Remove what was kept for jobs that were refused, or are there already by their key."""
        pairs = zip(kept, verdicts, strict=True)
        await self.drop(
            [new for new, one in pairs if not (isinstance(one, Accepted) and one.id == new.id)]
        )

    async def drop(self, kept: Sequence[NewJob]) -> None:
        """Remove what was kept for these: none of them came to be."""
        facts = [referred(new.payload) for new in kept if new.id is not None]
        names = [one.name for one in facts if one is not None]
        if names:
            try:
                await self._objects.delete(names)
            except Unavailable as error:
                log.warning("objects left behind", count=len(names), error=error.message)

    async def _keep(self, tenant: TenantId, new: NewJob) -> NewJob:
        job = self._new_id(tenant)
        name = object_name("payloads", self._scope(tenant, job), "payload")
        async with self._payloads.held(tenant):
            facts = await self._put(name, new.payload)
        return new._replace(id=job, payload=refer(facts))

    async def _take_over(self, tenant: TenantId, new: NewJob, upload: str, look: Look) -> NewJob:
        job = self._new_id(tenant)
        name = object_name("payloads", self._scope(tenant, job), "payload")
        seen = await self._uploads.look_at(tenant, upload, look)
        async with self._payloads.held(tenant):
            await self._uploads.claim(tenant, upload, name)
        facts = ObjectFacts(name, *seen)
        # By what it holds, not by the name of the upload: who sends a job again uploads anew.
        body_hash = new.body_hash and hashlib.sha256(new.body_hash + facts.sha256).digest()
        return new._replace(id=job, payload=refer(facts), body_hash=body_hash)

    def _new_id(self, tenant: TenantId) -> JobId:
        return self._ids.make(self._tenant_shards.of(tenant), 1)[0]

    def _scope(self, tenant: TenantId, owner: str) -> ObjectScope:
        return ObjectScope(day_of(self._store_clock.now()), tenant, owner)

    async def _put(self, name: str, body: bytes) -> ObjectFacts:
        digest = await asyncio.to_thread(hashlib.sha256, body)
        await self._objects.put(name, body)
        return ObjectFacts(name, len(body), digest.digest())

    # -- results -------------------------------------------------------------------------------

    async def keep_result(self, lease: Lease, result: bytes) -> bytes:
        """A reference to a large result. Should the lease be lost, nothing will refer to it."""
        self._room.check_object("large result")
        tenant = lease.job.tenant
        name = object_name("results", self._scope(tenant, lease.job.id), f"{lease.epoch:019d}")
        async with self._results.held(tenant):
            return refer(await self._put(name, result))

    # -- both ----------------------------------------------------------------------------------

    async def read(self, text: bytes) -> Reading:
        """A text, piece by piece. Raises Gone before the first when it is gone or damaged.

        Damage that shows only in the digest cuts the reading short; the next one is told so at
        its beginning.
        """
        facts = referred(text)
        if facts is None:
            return Reading(len(text), _one(text))
        size_bytes = await self._objects.size(facts.name)
        if size_bytes is None:
            await self._objects.check()
            log.error("object gone", object=facts.name)
            raise Gone(f"The {_kind(facts)} is no longer in object storage.")
        if size_bytes != facts.size_bytes:
            raise self._damaged(facts, size_bytes)
        if facts.name in self._suspects:
            async with aclosing(self._verified(facts)) as pieces:
                async for _ in pieces:
                    pass
            self._suspects.pop(facts.name, None)  # somebody has mended it
        return Reading(facts.size_bytes, self._verified(facts))

    async def _verified(self, facts: ObjectFacts) -> AsyncGenerator[bytes, None]:
        """All but the last piece as they come; the last when all of it is what was written."""
        digest, size_bytes, last = hashlib.sha256(), 0, b""
        async with aclosing(self._objects.stream(facts.name)) as pieces:
            async for piece in pieces:
                if last:
                    yield last
                last = piece
                size_bytes += len(piece)
                await asyncio.to_thread(digest.update, piece)
        if not is_intact(facts, size_bytes, digest.digest()):
            if len(self._suspects) >= SUSPECTS_MAX:
                self._suspects.pop(next(iter(self._suspects)))
            self._suspects[facts.name] = None
            raise self._damaged(facts, size_bytes)
        yield last

    def _damaged(self, facts: ObjectFacts, found_bytes: int) -> Gone:
        log.error("object damaged", object=facts.name, found_bytes=found_bytes)
        return Gone(
            f"The {_kind(facts)} in object storage is damaged: it is not what was written.",
            code="OBJECT_DAMAGED",
        )


async def _each(
    jobs: Sequence[NewJob], work: Callable[[NewJob], Awaitable[NewJob]]
) -> tuple[list[NewJob | Refused | None], list[Exception]]:
    """Work done for each job, by no more runners than a tenant has places, and why it ended early.

    A request may hold ten thousand jobs: a task for each would keep everybody else waiting. After a
    failure no further job is begun; what was begun is finished, so that it can be removed.
    """
    answers: list[NewJob | Refused | None] = [None] * len(jobs)
    failures: list[Exception] = []
    waiting = iter(enumerate(jobs))

    async def run() -> None:
        for place, new in waiting:
            try:
                answers[place] = await work(new)
            except Refused as refused:
                answers[place] = refused.as_value()
            except Exception as error:  # raised again by whoever asked
                failures.append(error)
            if failures:
                return

    async with asyncio.TaskGroup() as runners:
        for _ in range(min(TENANT_TRANSFERS_MAX, len(jobs))):
            runners.create_task(run(), name="large payloads")
    return answers, failures


def _slots(what: str) -> OwnerSlots:
    return OwnerSlots(what, per_owner=TENANT_TRANSFERS_MAX, in_all=TRANSFERS_MAX)


async def _one(text: bytes) -> AsyncGenerator[bytes, None]:
    yield text


def _kind(facts: ObjectFacts) -> str:
    """payload or result, from the name of the folder."""
    return facts.name.partition("/")[0].removesuffix("s")
