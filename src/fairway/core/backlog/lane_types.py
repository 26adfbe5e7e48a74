"""The lanes of a tenant by the types of jobs they wait with, for workers that do not run them all.

Such a worker looks only at the orders of the types it runs: of a thousand lanes with nothing for
it, at none. A lane stands in as many orders as it has types, so a cost that changes is not told to
all of them: one that grew is met when it comes up, and of one that fell every order learns when it
is asked next (`Eased`).
"""

from __future__ import annotations

from collections.abc import Collection

from fairway.core.backlog.lane import Lane
from fairway.core.backlog.lane_order import OLD_ENTRIES, LaneOrder
from fairway.core.backlog.streams import Stream
from fairway.core.ids import TypeId

FEW_ORDERS = 8  # are asked one after the other


class Eased:
    """Lanes that cost less than before, one after the other. Bounded: then orders start anew."""

    __slots__ = ("lanes", "round")

    def __init__(self) -> None:
        self.lanes: list[int] = []
        self.round = 0

    def note(self, number: int, most: int) -> None:
        if len(self.lanes) >= most:
            self.lanes.clear()
            self.round += 1
        self.lanes.append(number)


class TypeOrder(LaneOrder):
    """The lanes that may have jobs of one type."""

    __slots__ = ("_eased", "_heard", "_round")

    def __init__(self, eased: Eased) -> None:
        super().__init__()
        self._eased = eased
        self._round, self._heard = eased.round, len(eased.lanes)

    def least(self, lanes: dict[int, Lane], now_us: int) -> tuple[int, int] | None:
        eased = self._eased
        if self._heard != len(eased.lanes) or self._round != eased.round:
            self._hear(lanes, now_us)
        return super().least(lanes, now_us)

    def _hear(self, lanes: dict[int, Lane], now_us: int) -> None:
        eased, marks = self._eased, self.marks
        if self._round != eased.round:
            news = list(marks)
        else:
            news = [number for number in eased.lanes[self._heard :] if number in marks]
        self._round, self._heard = eased.round, len(eased.lanes)
        for number in news:
            if (fell_to_us := lanes[number].cost_us(now_us)) < marks[number]:
                self.put(number, fell_to_us)


class Leads:
    """Which of a worker's lanes goes first, for one grant: costs only grow while it is made.

    What one lane takes makes it dearer in the order of each of its types: in a grant of many jobs
    many orders become one.
    """

    __slots__ = ("_orders", "_was_asked", "order")

    def __init__(self, orders: list[LaneOrder]) -> None:
        self._orders = orders
        self._was_asked = False
        self.order: LaneOrder | None = None  # that the last answer was of

    def first(self, lanes: dict[int, Lane], now_us: int) -> tuple[int, int] | None:
        """Cost and lane; None: none has a job that the worker can run."""
        if self._was_asked and len(self._orders) > FEW_ORDERS:
            self._orders = [self._all_in_one(lanes, now_us)]
        self._was_asked = True
        best: tuple[int, int] | None = None
        for order in self._orders:
            lead = order.least(lanes, now_us)
            if lead is not None and (best is None or lead < best):
                best, self.order = lead, order
        return best

    def take_out(self, number: int) -> None:
        """The lane that was answered has no jobs of its order's type."""
        if self.order is not None:
            self.order.marks.pop(number, None)

    def _all_in_one(self, lanes: dict[int, Lane], now_us: int) -> LaneOrder:
        whole = LaneOrder()
        for number in set[int]().union(*[order.marks for order in self._orders]):
            whole.put(number, lanes[number].cost_us(now_us))
        return whole


class LaneTypes:
    """All lanes of a tenant that wait, by type, and those that wait with nothing in memory."""

    def __init__(self, lanes: dict[int, Lane], waiting: Collection[int]) -> None:
        self._lanes = lanes
        self._eased = Eased()
        self._orders: dict[TypeId, TypeOrder] = {}
        self._full: dict[int, set[Stream]] = {}  # lane → at least its streams with jobs
        self.hollow = TypeOrder(self._eased)  # to be found idle when their turn comes
        for number in waiting:
            for stream in lanes[number].streams:
                if stream.window:
                    self.wake(stream, 0)  # costs are brought up to date as they come up
            self._look_into(number)

    def leads(self, types: Collection[TypeId]) -> Leads:
        orders = self._orders
        if len(orders) <= len(types):
            return Leads([order for type_, order in orders.items() if type_ in types])
        return Leads([orders[type_] for type_ in types if type_ in orders])

    def wake(self, stream: Stream, now_us: int) -> None:
        number, order = stream.key.lane, self._orders.get(stream.type)
        self._full.setdefault(number, set()).add(stream)
        self.hollow.marks.pop(number, None)
        if order is None:
            order = self._orders[stream.type] = TypeOrder(self._eased)
        if number not in order.marks:
            order.put(number, self._lanes[number].cost_us(now_us))

    def eased(self, number: int) -> None:
        self._eased.note(number, len(self._lanes) + OLD_ENTRIES)

    def drop(self, stream: Stream) -> None:
        """Its lane has it no more."""
        number, order = stream.key.lane, self._orders.get(stream.type)
        streams = self._lanes[number].streams
        if order is not None and not streams.has(stream.type):
            order.marks.pop(number, None)
            if not order.marks:
                del self._orders[stream.type]
        if number in self._full:
            self._full[number].discard(stream)

    def forget(self, number: int) -> None:
        """The lane has no streams."""
        self._full.pop(number, None)
        self.hollow.marks.pop(number, None)

    def drained(self, number: int) -> None:
        """A lane that waits has a stream without jobs now."""
        if number not in self.hollow.marks:
            self._look_into(number)

    def _look_into(self, number: int) -> None:
        """Each stream that ran empty is looked at once."""
        full = self._full.get(number)
        while full:
            stream = full.pop()
            if stream.window:
                full.add(stream)
                return
        self.hollow.put(number, 0)
