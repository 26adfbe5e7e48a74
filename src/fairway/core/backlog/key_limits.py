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
from fairway.core.job import QueuedJob

LIMITS_PER_JOB = 4
KEY_CHARACTERS_MAX = 255
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


def pack(limits: Sequence[KeyLimit]) -> bytes:
    """As a row and a `QueuedJob` carry them."""
    return _encode(limits)


#: Its limits, of what a job carries. Nothing of it is kept: to find it again among ten thousand
#: others takes three times as long as to take it apart.
unpack = msgspec.json.Decoder(Limits).decode


class KeyCounts:
    """How many runs of each key go on, of keys with any, and how many started of late."""

    def __init__(self) -> None:
        self.running: dict[TenantId, dict[str, int]] = {}  # by key, of tenants with any
        self.key_of: dict[str, str] = {}  # job → what its run counts under, if that is one key
        self.keys_of: dict[str, list[str]] = {}  # the same of those that count under several
        self.rates = StartRates()

    def used(self, name: KeyName, now_us: int) -> int:
        """How many places of a key are taken; of a rate that is closed, more than there are."""
        tenant, key, per_ms = name
        if per_ms:
            return self.rates.used(tenant, (key, per_ms), NO_PLACE, now_us)
        return self.running.get(tenant, _NONE).get(key, 0)

    def full(self, tenant: TenantId, limits: Iterable[KeyLimit], now_us: int) -> KeyLimit | None:
        """The first that has no place left."""
        mine = self.running.get(tenant, _NONE)
        for limit in limits:
            if limit.per_ms:
                rate = (limit.key, limit.per_ms)
                used = self.rates.used(tenant, rate, limit.most, now_us)
            else:
                used = mine.get(limit.key, 0)
            if used >= limit.most:
                return limit
        return None

    def start(self, job: QueuedJob, limits: Limits, now_us: int) -> KeyLimit | None:
        """Count one more if each has a place; otherwise answers the first that has none."""
        full = self.full(job.tenant, limits, now_us)
        if full is None:
            self.started(job, limits, now_us)
        return full

    def started(self, job: QueuedJob, limits: Iterable[KeyLimit], now_us: int) -> None:
        if job.id in self.key_of or job.id in self.keys_of:
            return
        for limit in limits:
            if limit.per_ms:
                self.rates.started(job.tenant, (limit.key, limit.per_ms), now_us)
        keys = [limit.key for limit in limits if not limit.per_ms]
        if len(keys) == 1:
            self.key_of[job.id] = keys[0]
        elif keys:
            self.keys_of[job.id] = keys
        if keys:
            mine = self.running.setdefault(job.tenant, {})
            for key in keys:
                mine[key] = mine.get(key, 0) + 1

    def ended(self, job: QueuedJob) -> Sequence[str]:
        """Answers the keys that have a place more; starts stay what they were."""
        key = self.key_of.pop(job.id, None)
        keys = self.keys_of.pop(job.id, ()) if key is None else (key,)
        if not keys:
            return ()
        mine = self.running[job.tenant]
        for one in keys:
            left = mine[one] - 1
            if left:
                mine[one] = left
            else:
                del mine[one]
        if not mine:
            del self.running[job.tenant]
        return keys


_NONE: dict[str, int] = {}
