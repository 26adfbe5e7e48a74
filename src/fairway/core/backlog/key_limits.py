"""Limits that a tenant sets itself: so many runs of one key at once, or so many starts in a while.

A key is a text of the tenant's own, made of a job type, an argument or both; keys of two tenants
have nothing to do with each other. A job carries its limits, packed, from its submission on; one
without any carries nothing. Each job is held to its own number: of two that name one key, the one
that says 3 starts while two run, and the one that says 1 waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from fairway.core.backlog.start_rates import StartRates
from fairway.core.ids import TenantId

LIMITS_PER_JOB = 4
KEY_CHARACTERS_MAX = 255
UNPACKED_KEPT = 16_384  # ten thousand keys at a time cost no more than one
UNPACKED_BYTES_MAX = 256  # longer ones are taken apart each time: what is kept has a bound
NO_PLACE = 1 << 62  # more than anybody may use

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


UNPACKED: dict[bytes, Limits] = {}  # those asked for of late; a look here spares a call a job


def unpack(packed: bytes) -> Limits:
    found = UNPACKED.get(packed)
    if found is not None:
        return found
    limits = _decode(packed)
    if len(packed) <= UNPACKED_BYTES_MAX:
        if len(UNPACKED) >= UNPACKED_KEPT:
            UNPACKED.clear()  # to keep the order of use would cost every job more than this
        UNPACKED[packed] = limits
    return limits


class KeyCounts:
    """How many runs of each key go on, of keys with any, and how many started of late."""

    def __init__(self) -> None:
        self._running: dict[TenantId, dict[str, int]] = {}  # by key, of tenants with any
        self.rates = StartRates()

    def used(self, name: KeyName, now_us: int) -> int:
        """How many places of a key are taken; of a rate that is closed, more than there are."""
        tenant, key, per_ms = name
        if per_ms:
            return self.rates.used(tenant, (key, per_ms), NO_PLACE, now_us)
        return self._running.get(tenant, _NONE).get(key, 0)

    def full(self, tenant: TenantId, limits: Iterable[KeyLimit], now_us: int) -> KeyLimit | None:
        """The first that has no place left."""
        mine = self._running.get(tenant, _NONE)
        for limit in limits:
            if limit.per_ms:
                rate = (limit.key, limit.per_ms)
                used = self.rates.used(tenant, rate, limit.most, now_us)
            else:
                used = mine.get(limit.key, 0)
            if used >= limit.most:
                return limit
        return None

    def start(self, tenant: TenantId, limits: Limits, now_us: int) -> KeyLimit | None:
        """Count one more if each has a place; otherwise answers the first that has none."""
        if len(limits) == 1:  # as a rule: one look for both
            (limit,) = limits
            if limit.per_ms:
                rate = (limit.key, limit.per_ms)
                return None if self.rates.start(tenant, rate, limit.most, now_us) else limit
            mine = self._running.get(tenant)
            if mine is None:
                mine = self._running[tenant] = {}
            key = limit.key
            used = mine.get(key, 0)
            if used >= limit.most:
                return limit
            mine[key] = used + 1
            return None
        full = self.full(tenant, limits, now_us)
        if full is None:
            self.started(tenant, limits, now_us)
        return full

    def started(self, tenant: TenantId, limits: Iterable[KeyLimit], now_us: int) -> None:
        for limit in limits:
            if limit.per_ms:
                self.rates.started(tenant, (limit.key, limit.per_ms), now_us)
            elif (mine := self._running.get(tenant)) is None:
                self._running[tenant] = {limit.key: 1}
            else:
                mine[limit.key] = mine.get(limit.key, 0) + 1

    def ended(self, tenant: TenantId, limits: Iterable[KeyLimit]) -> None:
        """Starts stay what they were."""
        mine = self._running.get(tenant)
        if mine is None:
            return
        for limit in limits:
            if limit.per_ms:
                continue
            key = limit.key
            left = mine.get(key, 0) - 1
            if left > 0:
                mine[key] = left
            else:
                mine.pop(key, None)
        if not mine:
            del self._running[tenant]


_NONE: dict[str, int] = {}
