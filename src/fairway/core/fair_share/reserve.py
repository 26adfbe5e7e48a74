"""Reserved slots: kept for their owner even while idle, except for loans of bounded length.

When the pool is smaller than all reservations, each shrinks in proportion. The reserve counts;
it neither picks jobs nor charges for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.core.fair_share.queue import ShareNode
from fairway.core.ids import TenantId


class Reserve:
    """All reservations of one pool."""

    def __init__(self) -> None:
        self.total = 0  # slots reserved, after shrinking
        self.idle = 0  # of those, free for their owner at this moment
        self.lent = 0
        self.open: dict[TenantId, ShareNode] = {}  # owners with work and room, by tenant
        self._promised: dict[TenantId, int] = {}
        self._granted: dict[TenantId, int] = {}
        self._running: dict[TenantId, int] = {}

    def set_promise(self, tenant: TenantId, slots: int, capacity: int) -> bool:
        """Whether that changed anything."""
        if self._promised.get(tenant, 0) == slots:
            return False
        self._promised[tenant] = slots
        self.fit(capacity)
        return True

    def fit(self, capacity: int) -> None:
        promised = sum(self._promised.values())
        if promised <= capacity:
            self._granted = dict(self._promised)
        else:
            self._granted = {t: s * capacity // promised for t, s in self._promised.items()}
        self.total = sum(self._granted.values())
        self.idle = sum(self.room(tenant) for tenant in self._granted)

    def owners(self) -> Iterable[TenantId]:
        return self._promised

    def room(self, tenant: TenantId) -> int:
        return max(0, self._granted.get(tenant, 0) - self._running.get(tenant, 0))

    def review(self, node: ShareNode) -> None:
        """Keep `open` true to the node's state."""
        tenant = node.tenant
        if tenant in self._granted and node.eligible and self.room(tenant) and not node.aside:
            self.open[tenant] = node
        else:
            self.open.pop(tenant, None)

    def start(self, node: ShareNode) -> None:
        tenant = node.tenant
        if self.room(tenant):
            self.idle -= 1
        self._running[tenant] = self._running.get(tenant, 0) + 1

    def end(self, node: ShareNode) -> None:
        tenant = node.tenant
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        if self.room(tenant):
            self.idle += 1
