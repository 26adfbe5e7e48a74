"""How much each tenant has uploaded, and whether there is room for more.

Counted by looking into storage, a minute old at most, and since then by what this server took. A
count reads a name for every object: one at a time of a tenant, few of all, in a thread, and how
many uploads a tenant keeps is bounded as their bytes are. Nothing here reads or writes an upload.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.errors import LimitReached
from fairway.core.ids import TenantId
from fairway.core.object_storage.object_names import day_of
from fairway.core.object_storage.upload_quota import (
    CHARGE_BYTES_MIN,
    Charges,
    charge_bytes,
    charges_of,
)
from fairway.runtime.settings import Settings
from fairway.services.store_clock import StoreClock
from fairway.store.object_storage.storage import Objects

KEPT_DAYS = 2  # then an upload is swept, whether a job came for it or not
COUNTED_FOR = timedelta(seconds=60)
COUNTS_MAX = 2  # at a time, of all tenants


class UploadLimits(NamedTuple):
    size_bytes: int  # of one
    in_flight: int  # of one tenant, at a time
    unclaimed_bytes: int  # of one tenant, stored and not taken over by a job
    kept_bytes: int  # of one tenant, stored, whether a job has taken them over or not
    kept: int  # how many these are

    @classmethod
    def of(cls, settings: Settings) -> UploadLimits:
        return cls(
            size_bytes=settings.upload_bytes_max,
            in_flight=settings.uploads_in_flight,
            unclaimed_bytes=settings.unclaimed_bytes_max,
            kept_bytes=settings.uploaded_bytes_max,
            kept=settings.uploads_kept_max,
        )


class Account:
    """What one tenant has uploaded: as last counted in storage, since then, and on the way."""

    def __init__(self) -> None:
        self.counted_at: datetime | None = None
        self.counted = Charges()
        self.counting = asyncio.Lock()
        self.stored: dict[str, int] = {}
        self.claimed: dict[str, int] = {}  # of those that were stored since
        self.flying: dict[str, int] = {}

    @property
    def charges(self) -> Charges:
        waiting_bytes = sum(self.stored.values()) + sum(map(charge_bytes, self.flying.values()))
        kept = len(self.stored) + len(self.flying) + len(self.claimed)
        since = Charges(waiting_bytes, waiting_bytes + sum(self.claimed.values()), kept)
        return self.counted.plus(since)

    def is_old(self, now: datetime) -> bool:
        return self.counted_at is None or now - self.counted_at > COUNTED_FOR


class UploadAccounts:
    def __init__(self, objects: Objects, store_clock: StoreClock, limits: UploadLimits) -> None:
        self._objects = objects
        self._store_clock = store_clock
        self._limits = limits
        self._counts = asyncio.Semaphore(COUNTS_MAX)
        self.by_tenant: dict[TenantId, Account] = {}

    async def account(self, tenant: TenantId) -> Account:
        account = self.by_tenant.setdefault(tenant, Account())
        now = self._store_clock.now()
        if account.is_old(now):
            async with account.counting:  # who comes meanwhile has the same count
                if account.is_old(now):
                    async with self._counts:
                        await self._count(tenant, account, now)
        return account

    async def _count(self, tenant: TenantId, account: Account, now: datetime) -> None:
        known = [*account.stored, *account.claimed]
        counted = Charges()
        for back in range(KEPT_DAYS):
            day = day_of(now - timedelta(days=back))
            counted = counted.plus(await self._objects.tally(f"uploads/{day}/{tenant}", charges_of))
        account.counted, account.counted_at = counted, now
        for upload in known:  # they are in storage now
            account.stored.pop(upload, None)
            account.claimed.pop(upload, None)

    def check_room(self, account: Account, size_bytes: int, *, more: int = 1) -> None:
        """LimitReached when the tenant has uploaded as much as it may, or as many."""
        more_bytes = charge_bytes(size_bytes)
        unclaimed_bytes, kept_bytes, kept = account.charges
        if unclaimed_bytes + more_bytes > self._limits.unclaimed_bytes:
            raise _no_room_for_bytes(
                f"{unclaimed_bytes} bytes of uploads wait for their jobs",
                self._limits.unclaimed_bytes,
                "Submit their jobs; what no job comes for is removed after",
            )
        if kept_bytes + more_bytes > self._limits.kept_bytes:
            raise _no_room_for_bytes(
                f"{kept_bytes} bytes of your uploads are kept, with those that have their jobs",
                self._limits.kept_bytes,
                "Upload less, or smaller ones: an upload is kept for",
            )
        if kept + more > self._limits.kept:
            raise _no_room(
                f"{kept} of your uploads are kept, with those that have their jobs; there may be"
                f" {self._limits.kept}. Upload fewer, and send small payloads with their jobs: an"
                " upload is kept for"
            )


def _no_room_for_bytes(there_are: str, limit_bytes: int, advice: str) -> LimitReached:
    return _no_room(
        f"{there_are}, each counted as {CHARGE_BYTES_MIN} at least; with one more they would pass"
        f" the limit of {limit_bytes}. {advice}"
    )


def _no_room(sentence: str) -> LimitReached:
    return LimitReached(
        f"{sentence} {KEPT_DAYS} days.", code="UPLOAD_QUOTA_EXCEEDED", retry_after_seconds=60
    )
