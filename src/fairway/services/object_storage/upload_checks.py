"""Looks at uploads, before a job may have one: once for each, a few at a time, of a tenant fewer.

A look reads all of an upload and takes its turn with all that computes for long, so it has places
of its own: whatever tenants upload, results and payloads of others never wait for it. A long look
takes minutes, so small ones have places apart from it; and who wants what is being looked at waits
for as long as that takes. What was found is kept beside the upload; the next job that names it
costs a glance (what lies there, and what is known of it), and of glances a tenant has few at a time
as well: thousands of jobs may name uploads in one request. Whoever makes us look again (at another
body in its place, or for the schema of another type) pays for it by its size.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from io import BytesIO
from typing import NamedTuple

from fairway.core.errors import Conflict, Gone, InvalidRequest
from fairway.core.ids import TenantId
from fairway.core.object_storage.object_names import Seen
from fairway.core.object_storage.upload_facts import NO_FIT, UploadFacts, upload_facts
from fairway.services.backpressure.owner_slots import OwnerSlots
from fairway.store.object_storage.storage import Objects

LOOK_BYTES_MAX = 8 << 20  # what is looked into as a whole; larger in pieces
LOOKS_MAX = 8  # of those at a time: each holds a whole text in memory
LONG_LOOKS_MAX = 32  # of larger ones: each holds a few pieces
TENANT_LOOKS_MAX = 2  # of one tenant, and as many long ones
LONG_WAIT_SECONDS_MAX = 300.0  # for one of these to end
GLANCES_MAX = 8
TENANT_GLANCES_MAX = 4


class Look(NamedTuple):
    """How an upload is looked at before its job exists; the first two raise what is wrong."""

    whole: Callable[[bytes], Awaitable[None]]  # what is not too large, in one go
    through: Callable[[AsyncIterator[bytes]], Awaitable[None]]  # piece by piece
    charge: Callable[[int], None]  # the tenant, for a look that it need not have caused
    rule: str = ""  # digest of the schema that a look in one go holds it against


class Names(NamedTuple):
    """Of the objects of an upload, and whose it is."""

    tenant: TenantId
    body: str
    facts: str


class UploadContent(NamedTuple):
    """What is looked at, and for whom."""

    tenant: TenantId
    body: str  # names of objects
    facts: str
    seen: Seen
    known: UploadFacts


class UploadChecks:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        being_looked_at = "uploads are being looked at, of yours or of others"
        self._glances = OwnerSlots(
            being_looked_at, per_owner=TENANT_GLANCES_MAX, in_all=GLANCES_MAX
        )
        self._small = OwnerSlots(being_looked_at, per_owner=TENANT_LOOKS_MAX, in_all=LOOKS_MAX)
        self._long = OwnerSlots(
            f"large {being_looked_at}",
            per_owner=TENANT_LOOKS_MAX,
            in_all=LONG_LOOKS_MAX,
            wait_seconds=LONG_WAIT_SECONDS_MAX,
        )
        # Whoever looks finds it out for these, too: however long it takes, they come to know it.
        self._same = OwnerSlots(
            "jobs wait for a look at this upload", per_owner=1, in_all=1, wait_seconds=None
        )

    async def glance(self, names: Names) -> UploadContent | None:
        """What lies there now, and what is known of it; None when nothing was uploaded."""
        async with self._glances.held(names.tenant):
            seen = await self._objects.seen(names.body)
            if seen is None:
                return None
            return UploadContent(*names, seen, await self._known(names.facts))

    async def digest_of(self, upload: UploadContent, look: Look) -> bytes:
        """SHA-256 of what was looked at, now or before. Raises what is wrong with it."""
        if upload.seen.size_bytes > LOOK_BYTES_MAX:
            look = look._replace(rule="")  # it is never held against a schema
        facts = upload.known
        if not facts.says_enough(upload.seen, look.rule):
            facts = await self._looked(upload, look)
        facts.raise_flaw()
        return facts.sha256

    async def _known(self, facts: str) -> UploadFacts:
        return upload_facts(await self._objects.get(facts))

    async def _looked(self, upload: UploadContent, look: Look) -> UploadFacts:
        """Who wants the same looked at waits for the one who does, and holds no place."""
        async with self._same.held(upload.body, is_small=True):
            known = await self._known(upload.facts)
            if known.says_enough(upload.seen, look.rule):
                return known
            is_long = upload.seen.size_bytes > LOOK_BYTES_MAX
            async with (self._long if is_long else self._small).held(upload.tenant):
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

    async def _found(self, upload: UploadContent, known: UploadFacts, look: Look) -> UploadFacts:
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

    async def _looked_into(self, upload: UploadContent, look: Look) -> bytes:
        gathered = BytesIO()  # it grows in place: pieces and their whole are never there together
        async with aclosing(self._pieces(upload)) as pieces:
            async for piece in pieces:
                gathered.write(piece)
        body = gathered.getvalue()  # its own memory, not a copy
        await look.whole(body)
        return (await asyncio.to_thread(hashlib.sha256, body)).digest()

    async def _looked_through(self, upload: UploadContent, look: Look) -> bytes:
        digest = hashlib.sha256()

        async def measured() -> AsyncGenerator[bytes, None]:
            async with aclosing(self._pieces(upload)) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(digest.update, piece)
                    yield piece

        async with aclosing(measured()) as pieces:
            await look.through(pieces)
        return digest.digest()

    async def _pieces(self, upload: UploadContent) -> AsyncGenerator[bytes, None]:
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
