"""Nodes of one queue that have nothing to do, those whose debt is over first in front.

A node is forgotten when its queue's virtual time has passed its own: waking makes it anew at the
same place. A hundred thousand tenants may owe something at the same time, so nobody walks over all
of them: a look ends at the first that still owes.
"""

from __future__ import annotations

from heapq import heappop, heappush

from fairway.core.fair_share.queue import ABSENT, ShareNode, ShareQueue
from fairway.core.fair_share.virtual_time import TENANT_MASK
from fairway.core.ids import TenantId

LOOKS_MIN, LOOKS_SHARE = 64, 64  # at least so many at a look, or that part of all: under 1 ms


class IdleNodes:
    def __init__(self, nodes: dict[TenantId, ShareNode], queue: ShareQueue) -> None:
        self._nodes = nodes
        self._queue = queue
        self._heap: list[int] = []  # of v; entries of nodes that have worked since are stale

    def add(self, node: ShareNode) -> None:
        if node.idle_key != node.v:
            node.idle_key = node.v
            heappush(self._heap, node.v)

    def take_settled(self) -> list[ShareNode]:
        """Some of those whose debt is over by what they owed when they came; they leave here."""
        heap, present, found = self._heap, self._queue.v, list[ShareNode]()
        for _ in range(LOOKS_MIN + len(heap) // LOOKS_SHARE):
            if not heap or heap[0] - (heap[0] & TENANT_MASK) > present:
                break
            key = heappop(heap)
            node = self._nodes.get(TenantId(key & TENANT_MASK))
            if node is not None and node.idle_key == key:
                node.idle_key = ABSENT
                found.append(node)
        return found
