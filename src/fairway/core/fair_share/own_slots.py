"""How many slots the own workers of each tenant offer: as many as one tenant may fill with leases.

Every lease is kept in memory while it stands, and a tenant's own worker says itself how many it can
hold. What shared workers offer is the operators' affair.
"""

from __future__ import annotations

from collections import Counter

TENANT_SLOTS_MAX = 10_000  # of all its own workers together


class OwnSlots:
    def __init__(self) -> None:
        self._of_session: dict[str, tuple[int, int]] = {}  # session → tenant, slots
        self._of_tenant: Counter[int] = Counter()

    def of(self, tenant: int) -> int:
        return self._of_tenant[tenant]

    def offer(self, session: str, tenant: int, slots: int) -> bool:
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
        tenant, slots = self._of_session.pop(session, (0, 0))
        self._of_tenant[tenant] -= slots
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]
