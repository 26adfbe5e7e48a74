"""Limits that a tenant sets itself: so many runs of one key at once.

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

from fairway.core.ids import TenantId

LIMITS_PER_JOB = 4
KEY_CHARACTERS_MAX = 255
UNPACKED_KEPT = 4_096  # most jobs that go out in a moment share a few

KeyName: TypeAlias = tuple[TenantId, str]


class KeyLimit(Struct, frozen=True, array_like=True, gc=False):
    """At most so many runs with this key at once."""

    key: str
    most: int


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
    """How many runs of each key go on, of keys with any."""

    def __init__(self) -> None:
        self._running: dict[KeyName, int] = {}

    def running(self, name: KeyName) -> int:
        return self._running.get(name, 0)

    def room(self, name: KeyName, limit: KeyLimit) -> int:
        """How many more with this limit may start; none while others run beyond it."""
        return max(limit.most - self.running(name), 0)

    def full(self, tenant: TenantId, limits: Iterable[KeyLimit]) -> KeyLimit | None:
        """The first that has no place left."""
        running = self._running
        for limit in limits:
            if running.get((tenant, limit.key), 0) >= limit.most:
                return limit
        return None

    def started(self, tenant: TenantId, limits: Iterable[KeyLimit]) -> None:
        for limit in limits:
            name = (tenant, limit.key)
            self._running[name] = self._running.get(name, 0) + 1

    def ended(self, tenant: TenantId, limits: Iterable[KeyLimit]) -> None:
        for limit in limits:
            name = (tenant, limit.key)
            left = self._running.get(name, 0) - 1
            if left > 0:
                self._running[name] = left
            else:
                self._running.pop(name, None)
