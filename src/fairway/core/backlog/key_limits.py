"""Limits that a tenant sets itself: so many runs of one key at once, or so many starts in a while.

A key is a text of the tenant's own, made of a job type, an argument or both; keys of two tenants
have nothing to do with each other. A job carries its limits, packed, from its submission on; one
without any carries nothing. Each job is held to its own number: of two that name one key, the one
that says 3 starts while two run, and the one that says 1 waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec
from msgspec import Struct

from fairway.core.backlog.start_rates import StartRates
from fairway.core.ids import TenantId

LIMITS_PER_JOB = 4
KEY_CHARACTERS_MAX = 255
UNPACKED_KEPT = 16_384  # ten thousand keys at a time cost no more than one

KeyName: TypeAlias = tuple[TenantId, str, int]  # whose, which, and the while in milliseconds


class KeyLimit(Struct, frozen=True, array_like=True, gc=False):
    """At most so many runs with this key at once; or starts in any while of this length."""

    key: str
    most: int
    per_ms: int = 0  # 0: at once

    def name(self, tenant: TenantId) -> KeyName:
        return tenant, self.key, self.per_ms


Limits: TypeAlias = tuple[KeyLimit, ...]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Limits).decode


def pack(limits: Sequence[KeyLimit]) -> bytes:
    """As a row and a `QueuedJob` carry them."""
    return _encode(limits)


@lru_cache(maxsize=UNPACKED_KEPT)
def unpack(packed: bytes) -> Limits:
    return _decode(packed)


class KeyCounts:
    """How many runs of each key go on, of keys with any, and how many started of late."""

    def __init__(self) -> None:
        self._running: dict[KeyName, int] = {}
        self.rates = StartRates()

    def used(self, tenant: TenantId, limit: KeyLimit, now_us: int) -> int:
        if limit.per_ms:
            return self.rates.used(tenant, (limit.key, limit.per_ms), limit.most, now_us)
        return self._running.get((tenant, limit.key, 0), 0)

    def full(self, tenant: TenantId, limits: Iterable[KeyLimit], now_us: int) -> KeyLimit | None:
        """The first that has no place left."""
        for limit in limits:
            if limit.per_ms:
                used = self.used(tenant, limit, now_us)
            else:  # at hand: it is asked for with every job
                used = self._running.get((tenant, limit.key, 0), 0)
            if used >= limit.most:
                return limit
        return None

    def started(self, tenant: TenantId, limits: Iterable[KeyLimit], now_us: int) -> None:
        for limit in limits:
            if limit.per_ms:
                self.rates.started(tenant, (limit.key, limit.per_ms), now_us)
            else:
                name = (tenant, limit.key, 0)
                self._running[name] = self._running.get(name, 0) + 1

    def ended(self, tenant: TenantId, limits: Iterable[KeyLimit]) -> None:
        """Starts stay what they were."""
        for limit in limits:
            if limit.per_ms:
                continue
            name = (tenant, limit.key, 0)
            left = self._running.get(name, 0) - 1
            if left > 0:
                self._running[name] = left
            else:
                self._running.pop(name, None)
