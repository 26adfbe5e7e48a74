"""Whose job the next shared slot runs: floors, then weights, then free work.

A tenant that has nothing for the asking worker is set aside until the end of that worker's grant;
its turn is kept. The choice charges nobody.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.core.fair_share.competitors import Competitors
from fairway.core.fair_share.queue import ShareNode


class Choice:
    """Chooses nodes for one pool, one slot after the other."""

    def __init__(self, competitors: Competitors) -> None:
        self._competitors = competitors
        self.by_floor = False  # how the node chosen last was found
        self.asides: list[ShareNode] = []

    def chooser(self) -> Callable[[int], ShareNode | None]:
        """Where nobody has a floor or is free, weights alone decide: skip the other questions."""
        self.by_floor = False
        competitors = self._competitors
        weights_decide = competitors.floors.settled and not competitors.free.eligible
        return competitors.paid.pick if weights_decide else self.choose

    def choose(self, now_us: int) -> ShareNode | None:
        node = self._choose_by_floor(now_us)
        if node is not None:
            self.by_floor = True
            return node
        self.by_floor = False
        return self._choose_by_weight(now_us)

    def _choose_by_floor(self, now_us: int) -> ShareNode | None:
        competitors = self._competitors
        if not competitors.floors.settled and (node := competitors.floors.neediest()) is not None:
            return node
        if competitors.group.running < competitors.free_floor:
            return self._choose_free(now_us)
        return None

    def _choose_by_weight(self, now_us: int) -> ShareNode | None:
        competitors = self._competitors
        node = competitors.paid.pick(now_us)
        if node is None:
            return self._choose_free(now_us) if self._may_expand() else None
        if node is not competitors.group:
            return node
        child = self._choose_free(now_us)
        if child is None:
            # Its children have nothing for this worker: the group steps aside with them.
            self.set_aside(node)
            return self._choose_by_weight(now_us)
        return child

    def _choose_free(self, now_us: int) -> ShareNode | None:
        return self._competitors.free.pick(now_us) if self._competitors.free.eligible else None

    def _may_expand(self) -> bool:
        """No paid tenant has work a worker could run: free work may leave its slice."""
        competitors = self._competitors
        return (
            competitors.group.running * 1000
            < competitors.paid.slots * competitors.settings.free_ceiling_share
        )

    # ---- nothing for this worker

    def set_aside(self, node: ShareNode) -> None:
        node.aside = True
        self.asides.append(node)
        node.queue.withdraw(node)
        node.floor_key = None
        self._competitors.reserve.review(node)

    def put_back(self) -> None:
        for node in self.asides:
            node.aside = False
            node.queue.put_back(node)
            if node.eligible and node.parent is None:
                if node.floor_share:
                    self._competitors.floors.offer(node)
                self._competitors.reserve.review(node)
        self.asides.clear()
