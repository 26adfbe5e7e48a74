"""A heap of entries of which many are stale, and how they go without a pause.

An entry is a virtual time that ends with its tenant. When there are too many stale ones, the heap
is given up: what lives in it is carried over to a new one, a few entries with each call, so no call
pays for all of them. The last entry of a heap may be taken at any time: what is left is a heap.
Whoever decides looks at both, for the smallest entry may be in either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappush
from typing import Protocol

from fairway.core.fair_share.virtual_time import TENANT_MASK

STALE_SLACK = 64
CARRIED = 8  # entries at a time: more than a call adds, so it comes to an end


class Entered(Protocol):
    """Whose entries these are."""

    key: int  # its live entry
    held: bool  # it is not among these
    carried: int  # in which round its entry was last carried over


class Entries:
    __slots__ = ("_nodes", "_round", "heap", "rest")

    def __init__(self, nodes: Mapping[int, Entered]) -> None:
        self._nodes = nodes  # by what a key ends with
        self.heap: list[int] = []
        self.rest: list[int] = []  # a heap that is given up, until all of it is carried over
        self._round = 0  # how many were

    def tidy(self, living: int) -> None:
        """Get rid of a few stale entries, if they outnumber those of so many that live."""
        rest = self.rest
        if rest:
            for _ in range(min(CARRIED, len(rest))):
                self.carry(rest.pop())
        elif len(self.heap) > 2 * living + STALE_SLACK:
            rest.extend(self.heap)
            self.heap.clear()
            self._round += 1

    def carry(self, key: int) -> None:
        """Into the heap, unless it is stale, or a second one of the same key."""
        node = self._nodes.get(key & TENANT_MASK)
        if node is not None and node.key == key and not node.held and node.carried != self._round:
            node.carried = self._round
            heappush(self.heap, key)

    def before(self, v: int) -> int:
        """How many others have a live entry that is smaller than this, which is somebody's own."""
        mine, nodes = v & TENANT_MASK, self._nodes
        smaller = {key for keys in (self.heap, self.rest) for key in keys if key < v}
        others = (
            (key, nodes.get(key & TENANT_MASK)) for key in smaller if key & TENANT_MASK != mine
        )
        return sum(node is not None and node.key == key for key, node in others)


def living(keys: Iterable[int], nodes: Mapping[int, Entered]) -> set[int]:
    """Of entries of those that are held, those that are not stale."""
    found = ((key, nodes.get(key & TENANT_MASK)) for key in keys)
    return {key for key, node in found if node and node.key == key and node.held}
