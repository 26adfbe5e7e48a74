"""Looks at uploads, before a job may have one: once for each, a few at a time, of a tenant fewer.

A look reads all of an upload and takes its turn with all that computes for long, so it has places
of its own: whatever tenants upload, results and payloads of others never wait for it. What was
found is kept beside the upload; the next job that names it costs no look. Whoever makes us look
again (at another body in its place, or for the schema of another type) pays for it by its size.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import NamedTuple

from fairway.core.errors import Conflict, Gone, InvalidRequest
from fairway.core.object_storage.object_names import Seen
from fairway.core.object_storage.upload_facts import NO_FIT, UploadFacts, upload_facts
from fairway.services.backpressure.owner_slots import Places
from fairway.store.object_storage.storage import Objects

LOOKS_MAX = 8  # at a time: each holds a whole text in memory
TENANT_LOOKS_MAX = 2  # of one tenant
LOOK_BYTES_MAX = 8 << 20  # what is looked into as a whole; larger in pieces


class Look(NamedTuple):
    """How an upload is looked at before its job exists; the first two raise what is wrong."""

    whole: Callable[[bytes], Awaitable[None]]  # what is not too large, in one go
    through: Callable[[AsyncIterator[bytes]], Awaitable[None]]  # piece by piece
    charge: Callable[[int], None]  # the tenant, for a look that it need not have caused
    rule: str = ""  # digest of the schema that a look in one go holds it against


class Upload(NamedTuple):
    """What is looked at, and for whom."""

    tenant: int
    body: str  # names of objects
    facts: str
    seen: Seen


class UploadLooks:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._places = Places(
            "uploads are being looked at, of yours or of others",
            per_owner=TENANT_LOOKS_MAX,
            in_all=LOOKS_MAX,
        )
        self._same = Places("jobs wait for a look at this upload", per_owner=1, in_all=1)

    async def digest_of(self, upload: Upload, look: Look) -> bytes:
        """SHA-256 of what was looked at, now or before. Raises what is wrong with it."""
        if upload.seen.size_bytes > LOOK_BYTES_MAX:
            look = look._replace(rule="")  # it is never held against a schema
        facts = await self._known(upload)
        if not facts.says_enough(upload.seen, look.rule):
            facts = await self._looked(upload, look)
        facts.raise_flaw()
        return facts.sha256

    async def _known(self, upload: Upload) -> UploadFacts:
        return upload_facts(await self._objects.get(upload.facts))

    async def _looked(self, upload: Upload, look: Look) -> UploadFacts:
        """Who wants the same looked at waits for the one who does, and holds no place."""
        async with self._same.held(upload.body, is_small=True):
            known = await self._known(upload)
            if known.says_enough(upload.seen, look.rule):
                return known
            async with self._places.held(upload.tenant):
                price_bytes = min(upload.seen.size_bytes, LOOK_BYTES_MAX)
                if known.looked_at is not None:
                    look.charge(price_bytes)
                try:
                    found = await self._found(upload, known, look)
                except Conflict:
                    look.charge(price_bytes)
                    raise
            await self._objects.put(upload.facts, found.text())
        return found

    async def _found(self, upload: Upload, known: UploadFacts, look: Look) -> UploadFacts:
        try:
            if upload.seen.size_bytes <= LOOK_BYTES_MAX:
                sha256 = await self._looked_into(upload, look)
            else:
                sha256 = await self._looked_through(upload, look)
        except InvalidRequest as error:
            if error.code == NO_FIT:  # it may fit another type
                raise
            found = known.flawed(upload.seen, error)
        else:
            found = known.found(upload.seen, sha256, look.rule)
            if known.is_damaged(sha256):
                raise Gone("What was uploaded is damaged; upload it anew.", code="OBJECT_DAMAGED")
        if await self._objects.seen(upload.body) != upload.seen:
            raise changed()
        return found

    async def _looked_into(self, upload: Upload, look: Look) -> bytes:
        async with aclosing(self._pieces(upload)) as pieces:
            body = b"".join([piece async for piece in pieces])
        await look.whole(body)
        return (await asyncio.to_thread(hashlib.sha256, body)).digest()

    async def _looked_through(self, upload: Upload, look: Look) -> bytes:
        digest = hashlib.sha256()

        async def measured() -> AsyncGenerator[bytes, None]:
            async with aclosing(self._pieces(upload)) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(digest.update, piece)
                    yield piece

        async with aclosing(measured()) as pieces:
            await look.through(pieces)
        return digest.digest()

    async def _pieces(self, upload: Upload) -> AsyncGenerator[bytes, None]:
        """No more of them than was seen: what lies there may grow under our eyes."""
        left_bytes = upload.seen.size_bytes
        async with aclosing(self._objects.stream(upload.body)) as pieces:
            async for piece in pieces:
                left_bytes -= len(piece)
                if left_bytes < 0:
                    raise changed()
                yield piece


def changed() -> Conflict:
    return Conflict(
        "Something else was put to the address of this upload while it was looked at. Submit the"
        " job when nobody writes there any more.",
        field="/payload_upload",
    )
