"""Lanes shared out in the plainest way: all are looked at, in the order of their slot-time.

It answers as `LaneShare` does and says what is fair; that one says the same at less cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairway.core.backlog.firsts import Firsts
from fairway.core.backlog.lane import PREPAID_US
from fairway.core.backlog.lanes import LaneShare
from fairway.core.backlog.priority import first_of
from fairway.core.backlog.streams import Stream


@dataclass
class PlainLane:
    streams: list[Stream] = field(default_factory=list)
    running: dict[str, int] = field(default_factory=dict)
    spent_us: int = 0
    waits: bool = False
    is_idle: bool = True

    def cost_us(self, now_us: int) -> int:
        ahead = sum(now_us + PREPAID_US - granted_us for granted_us in self.running.values())
        return self.spent_us + ahead


class PlainLanes(LaneShare):
    """Nothing of its base is used: it only stands where one is expected."""

    def __init__(self) -> None:
        self.plain: dict[int, PlainLane] = {}
        self.floor_us = 0

    def add(self, stream: Stream) -> None:
        self.plain.setdefault(stream.key.lane, PlainLane()).streams.append(stream)

    def drop(self, stream: Stream) -> None:
        lane = self.plain[stream.key.lane]
        lane.streams.remove(stream)
        if not (lane.streams or lane.running or lane.spent_us > self.floor_us):
            del self.plain[stream.key.lane]

    def wake(self, stream: Stream, now_us: int) -> None:
        lane = self.plain[stream.key.lane]
        if not lane.waits:
            if lane.is_idle:
                lane.spent_us += max(self.floor_us - lane.cost_us(now_us), 0)
            lane.is_idle, lane.waits = False, True

    def drained(self, stream: Stream) -> None:
        pass  # it looks for itself

    def next_stream(self, firsts: Firsts, now_us: int) -> Stream | None:
        waiting = [(lane.cost_us(now_us), n) for n, lane in self.plain.items() if lane.waits]
        for cost_us, number in sorted(waiting):
            lane = self.plain[number]
            if (found := first_of(lane.streams, firsts.types)) is not None:
                self.floor_us = max(self.floor_us, cost_us)
                return found
            if not any(one.window for one in lane.streams):
                goes_on = (not one.blocked and (one.more or one.reading) for one in lane.streams)
                lane.waits, lane.is_idle = False, not any(goes_on)
        return None

    def started(self, number: int, job_id: str, granted_us: int) -> None:
        self.plain.setdefault(number, PlainLane()).running[job_id] = granted_us

    def ended(self, number: int, job_id: str, now_us: int) -> None:
        lane = self.plain.get(number)
        if lane is not None and job_id in lane.running:
            lane.spent_us += now_us - lane.running.pop(job_id)

    @property
    def is_quiet(self) -> bool:
        return not any(lane.running for lane in self.plain.values())
