"""Uploads: payloads too large for a request, put into object storage before their job comes.

An address is signed, good for one place, one body and a while. One that this server serves is good
only as long as the key that asked for it; a bucket knows nothing of keys, so its addresses are good
for a shorter time. What a tenant has on the way, what no job has taken over yet, and all that is
kept of it, is bounded: by count, by bytes and by time. The bytes are counted by looking into
storage, a minute old at most, so they are true after a restart, on every server and for addresses
of a bucket, which takes bodies without us.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LimitReached,
    NotFound,
    Unavailable,
)
from fairway.core.ids import TenantId
from fairway.core.object_storage.object_names import ObjectScope, day_of, object_name
from fairway.core.object_storage.upload_facts import UploadFacts
from fairway.core.object_storage.upload_quota import (
    BODY,
    CLAIMED,
    FACTS,
    charge_bytes,
)
from fairway.runtime.telemetry import logger
from fairway.services.object_storage import upload_checks
from fairway.services.object_storage.upload_accounts import Account, UploadAccounts, UploadLimits
from fairway.services.object_storage.upload_checks import Look, UploadChecks
from fairway.services.store_clock import StoreClock
from fairway.store.object_storage.storage import Objects
from fairway.store.registry.tenants import Cluster

log = logger("uploads")

ADDRESS_SECONDS = 3600  # of one that this server serves: its key is looked at with every use
BUCKET_ADDRESS_SECONDS = 900  # of one that a bucket serves: nobody can take it back
PIECE_BYTES = 1 << 20
FLYING_MAX = 64  # at a time, of all tenants: each holds a few pieces
UPLOAD_ID = re.compile(r"(\d{4}-\d\d-\d\d)\.[0-9a-f]{32}")


class UploadAddress(NamedTuple):
    """A place to put a large payload."""

    id: str
    url: str
    expires_at: datetime


class UploadSeen(NamedTuple):
    """What was uploaded, as it was when it was looked at."""

    size_bytes: int
    sha256: bytes


class Address(NamedTuple):
    """What the bearer of a signed address shows."""

    tenant: TenantId
    key_id: str  # of the key that asked for it
    upload: str
    expires: int
    signature: str


class Uploads:
    def __init__(
        self, objects: Objects, cluster: Cluster, store_clock: StoreClock, limits: UploadLimits
    ) -> None:
        self._objects = objects
        self._cluster = cluster
        self._store_clock = store_clock
        self.limits = limits
        self._accounts = UploadAccounts(objects, store_clock, limits)
        self._flying = 0  # of all tenants
        self._looks = UploadChecks(objects)

    # -- on the way in -----------------------------------------------------------------------

    async def new(self, tenant: TenantId, key_id: str, server_url: str) -> UploadAddress:
        """LimitReached when the tenant has uploaded as much as it may."""
        self._accounts.check_room(await self._accounts.account(tenant), 0)
        now = self._store_clock.now()
        upload = f"{day_of(now)}.{secrets.token_hex(16)}"
        url = await self._objects.sign_upload(_name(tenant, upload, BODY), BUCKET_ADDRESS_SECONDS)
        if url is not None:
            return UploadAddress(upload, url, now + timedelta(seconds=BUCKET_ADDRESS_SECONDS))
        expires_at = now + timedelta(seconds=ADDRESS_SECONDS)  # a folder: this server takes it
        address = Address(tenant, key_id, upload, int(expires_at.timestamp()), "")
        query = f"tenant={tenant}&key={key_id}&expires={address.expires}"
        proof = self._signature(address)
        return UploadAddress(
            upload, f"{server_url}/v1/uploads/{upload}?{query}&signature={proof}", expires_at
        )

    async def take(
        self, address: Address, declared_bytes: int, pieces: AsyncIterator[bytes]
    ) -> None:
        """The bearer of a signed address puts its payload here; on disk when this returns.

        Whether the key that asked for the address is still good is the caller's to find out.
        """
        self.check(address)
        if declared_bytes > self.limits.size_bytes:
            raise self._too_large()
        account = await self._accounts.account(address.tenant)
        self._begin(account, address.upload, declared_bytes)
        self._flying += 1
        try:
            await self._store(address, account, pieces)
            account.stored[address.upload] = charge_bytes(account.flying[address.upload])
        finally:
            self._flying -= 1
            del account.flying[address.upload]

    def check(self, address: Address) -> None:
        good = self._signature(address)
        if not hmac.compare_digest(good.encode(), address.signature.encode()):
            raise unsigned()
        if address.expires < self._store_clock.now().timestamp():
            raise Forbidden("The address has expired: ask for another with POST /v1/uploads.")

    def _begin(self, account: Account, upload: str, declared_bytes: int) -> None:
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
        self._accounts.check_room(account, declared_bytes)
        account.flying[upload] = declared_bytes

    async def _store(
        self, address: Address, account: Account, pieces: AsyncIterator[bytes]
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
                    self._accounts.check_room(account, len(piece), more=0)
                    account.flying[address.upload] = size_bytes
                await asyncio.to_thread(digest.update, piece)
                yield piece

        await self._objects.put(body, measured())
        account.flying[address.upload] = size_bytes
        facts = UploadFacts(taken_sha256=digest.digest())
        await self._objects.put(_name(address.tenant, address.upload, FACTS), facts.text())

    def _too_large(self) -> InvalidRequest:
        return InvalidRequest(
            f"An upload has at most {self.limits.size_bytes} bytes.", code="PAYLOAD_TOO_LARGE"
        )

    # -- on the way out ----------------------------------------------------------------------

    async def look_at(self, tenant: TenantId, upload: str, look: Look) -> UploadSeen:
        """Size and digest of what was uploaded, once it is known that it can be a payload."""
        names = upload_checks.Names(
            tenant, _name(tenant, upload, BODY), _name(tenant, upload, FACTS)
        )
        found = await self._looks.glance(names)
        if found is None:
            raise _absent(upload)
        size_bytes = found.seen.size_bytes
        if size_bytes > self.limits.size_bytes:  # a bucket's address has no limit of its own
            raise self._too_large()
        return UploadSeen(size_bytes, await self._looks.digest_of(found, look))

    async def claim(self, tenant: TenantId, upload: str, to: str) -> None:
        """A copy of what was uploaded, under this name; the job may be sent again, so it stays.

        Should it be another by now than what was looked at, its digest is another, too: then it
        is damaged, and no job runs with it.
        """
        await self._objects.copy(_name(tenant, upload, BODY), to)
        await self._mark_claimed(tenant, upload)

    async def _mark_claimed(self, tenant: TenantId, upload: str) -> None:
        """It no longer counts as waiting for its job."""
        account = self._accounts.by_tenant.get(tenant)
        if account is not None and (charged := account.stored.pop(upload, None)) is not None:
            account.claimed[upload] = charged
        try:
            await self._objects.put(_name(tenant, upload, CLAIMED), b"")
        except Unavailable as error:  # it counts a while longer, no more than that
            log.warning("upload not marked as taken over", upload=upload, error=error.message)

    def _signature(self, address: Address) -> str:
        words = ":".join(map(str, ("upload", *address[:-1]))).encode()
        return hmac.new(self._cluster.secret.encode(), words, hashlib.sha256).hexdigest()


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


def unsigned() -> Forbidden:
    """Said also of an address that another version of this server gave out: no try helps it."""
    return Forbidden(
        "The address was not signed by this server as it is now, or was changed: ask for another"
        " with POST /v1/uploads."
    )


def _name(tenant: TenantId, upload: str, leaf: str) -> str:
    found = UPLOAD_ID.fullmatch(upload)
    if found is None:
        raise InvalidRequest("This is no id of an upload.", field="/payload_upload")
    return object_name("uploads", ObjectScope(found[1], tenant, upload), leaf)


def _absent(upload: str) -> NotFound:
    return NotFound(
        f"Nothing was uploaded as {upload[:64]!r}, or too long ago.", field="/payload_upload"
    )
