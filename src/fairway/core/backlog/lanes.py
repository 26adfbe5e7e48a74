"""Lanes: how one tenant's part of a pool is shared out between its own customers.

A job's `fair_key` names a customer of the tenant; its hash is the job's lane, and jobs without one
are in lane 0. The lane that has had the least slot-time goes next; what runs counts while it runs.
A lane that was idle saves up nothing. Tenants without keys have no lanes and pay nothing for this.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Set

from fairway.core.backlog.firsts import Firsts
from fairway.core.backlog.lane import PREPAID_US as PREPAID_US
from fairway.core.backlog.lane import Lane
from fairway.core.backlog.lane_order import LaneOrder
from fairway.core.backlog.lane_types import LaneTypes, Leads
from fairway.core.backlog.streams import Stream
from fairway.core.ids import TypeId

NOT_ASKED = Leads([])
SORT_STREAMS = 256  # so many are sorted by type in good time: nobody waits while more are
LANES_MAX = 1_023  # beyond 0; customers whose keys fall together share a lane


def lane_of(fair_key: str | None) -> int:
    """The lane of a key: the same on every server, for ever."""
    return 1 + zlib.crc32(fair_key.encode()) % LANES_MAX if fair_key else 0


class LaneShare:
    """The lanes of one tenant in one pool."""

    def __init__(self) -> None:
        self.lanes: dict[int, Lane] = {}
        self._waiting = LaneOrder()  # had jobs when they were looked at last
        self._streams_of: Counter[TypeId] = Counter()  # by job type
        self._streams_count = 0
        self._by_type: LaneTypes | None = None  # once a worker came that does not run all types
        self._floor_us = 0  # the cost of the lane that went last: where one that wakes up starts

    def add(self, stream: Stream) -> None:
        self.lanes.setdefault(stream.key.lane, Lane()).streams.add(stream)
        self._streams_of[stream.type] += 1
        self._streams_count += 1
        if self._streams_count == SORT_STREAMS and self._by_type is None:
            self._by_type = LaneTypes(self.lanes, self._waiting.marks)

    def drop(self, stream: Stream) -> None:
        number = stream.key.lane
        lane = self.lanes[number]
        lane.streams.drop(stream)
        self._streams_of[stream.type] -= 1
        self._streams_count -= 1
        if not self._streams_of[stream.type]:
            del self._streams_of[stream.type]
        if self._by_type is not None:
            self._by_type.drop(stream)
            self.drained(stream)
        is_ahead = lane.spent_us > self._floor_us  # which must not be forgotten
        if not (lane.streams or lane.running or is_ahead):
            self._waiting.marks.pop(number, None)
            if self._by_type is not None:
                self._by_type.forget(number)
            del self.lanes[number]

    def wake(self, stream: Stream, now_us: int) -> None:
        """Jobs came to the stream."""
        number = stream.key.lane
        if number not in self._waiting.marks:
            lane = self.lanes[number]
            cost_us = lane.cost_us(now_us)
            if lane.is_idle and cost_us < self._floor_us:
                lane.spent_us += self._floor_us - cost_us
                cost_us = self._floor_us
            lane.is_idle = False
            self._waiting.put(number, cost_us)
        if self._by_type is not None:
            self._by_type.wake(stream, now_us)

    def drained(self, stream: Stream) -> None:
        """The stream's window is empty now."""
        if self._by_type is not None and stream.key.lane in self._waiting.marks:
            self._by_type.drained(stream.key.lane)

    def next_stream(self, firsts: Firsts, now_us: int) -> Stream | None:
        """The stream to take from: of the lane with the least slot-time that a worker can run."""
        waiting, lanes = self._waiting, self.lanes
        leads = firsts.leads.get(waiting, NOT_ASKED)
        if leads is NOT_ASKED:
            leads = firsts.leads[waiting] = self._leads(firsts.types)
        if leads is not None:
            return self._next_of_some(leads, firsts, now_us)
        while (lead := waiting.least(lanes, now_us)) is not None:
            mark_us, number = lead
            found = firsts.of(lanes[number].streams)
            if found is not None:
                if mark_us > self._floor_us:
                    self._floor_us = mark_us
                return found
            self._lay_to_rest(number, now_us)
        return None

    def _leads(self, types: Set[TypeId]) -> Leads | None:
        """None for a worker that runs all types: a lane that has nothing for it has nothing."""
        if self._streams_of.keys() <= types:
            return None
        if self._by_type is None:
            self._by_type = LaneTypes(self.lanes, self._waiting.marks)
        return self._by_type.leads(types)

    def _next_of_some(self, leads: Leads, firsts: Firsts, now_us: int) -> Stream | None:
        lead, found = None, None
        while found is None and (lead := leads.first(self.lanes, now_us)) is not None:
            mark_us, number = lead
            found = firsts.of(self.lanes[number].streams)
            if found is None:
                leads.take_out(number)
            elif mark_us > self._floor_us:
                self._floor_us = mark_us
        self._look_at_hollow(lead, now_us)
        return found

    def _look_at_hollow(self, going: tuple[int, int] | None, now_us: int) -> None:
        """Lanes without jobs whose turn came before the one that goes: they save up nothing."""
        if self._by_type is not None:
            hollow, lanes = self._by_type.hollow, self.lanes
            while (lead := hollow.least(lanes, now_us)) and (going is None or lead < going):
                self._lay_to_rest(lead[1], now_us)

    def _lay_to_rest(self, number: int, now_us: int) -> None:
        del self._waiting.marks[number]
        if self._by_type is not None:
            self._by_type.hollow.marks.pop(number, None)
        self.lanes[number].rest(now_us)

    def taken(self, stream: Stream, job_id: str | None, now_us: int) -> None:
        """The head of the stream's window is gone, to be run; None: it was running already."""
        if job_id is not None:
            self.started(stream.key.lane, job_id, now_us)
        if not stream.window:
            self.drained(stream)

    def started(self, number: int, job_id: str, granted_us: int) -> None:
        lane = self.lanes.setdefault(number, Lane())
        lane.running[job_id] = granted_us
        lane.granted_sum_us += granted_us

    def ended(self, number: int, job_id: str, now_us: int) -> None:
        lane = self.lanes.get(number)
        granted_us = lane.running.pop(job_id, None) if lane else None
        if lane is None or granted_us is None:
            return  # granted before the tenant had lanes
        lane.granted_sum_us -= granted_us
        lane.spent_us += now_us - granted_us
        # It costs less now by what was counted ahead.
        if number in self._waiting.marks:
            self._waiting.put(number, lane.cost_us(now_us))
        if self._by_type is not None:
            self._by_type.eased(number)

    @property
    def is_quiet(self) -> bool:
        return not any(lane.running for lane in self.lanes.values())
