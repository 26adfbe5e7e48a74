"""Who may call now: so many webhooks at a time, and whoever does not answer is in nobody's way.

Each call of a webhook's turn begins in the quick room. One that is not answered within a moment
moves to the slow room, and so does a webhook that failed the last time, from the start. What is in
the slow room takes no place in the quick one: however many receivers never answer, those that do
are called at once. When the slow room is full, whoever would move there is cut short.

Counts alone: no clock, no waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import NamedTuple

from fairway.core.ids import TenantId


class Limits(NamedTuple):
    quick: int = 256
    quick_per_tenant: int = 4
    slow: int = 512
    slow_per_tenant: int = 4


class Room:
    """Places for webhooks, so many in all and of one tenant."""

    def __init__(self, in_all: int, per_tenant: int) -> None:
        self._in_all = in_all
        self._per_tenant = per_tenant
        self._tenant_of: dict[str, TenantId] = {}
        self._taken: Counter[TenantId] = Counter()

    def enter(self, webhook: str, tenant: TenantId) -> bool:
        if len(self._tenant_of) >= self._in_all or self._taken[tenant] >= self._per_tenant:
            return False
        self._tenant_of[webhook] = tenant
        self._taken[tenant] += 1
        return True

    def leave(self, webhook: str) -> None:
        tenant = self._tenant_of.pop(webhook, None)
        if tenant is None:
            return
        self._taken[tenant] -= 1
        if not self._taken[tenant]:
            del self._taken[tenant]

    @property
    def free(self) -> int:
        return self._in_all - len(self._tenant_of)

    def has(self, webhook: str) -> bool:
        return webhook in self._tenant_of

    def full_tenants(self) -> Set[TenantId]:
        return {one for one, count in self._taken.items() if count >= self._per_tenant}


class Turns:
    def __init__(self, limits: Limits) -> None:
        self.quick = Room(limits.quick, limits.quick_per_tenant)
        self.slow = Room(limits.slow, limits.slow_per_tenant)
        self._busy: set[str] = set()

    @property
    def busy(self) -> Set[str]:
        """Webhooks whose turn it is."""
        return self._busy

    def begin(self, webhook: str, tenant: TenantId, *, is_failing: bool) -> bool:
        """Whether its turn begins; one that is failing goes where it is in nobody's way."""
        if webhook in self._busy:
            return False
        room = self.slow if is_failing else self.quick
        if not room.enter(webhook, tenant):
            return False
        self._busy.add(webhook)
        return True

    def slowed(self, webhook: str, tenant: TenantId) -> bool:
        """It has not answered for a moment; False: there is no place to wait for it."""
        if self.slow.has(webhook):
            return True
        self.quick.leave(webhook)
        return self.slow.enter(webhook, tenant)

    def end(self, webhook: str) -> None:
        self._busy.discard(webhook)
        self.quick.leave(webhook)
        self.slow.leave(webhook)
