"""What goes first, for one grant of many jobs: what was looked at for one job serves the next."""

from __future__ import annotations

import heapq
from collections.abc import Set

from fairway.core.backlog.lane_order import LaneOrder
from fairway.core.backlog.lane_types import Leads
from fairway.core.backlog.priority import FEW_STREAMS, StreamGroup, first_of, rank_of
from fairway.core.backlog.streams import Stream
from fairway.core.ids import TypeId


class Firsts:
    """`first_of` for one grant of many jobs: all streams of a group are looked at twice at most.

    While it is used, jobs only leave the windows, from their heads: so ranks only grow.
    """

    def __init__(self, types: Set[TypeId]) -> None:
        self.types = types
        # of tenants with lanes, by the order of those that wait; None: it runs all their types
        self.leads: dict[LaneOrder, Leads | None] = {}
        self._heaps: dict[StreamGroup, list[tuple[int, int, Stream]] | None] = {}

    def of(self, group: StreamGroup) -> Stream | None:
        if len(group) <= FEW_STREAMS:
            return first_of(group, self.types)
        if group not in self._heaps:  # mostly one job is taken, and that is that
            self._heaps[group] = None
            return first_of(group.of_types(self.types), self.types)
        heap = self._heaps[group]
        if heap is None:
            heap = self._heaps[group] = [
                (rank_of(stream), index, stream)
                for index, stream in enumerate(group.of_types(self.types))
                if stream.window and stream.type in self.types
            ]
            heapq.heapify(heap)
        return _top(heap)


def _top(heap: list[tuple[int, int, Stream]]) -> Stream | None:
    while heap:
        rank, index, stream = heap[0]
        if not stream.window:
            heapq.heappop(heap)
        elif (grown := rank_of(stream)) != rank:
            heapq.heapreplace(heap, (grown, index, stream))
        else:
            return stream
    return None
