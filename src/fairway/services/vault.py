"""Texts too large for rows: kept in object storage, with a reference in the row.

Payloads are kept before their job is written, under the id that the job will have; so nothing ever
refers to an object that is not there, and one that no job came to need is swept with its day.
Bodies too large for a request go straight to storage by a signed address, and a job takes them
over later.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.errors import Forbidden, InvalidRequest, NotFound
from fairway.core.ids import JobId, shard_for_tenant
from fairway.core.objects import ObjectFacts, Place, day_of, object_name
from fairway.core.reference import refer, referred
from fairway.runtime.identity import JobIdFactory
from fairway.services.sessions import Lease
from fairway.services.store_clock import StoreClock
from fairway.services.submission import NewJob
from fairway.store.objects import Objects
from fairway.store.tenants import Cluster

UPLOAD_SECONDS = 3600
TRANSFERS_MAX = 8  # at a time: each holds a whole text in memory
UPLOAD_ID = re.compile(r"(\d{4}-\d\d-\d\d)\.[0-9a-f]{32}")


class Upload(NamedTuple):
    """A place to put a large payload."""

    id: str
    url: str
    expires_at: datetime


class Vault:
    def __init__(
        self, objects: Objects, cluster: Cluster, store_clock: StoreClock, ids: JobIdFactory
    ) -> None:
        self._objects = objects
        self._cluster = cluster
        self._store_clock = store_clock
        self._ids = ids
        self._transfers = asyncio.Semaphore(TRANSFERS_MAX)

    # -- payloads ------------------------------------------------------------------------------

    async def stand_aside(
        self, tenant: int, jobs: Sequence[NewJob], inline_bytes_max: int
    ) -> list[NewJob]:
        """The same jobs, with what is large or was uploaded behind a reference."""

        async def one(new: NewJob) -> NewJob:
            if new.upload is not None:
                return await self._take_over(tenant, new, new.upload)
            return await self._keep(tenant, new) if len(new.payload) > inline_bytes_max else new

        return list(await asyncio.gather(*map(one, jobs)))

    async def _keep(self, tenant: int, new: NewJob) -> NewJob:
        job = self._new_id(tenant)
        digest = hashlib.sha256(new.payload).digest()
        name = object_name("payloads", self._place(tenant, job), "payload")
        async with self._transfers:
            await self._objects.put(name, new.payload)
        return new._replace(id=job, payload=refer(ObjectFacts(name, len(new.payload), digest)))

    async def _take_over(self, tenant: int, new: NewJob, upload: str) -> NewJob:
        uploaded = self._upload_name(tenant, upload)
        size_bytes = await self._objects.size(uploaded)
        if size_bytes is None:
            raise NotFound(
                f"Nothing was uploaded as {upload[:64]!r}, or too long ago.",
                field="/payload_upload",
            )
        job = self._new_id(tenant)
        name = object_name("payloads", self._place(tenant, job), "payload")
        await self._objects.copy(uploaded, name)
        return new._replace(id=job, payload=refer(ObjectFacts(name, size_bytes, b"")))

    def _new_id(self, tenant: int) -> JobId:
        return self._ids.make(shard_for_tenant(tenant, self._cluster.shard_count), 1)[0]

    def _place(self, tenant: int, owner: str) -> Place:
        return Place(day_of(self._store_clock.now()), tenant, owner)

    # -- results -------------------------------------------------------------------------------

    async def keep_result(self, lease: Lease, result: bytes) -> bytes:
        """A reference to a large result. Should the lease be lost, nothing will refer to it."""
        digest = hashlib.sha256(result).digest()
        place = self._place(lease.job.tenant, lease.job.id)
        name = object_name("results", place, f"{lease.epoch:019d}")
        async with self._transfers:
            await self._objects.put(name, result)
        return refer(ObjectFacts(name, len(result), digest))

    # -- both ----------------------------------------------------------------------------------

    async def read(self, text: bytes) -> AsyncIterator[bytes]:
        """A text, piece by piece, wherever it is."""
        facts = referred(text)
        if facts is None:
            yield text
            return
        is_there = False
        async for piece in self._objects.stream(facts.name):
            is_there = True
            yield piece
        if not is_there:
            raise NotFound("It is gone from object storage.")

    # -- uploads -------------------------------------------------------------------------------

    async def new_upload(self, tenant: int, server_url: str) -> Upload:
        now = self._store_clock.now()
        upload = f"{day_of(now)}.{secrets.token_hex(16)}"
        expires_at = now + timedelta(seconds=UPLOAD_SECONDS)
        name = self._upload_name(tenant, upload)
        url = await self._objects.sign_upload(name, UPLOAD_SECONDS)
        if url is None:  # a folder: this server takes it
            expires = int(expires_at.timestamp())
            proof = self._signature(tenant, upload, expires)
            query = f"tenant={tenant}&expires={expires}&signature={proof}"
            url = f"{server_url}/v1/uploads/{upload}?{query}"
        return Upload(upload, url, expires_at)

    async def take_upload(
        self, tenant: int, upload: str, expires: int, signature: str, pieces: AsyncIterator[bytes]
    ) -> None:
        """The bearer of a signed address puts its payload here."""
        good = self._signature(tenant, upload, expires)
        if not hmac.compare_digest(good.encode(), signature.encode()):
            raise Forbidden("The address was not signed by this server, or was changed.")
        if expires < self._store_clock.now().timestamp():
            raise Forbidden("The address has expired: ask for another with POST /v1/uploads.")
        await self._objects.put(self._upload_name(tenant, upload), pieces)

    def _upload_name(self, tenant: int, upload: str) -> str:
        found = UPLOAD_ID.fullmatch(upload)
        if found is None:
            raise InvalidRequest("This is no id of an upload.", field="/payload_upload")
        return object_name("uploads", Place(found[1], tenant, upload), "body")

    def _signature(self, tenant: int, upload: str, expires: int) -> str:
        words = f"upload:{tenant}:{upload}:{expires}".encode()
        return hmac.new(self._cluster.secret.encode(), words, hashlib.sha256).hexdigest()
