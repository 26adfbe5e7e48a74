"""Which nodes of a distributed store do not answer, and when one of them is worth a question again.

A round over all nodes goes through parts of the store one by one. A node that hangs must cost it
one wait and not one for each part that lies there: the round renews the terms of everybody else.
A node that is only slow must not be taken for one that hangs: as long as it answers anybody, it
answers. Pure: moments come in, answers go out. Who asks, and what else goes by this, is the
caller's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from math import inf

MISSES_MAX = 2  # without an answer in time: one may be a row that somebody holds
AGAIN_SECONDS = 1.0  # until a silent node is asked again: some questions a term
REST_SECONDS = 3.0  # of a part that used up two connections: the next may take a while to get


class Miss(Enum):
    """How an answer failed to come."""

    LATE = "late"  # the store gave up on it: a row that somebody holds, or a node that hangs
    NOTHING = "nothing"  # not even that, for longer than it would take
    AWAY = "away"  # the node could not be reached


class SilentNodes:
    def __init__(self, node_of: Mapping[int, int]) -> None:
        """`node_of` a part of the store; it may change where the caller keeps it."""
        self._node_of = node_of
        self._misses: dict[int, int] = {}  # node → in a row
        self._asked_at: dict[int, float] = {}  # node → when it did not answer, last
        self._heard_at: dict[int, float] = {}  # node → when it answered somebody, last
        self._missed_at: dict[int, float] = {}  # part → the same
        self._rests_until: dict[int, float] = {}  # part of which nothing came → until when

    def is_silent(self, part: int) -> bool:
        """Whether its node did not answer when it was last asked, so that nobody else need try."""
        return self._misses.get(self._node(part), 0) >= MISSES_MAX

    def may_ask(self, part: int, began: float) -> bool:
        """In a round that began then. The moment itself would not do: what is asked last, and was
        missed, would have its turn when those before it were passed by, every time. A part of which
        nothing comes ends the round, also where its node answers others: one after two of those
        goes without it, or no server could ever say that it is there, and take what is free."""
        if began < self._rests_until.get(part, -inf):
            return False
        return not self.is_silent(part) or began >= self._asked_at[self._node(part)] + AGAIN_SECONDS

    def in_order(self, parts: Collection[int]) -> list[int]:
        """What was not answered last comes last: a part that is locked keeps no other from being
        asked."""
        return sorted(parts, key=lambda part: (self._missed_at.get(part, 0.0), part))

    def heard(self, part: int) -> None:
        if self._misses:
            self._misses.pop(self._node(part), None)
        if self._missed_at:
            self._missed_at.pop(part, None)
            self._rests_until.pop(part, None)

    def answers(self, node: int, now: float) -> None:
        """It answered somebody: whatever else was asked of it waits for a row, or its turn."""
        self._heard_at[node] = now
        if self._misses:
            self._misses.pop(node, None)

    def missed(self, part: int, asked: float, now: float, *, miss: Miss) -> None:
        """No answer to what was asked of it then."""
        node = self._node(part)
        self._asked_at[node] = self._missed_at[part] = now
        if miss is not Miss.AWAY and self._heard_at.get(node, -inf) >= asked:
            if miss is Miss.NOTHING:  # once, it may be slow, and its terms end soon
                is_second = part in self._rests_until
                self._rests_until[part] = now + REST_SECONDS if is_second else now
            return
        self._misses[node] = self._misses.get(node, 0) + 1 if miss is Miss.LATE else MISSES_MAX

    def _node(self, part: int) -> int:
        return self._node_of.get(part, -1 - part)  # not known: one of its own
