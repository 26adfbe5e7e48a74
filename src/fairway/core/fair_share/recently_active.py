"""Who comes and goes: tenants that had work a moment ago and have none now.

Their part of the pool is lent to the others while they are away. Were all of it lent, every one of
their jobs would wait for somebody else's to end; so the last few slots, the headroom, are not lent
to whoever holds more than its part already. Nobody is away from a pool that one tenant uses alone.
"""

from __future__ import annotations

from fairway.core.fair_share.queue import ShareNode
from fairway.core.ids import TenantId

LOOKS_MAX = 1000  # at once


class RecentlyActive:
    def __init__(self, stay_us: int) -> None:
        self.weight = 0  # of those who are away
        self.until_us = 0  # until then somebody comes and goes
        self._stay_us = stay_us
        # tenant → its weight, until when it counts
        self._away: dict[TenantId, tuple[int, int]] = {}

    def left(self, node: ShareNode, now_us: int) -> None:
        self.returned(node)
        self.until_us = now_us + self._stay_us
        self._away[node.tenant] = node.weight, self.until_us
        self.weight += node.weight

    def returned(self, node: ShareNode) -> None:
        if (known := self._away.pop(node.tenant, None)) is not None:
            self.weight -= known[0]

    def sweep(self, now_us: int) -> None:
        """Those that left first are first: looks no further than the one who may stay, nor far."""
        for _ in range(min(len(self._away), LOOKS_MAX)):
            tenant, (weight, until_us) = next(iter(self._away.items()))
            if now_us < until_us:
                return
            del self._away[tenant]
            self.weight -= weight
