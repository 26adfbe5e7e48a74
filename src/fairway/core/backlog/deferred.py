"""Streams of one tenant beyond those that may be in memory: they stay in the store and take turns.

A stream costs memory even when one job is in it, and a tenant makes as many as it has types,
priorities and customers. Once there is one too many, only the sweep lets others in, as places
become free: it meets all streams that have work, always in the same order, and goes on where it
stopped. When a whole round left nobody out, the crowd is over.
"""

from __future__ import annotations

from fairway.core.backlog.streams import StreamKey

STREAMS_MAX = 10_000  # of a tenant in a pool


class Crowd:
    __slots__ = ("has_left_out", "turn")

    def __init__(self) -> None:
        self.has_left_out = True  # somebody, since the last round was over
        self.turn: tuple[int, int, int] | None = None  # who was let in last

    def lets_in(self, key: StreamKey, *, has_room: bool) -> bool:
        """Whether it is this one's turn, of those that the sweep meets."""
        position = (key.lane, key.type, key.priority)  # as the store orders them
        if has_room and (self.turn is None or position > self.turn):
            self.turn = position
            return True
        self.has_left_out = True
        return False

    def next_round(self, *, has_room: bool) -> None:
        """All were met; when there is room still, the next round begins with the first."""
        self.has_left_out = False
        if has_room:
            self.turn = None
