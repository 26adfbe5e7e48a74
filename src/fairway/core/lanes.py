"""Lanes: how one tenant's part of a pool is shared out between its own customers.

A job's `fair_key` names a customer of the tenant; its hash is the job's lane, and jobs without one
are in lane 0. The lane that has had the least slot-time goes next; what runs counts while it runs.
A lane that was idle saves up nothing. Tenants without keys have no lanes and pay nothing for this.
"""

from __future__ import annotations

import heapq
import zlib

from fairway.core.streams import Firsts, Stream, StreamGroup

LANES_MAX = 1_023  # beyond 0; customers whose keys fall together share a lane
MANY_STREAMS = 64  # of a lane: whether any has a job is looked up now and then only
LOOK_US = 100_000
PREPAID_US = 1_000_000  # a running job counts for this much more than it has run


def lane_of(fair_key: str | None) -> int:
    """The lane of a key: the same on every server, for ever."""
    return 1 + zlib.crc32(fair_key.encode()) % LANES_MAX if fair_key else 0


def _goes_on(stream: Stream) -> bool:
    """Whether more of it is about to be read: its lane is not idle, only waits for the store."""
    return not stream.blocked and (stream.more or stream.reading)


class Lane:
    __slots__ = (
        "_looked_us", "granted_sum_us", "is_idle", "mark_us", "running", "spent_us", "streams",
        "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self.streams = StreamGroup()
        self.running: dict[str, int] = {}  # job → when it was granted
        self.granted_sum_us = 0  # of those that run
        self.spent_us = 0  # by those that ended, and what waking up set it to
        self.mark_us = 0  # its newest entry in the heap
        self.waits = False  # is in the heap
        self.is_idle = True
        self._looked_us = 0

    def is_spent(self, now_us: int) -> bool:
        """Whether nothing of it is in memory. Of very many streams not asked with every grant:
        a lane that nobody can run is passed over at little cost."""
        if len(self.streams) > MANY_STREAMS and now_us - self._looked_us < LOOK_US:
            return False
        self._looked_us = now_us
        return not any(stream.window for stream in self.streams)

    def cost_us(self, now_us: int) -> int:
        """Slot-time so far; of those that run, up to now and something ahead."""
        return self.spent_us - self.granted_sum_us + len(self.running) * (now_us + PREPAID_US)


class LaneShare:
    """The lanes of one tenant in one pool."""

    def __init__(self) -> None:
        self.lanes: dict[int, Lane] = {}
        self._heap: list[tuple[int, int]] = []  # (cost when it was put there, lane)
        self._floor_us = 0  # the cost of the lane that went last: where one that wakes up starts

    def add(self, stream: Stream) -> None:
        self.lanes.setdefault(stream.key.lane, Lane()).streams.add(stream)

    def drop(self, stream: Stream) -> None:
        lane = self.lanes[stream.key.lane]
        lane.streams.drop(stream)
        is_ahead = lane.spent_us > self._floor_us  # which must not be forgotten
        if not (lane.streams or lane.running or is_ahead):
            del self.lanes[stream.key.lane]

    def wake(self, number: int, now_us: int) -> None:
        """The lane has jobs in its windows."""
        lane = self.lanes[number]
        if lane.waits:
            return
        cost_us = lane.cost_us(now_us)
        if lane.is_idle and cost_us < self._floor_us:
            lane.spent_us += self._floor_us - cost_us
            cost_us = self._floor_us
        lane.is_idle, lane.waits = False, True
        self._push(number, lane, cost_us)

    def next_stream(self, firsts: Firsts, now_us: int) -> Stream | None:
        """The stream to take from: of the lane with the least slot-time that a worker can run."""
        cannot_run: list[int] = []
        found = None
        while found is None and (number := self._pop(now_us)) is not None:
            lane = self.lanes[number]
            found = firsts.of(lane.streams)
            if found is not None:
                self._floor_us = max(self._floor_us, lane.mark_us)
                self._push(number, lane, lane.mark_us)
            elif not lane.is_spent(now_us):
                cannot_run.append(number)
            else:
                lane.waits = False
                lane.is_idle = not any(_goes_on(stream) for stream in lane.streams)
        for number in cannot_run:
            self._push(number, self.lanes[number], self.lanes[number].mark_us)
        return found

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
        if lane.waits:  # it costs less now by what was counted ahead
            self._push(number, lane, lane.cost_us(now_us))

    @property
    def is_quiet(self) -> bool:
        return not any(lane.running for lane in self.lanes.values())

    def _pop(self, now_us: int) -> int | None:
        """The lane with the least cost now; entries are brought up to date when they come up."""
        while self._heap:
            mark_us, number = heapq.heappop(self._heap)
            lane = self.lanes.get(number)
            if lane is None or not lane.waits or mark_us != lane.mark_us:
                continue  # an old entry
            cost_us = lane.cost_us(now_us)
            if cost_us <= mark_us:
                return number
            self._push(number, lane, cost_us)
        return None

    def _push(self, number: int, lane: Lane, cost_us: int) -> None:
        lane.mark_us = cost_us
        heapq.heappush(self._heap, (cost_us, number))
        if len(self._heap) > 4 * len(self.lanes) + 64:  # old entries that never came up
            self._heap = [(one.mark_us, n) for n, one in self.lanes.items() if one.waits]
            heapq.heapify(self._heap)
