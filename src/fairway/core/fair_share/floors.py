"""Floors: the slots a tenant holds at least while it has work, whatever the others weigh.

Floors look at occupancy, never at history: an idle tenant owns nothing. Each is rounded up to a
whole slot; all together they stay within their part of the shared slots, and shrink in proportion
when they would not. Which job runs, and what it costs, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush, heapreplace
from typing import cast

from fairway.core.fair_share.queue import ShareNode
from fairway.core.fair_share.virtual_time import TENANT_MASK
from fairway.core.ids import TenantId

_UNIT = 10**9


class Floors:
    """The eligible nodes that have a floor, most needy first."""

    def __init__(self, nodes: dict[TenantId, ShareNode], max_share: int) -> None:
        self.heap: list[tuple[int, int]] = []
        self.slots = 0
        self.grants = 0
        self.settled = True  # nobody is below its floor, and nothing has changed since
        self._nodes = cast("Mapping[int, ShareNode]", nodes)
        self._max_share = max_share
        self._count = 0
        self._share = 0

    def add(self, node: ShareNode) -> None:
        if node.floor_share:
            self._count += 1
            self._share += node.floor_share
            self.offer(node)

    def remove(self, node: ShareNode) -> None:
        if node.floor_share:
            self._count -= 1
            self._share -= node.floor_share
            node.floor_key = None
            self.settled = False

    def offer(self, node: ShareNode) -> None:
        """The node holds fewer slots than its entry says, or has no entry."""
        key = _need(node)
        if node.floor_key is None or key < node.floor_key:
            node.floor_key = key
            heappush(self.heap, key)
            self.settled = False

    def set_slots(self, slots: int) -> None:
        self.slots = slots
        self.settled = False

    def neediest(self) -> ShareNode | None:
        heap = self.heap
        while heap:
            key = heap[0]
            node = self._nodes.get(key[1] & TENANT_MASK)
            if node is None or node.floor_key != key:
                heappop(heap)
                continue
            fresh = _need(node)
            if fresh != key:
                node.floor_key = fresh
                heapreplace(heap, fresh)
            elif self.below(node):
                return node
            else:
                break
        self.settled = True
        return None

    def below(self, node: ShareNode) -> bool:
        """Holds fewer slots than its floor of now."""
        running, share = node.running, node.floor_share
        # One slot per floor is kept back for the rounding up, so the sum holds to the letter.
        budget = self.slots * self._max_share // 1000 - self._count
        return running * 1000 < self.slots * share and running * self._share < budget * share


def _need(node: ShareNode) -> tuple[int, int]:
    return (node.running * _UNIT // node.floor_share, node.v)
