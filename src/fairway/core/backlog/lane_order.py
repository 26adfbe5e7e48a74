"""Lanes in the order of the slot-time they have had."""

from __future__ import annotations

import heapq

from fairway.core.backlog.lane import Lane

OLD_ENTRIES = 8  # that are kept beyond a few for each lane


class LaneOrder:
    """Some of a tenant's lanes; `least` is the one that costs the least now."""

    __slots__ = ("_heap", "marks")

    def __init__(self) -> None:
        self.marks: dict[int, int] = {}  # lane → its newest entry in the heap
        self._heap: list[tuple[int, int]] = []  # (cost when it was put there, lane)

    def __len__(self) -> int:
        """Entries, old ones included."""
        return len(self._heap)

    def put(self, number: int, cost_us: int) -> None:
        """Also when it costs less than before; one that costs more is met when it comes up."""
        self.marks[number] = cost_us
        heapq.heappush(self._heap, (cost_us, number))
        if len(self._heap) > 4 * len(self.marks) + OLD_ENTRIES:  # some never come up
            self._heap = [(mark_us, lane) for lane, mark_us in self.marks.items()]
            heapq.heapify(self._heap)

    def least(self, lanes: dict[int, Lane], now_us: int) -> tuple[int, int] | None:
        """Cost and lane; entries are brought up to date as they come up."""
        heap, marks = self._heap, self.marks
        while heap:
            entry = heap[0]
            mark_us, number = entry
            if marks.get(number) != mark_us:
                heapq.heappop(heap)  # an old entry
                continue
            cost_us = lanes[number].cost_us(now_us)
            if cost_us <= mark_us:
                return entry
            marks[number] = cost_us
            heapq.heapreplace(heap, (cost_us, number))
        return None
