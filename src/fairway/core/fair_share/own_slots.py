"""How many slots the own workers of each tenant offer: as many as one tenant may fill with leases.

Every lease is kept in memory while it stands, and a tenant's own worker says itself how many it can
hold. What shared workers offer is the operators' affair.
"""

from __future__ import annotations

from collections import Counter

from fairway.core.ids import TenantId

TENANT_SLOTS_MAX = 10_000  # of all its own workers together
_NOTHING = (TenantId(0), 0)


class OwnSlots:
    def __init__(self) -> None:
        self._of_session: dict[str, tuple[TenantId, int]] = {}  # session → tenant, slots
        self._of_tenant: Counter[TenantId] = Counter()

    def of(self, tenant: TenantId) -> int:
        return self._of_tenant[tenant]

    def offer(self, session: str, tenant: TenantId, slots: int) -> bool:
        """Count these in place of what it offered before; False, and no change: too many."""
        before = self._of_session.get(session, (tenant, 0))
        others = self._of_tenant[tenant] - (before[1] if before[0] == tenant else 0)
        if others + slots > TENANT_SLOTS_MAX:
            return False
        self.forget(session)
        if slots:
            self._of_session[session] = (tenant, slots)
            self._of_tenant[tenant] += slots
        return True

    def forget(self, session: str) -> None:
        tenant, slots = self._of_session.pop(session, _NOTHING)
        self._of_tenant[tenant] -= slots
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]
