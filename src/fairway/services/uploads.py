"""Uploads: payloads too large for a request, put into object storage before their job comes.

An address is signed, good for one place, one hour and one body. What a tenant has on the way, and
what no job has taken over yet, is bounded: by count, by bytes and by time. The bytes are counted
by looking into storage, a minute old at most, so they are true after a restart, on every server and
for addresses of a bucket, which takes bodies without us.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    LimitReached,
    NotFound,
    Unavailable,
)
from fairway.core.objects import ObjectFacts, Place, day_of, object_name
from fairway.core.upload_facts import UploadFacts, upload_facts
from fairway.core.upload_quota import (
    BODY,
    CHARGE_BYTES_MIN,
    CLAIMED,
    FACTS,
    charge_bytes,
    unclaimed_bytes,
)
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.services.store_clock import StoreClock
from fairway.store.objects import Objects
from fairway.store.tenants import Cluster

log = logger("uploads")

ADDRESS_SECONDS = 3600
KEPT_DAYS = 2  # then an upload is swept, whether a job came for it or not
PIECE_BYTES = 1 << 20
FLYING_MAX = 64  # at a time, of all tenants: each holds a few pieces
LOOK_BYTES_MAX = 8 << 20  # what is looked into as a whole when its job comes; larger in pieces
COUNTED_FOR = timedelta(seconds=60)
UPLOAD_ID = re.compile(r"(\d{4}-\d\d-\d\d)\.[0-9a-f]{32}")


class UploadLimits(NamedTuple):
    size_bytes: int  # of one
    in_flight: int  # of one tenant, at a time
    unclaimed_bytes: int  # of one tenant, stored and not taken over by a job

    @classmethod
    def of(cls, settings: Settings) -> UploadLimits:
        return cls(
            size_bytes=settings.upload_bytes_max,
            in_flight=settings.uploads_in_flight,
            unclaimed_bytes=settings.unclaimed_bytes_max,
        )


class Upload(NamedTuple):
    """A place to put a large payload."""

    id: str
    url: str
    expires_at: datetime


class Address(NamedTuple):
    """What the bearer of a signed address shows."""

    tenant: int
    upload: str
    expires: int
    signature: str


class Look(NamedTuple):
    """How an upload is looked at before its job exists; both raise what is wrong."""

    whole: Callable[[bytes], Awaitable[None]]  # what is not too large, in one go
    through: Callable[[AsyncIterator[bytes]], Awaitable[None]]  # piece by piece


class Uploads:
    def __init__(
        self, objects: Objects, cluster: Cluster, store_clock: StoreClock, limits: UploadLimits
    ) -> None:
        self._objects = objects
        self._cluster = cluster
        self._store_clock = store_clock
        self.limits = limits
        self._accounts: dict[int, _Account] = {}
        self._flying = 0  # of all tenants

    # -- on the way in -----------------------------------------------------------------------

    async def new(self, tenant: int, server_url: str) -> Upload:
        """LimitReached when what the tenant has uploaded waits for its jobs."""
        self._check_room(await self._account(tenant), 0)
        now = self._store_clock.now()
        upload = f"{day_of(now)}.{secrets.token_hex(16)}"
        expires_at = now + timedelta(seconds=ADDRESS_SECONDS)
        url = await self._objects.sign_upload(_name(tenant, upload, BODY), ADDRESS_SECONDS)
        if url is None:  # a folder: this server takes it
            expires = int(expires_at.timestamp())
            proof = self._signature(tenant, upload, expires)
            query = f"tenant={tenant}&expires={expires}&signature={proof}"
            url = f"{server_url}/v1/uploads/{upload}?{query}"
        return Upload(upload, url, expires_at)

    async def take(
        self, address: Address, declared_bytes: int, pieces: AsyncIterator[bytes]
    ) -> None:
        """The bearer of a signed address puts its payload here; on disk when this returns."""
        self._check(address)
        if declared_bytes > self.limits.size_bytes:
            raise self._too_large()
        account = await self._account(address.tenant)
        self._begin(account, address.upload, declared_bytes)
        self._flying += 1
        try:
            await self._store(address, account, pieces)
            account.stored[address.upload] = charge_bytes(account.flying[address.upload])
        finally:
            self._flying -= 1
            del account.flying[address.upload]

    def _check(self, address: Address) -> None:
        good = self._signature(address.tenant, address.upload, address.expires)
        if not hmac.compare_digest(good.encode(), address.signature.encode()):
            raise Forbidden("The address was not signed by this server, or was changed.")
        if address.expires < self._store_clock.now().timestamp():
            raise Forbidden("The address has expired: ask for another with POST /v1/uploads.")

    def _begin(self, account: _Account, upload: str, declared_bytes: int) -> None:
        if upload in account.flying:
            raise Conflict("Somebody is putting something to this address right now.")
        if len(account.flying) >= self.limits.in_flight:
            raise LimitReached(
                f"{len(account.flying)} uploads are on their way already, as many as you may have"
                " at a time.",
                code="TOO_MANY_UPLOADS",
                retry_after_seconds=5,
            )
        if self._flying >= FLYING_MAX:
            raise Unavailable(
                f"This server takes {FLYING_MAX} uploads already, as many as it may at a time;"
                " try again shortly.",
                code="OVERLOADED",
            )
        self._check_room(account, declared_bytes)
        account.flying[upload] = declared_bytes

    async def _store(
        self, address: Address, account: _Account, pieces: AsyncIterator[bytes]
    ) -> None:
        body = _name(address.tenant, address.upload, BODY)
        if await self._objects.size(body) is not None:
            raise Conflict("This address was used: what was put there is kept. Ask for another.")
        digest, size_bytes = hashlib.sha256(), 0

        async def measured() -> AsyncIterator[bytes]:
            nonlocal size_bytes
            async for piece in _gathered(pieces):
                size_bytes += len(piece)
                if size_bytes > self.limits.size_bytes:
                    raise self._too_large()
                if size_bytes > account.flying[address.upload]:  # it said less, or nothing
                    self._check_room(account, len(piece))
                    account.flying[address.upload] = size_bytes
                await asyncio.to_thread(digest.update, piece)
                yield piece

        await self._objects.put(body, measured())
        account.flying[address.upload] = size_bytes
        facts = UploadFacts(size_bytes, digest.digest())
        await self._objects.put(_name(address.tenant, address.upload, FACTS), facts.text())

    def _too_large(self) -> InvalidRequest:
        return InvalidRequest(
            f"An upload has at most {self.limits.size_bytes} bytes.", code="PAYLOAD_TOO_LARGE"
        )

    # -- how much there is -------------------------------------------------------------------

    def _check_room(self, account: _Account, size_bytes: int) -> None:
        limit = self.limits.unclaimed_bytes
        if account.charged_bytes + charge_bytes(size_bytes) > limit:
            raise LimitReached(
                f"{account.charged_bytes} bytes of uploads wait for their jobs, each counted as"
                f" {CHARGE_BYTES_MIN} at least; with one more they would pass the limit of {limit}."
                f" Submit their jobs; what no job comes for is removed after {KEPT_DAYS} days.",
                code="UPLOAD_QUOTA_EXCEEDED",
                retry_after_seconds=60,
            )

    async def _account(self, tenant: int) -> _Account:
        account = self._accounts.setdefault(tenant, _Account())
        now = self._store_clock.now()
        if _is_old(account, now):
            async with account.counting:  # who comes meanwhile has the same count
                if _is_old(account, now):
                    await self._count(tenant, account, now)
        return account

    async def _count(self, tenant: int, account: _Account, now: datetime) -> None:
        known = list(account.stored)
        days = [day_of(now - timedelta(days=back)) for back in range(KEPT_DAYS)]
        counted_bytes = 0
        for day in days:
            listing = await self._objects.listing(f"uploads/{day}/{tenant}")
            counted_bytes += await asyncio.to_thread(unclaimed_bytes, listing)  # it may be long
        account.counted_bytes, account.counted_at = counted_bytes, now
        for upload in known:  # they are in the listing now
            account.stored.pop(upload, None)

    # -- on the way out ----------------------------------------------------------------------

    async def claim(self, tenant: int, upload: str, to: str, look: Look) -> ObjectFacts:
        """A copy of what was uploaded, under this name; the job may be sent again, so it stays.

        It is looked into first. The digest is of what was looked at: should the object be another
        by the time it is copied or read, it is damaged, and no job runs with it.
        """
        body = _name(tenant, upload, BODY)
        size_bytes = await self._objects.size(body)
        if size_bytes is None:
            raise _absent(upload)
        if size_bytes > self.limits.size_bytes:  # a bucket's address has no limit of its own
            raise self._too_large()
        if size_bytes <= LOOK_BYTES_MAX:
            sha256 = await self._looked_into(upload, body, look)
        else:
            facts = _name(tenant, upload, FACTS)
            sha256 = await self._looked_through(body, facts, size_bytes, look)
        await self._objects.copy(body, to)
        await self._mark_claimed(tenant, upload)
        return ObjectFacts(to, size_bytes, sha256)

    async def _looked_into(self, upload: str, name: str, look: Look) -> bytes:
        body = await self._objects.get(name)
        if body is None:
            raise _absent(upload)
        await look.whole(body)
        return (await asyncio.to_thread(hashlib.sha256, body)).digest()

    async def _looked_through(self, body: str, facts: str, size_bytes: int, look: Look) -> bytes:
        """Piece by piece. That takes long: what was found is kept beside it, for the next job."""
        known = upload_facts(await self._objects.get(facts), size_bytes)
        if known is None or not known.is_looked_at:
            taken = None if known is None else known.sha256  # when this platform took it
            known = await self._found_in(body, size_bytes, look)
            if not known.flaw and taken not in (None, known.sha256):
                raise Gone("What was uploaded is damaged; upload it anew.", code="OBJECT_DAMAGED")
            await self._objects.put(facts, known.text())
        known.raise_flaw()
        return known.sha256

    async def _found_in(self, body: str, size_bytes: int, look: Look) -> UploadFacts:
        digest = hashlib.sha256()

        async def measured() -> AsyncGenerator[bytes, None]:
            async with aclosing(self._objects.stream(body)) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(digest.update, piece)
                    yield piece

        async with aclosing(measured()) as pieces:
            try:
                await look.through(pieces)
            except InvalidRequest as error:
                return UploadFacts(size_bytes, b"", True, error.message, error.code)
        return UploadFacts(size_bytes, digest.digest(), True)

    async def _mark_claimed(self, tenant: int, upload: str) -> None:
        """It no longer counts as waiting for its job."""
        account = self._accounts.get(tenant)
        if account is not None:
            account.stored.pop(upload, None)
        try:
            await self._objects.put(_name(tenant, upload, CLAIMED), b"")
        except Unavailable as error:  # it counts a while longer, no more than that
            log.warning("upload not marked as taken over", upload=upload, error=error.message)

    def _signature(self, tenant: int, upload: str, expires: int) -> str:
        words = f"upload:{tenant}:{upload}:{expires}".encode()
        return hmac.new(self._cluster.secret.encode(), words, hashlib.sha256).hexdigest()


def _is_old(account: _Account, now: datetime) -> bool:
    return account.counted_at is None or now - account.counted_at > COUNTED_FOR


class _Account:
    """What one tenant has uploaded: as last counted in storage, since then, and on the way."""

    def __init__(self) -> None:
        self.counted_at: datetime | None = None
        self.counted_bytes = 0
        self.counting = asyncio.Lock()
        self.stored: dict[str, int] = {}
        self.flying: dict[str, int] = {}

    @property
    def charged_bytes(self) -> int:
        flying = sum(map(charge_bytes, self.flying.values()))
        return self.counted_bytes + sum(self.stored.values()) + flying


async def _gathered(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """In pieces that are worth a thread's while."""
    waiting: list[bytes] = []
    waiting_bytes = 0
    async for piece in pieces:
        waiting.append(piece)
        waiting_bytes += len(piece)
        if waiting_bytes >= PIECE_BYTES:
            yield b"".join(waiting)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield b"".join(waiting)


def _name(tenant: int, upload: str, leaf: str) -> str:
    found = UPLOAD_ID.fullmatch(upload)
    if found is None:
        raise InvalidRequest("This is no id of an upload.", field="/payload_upload")
    return object_name("uploads", Place(found[1], tenant, upload), leaf)


def _absent(upload: str) -> NotFound:
    return NotFound(
        f"Nothing was uploaded as {upload[:64]!r}, or too long ago.", field="/payload_upload"
    )
