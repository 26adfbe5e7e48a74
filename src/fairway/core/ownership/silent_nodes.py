"""Which nodes of a distributed store do not answer, and when one of them is worth a question again.

A round over all nodes goes through parts of the store one by one. A node that hangs must cost it
one wait and not one for each part that lies there: the round renews the terms of everybody else.
Pure: moments come in, answers go out. Who asks, and what else goes by this, is the caller's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

MISSES_MAX = 2  # without an answer in time: one may be a row that somebody holds
AGAIN_SECONDS = 1.0  # until a silent node is asked again: some questions a term


class SilentNodes:
    def __init__(self, node_of: Mapping[int, int]) -> None:
        """`node_of` a part of the store; it may change where the caller keeps it."""
        self._node_of = node_of
        self._misses: dict[int, int] = {}  # node → in a row
        self._asked_at: dict[int, float] = {}  # node → when it did not answer, last
        self._missed_at: dict[int, float] = {}  # part → the same

    def is_silent(self, part: int) -> bool:
        """Whether its node did not answer when it was last asked, so that nobody else need try."""
        return self._misses.get(self._node(part), 0) >= MISSES_MAX

    def may_ask(self, part: int, began: float) -> bool:
        """In a round that began then. The moment itself would not do: what is asked last, and was
        missed, would have its turn when those before it were passed by, every time."""
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

    def missed(self, part: int, now: float, *, is_sure: bool) -> None:
        """No answer; `is_sure` where the node itself could not be reached."""
        node = self._node(part)
        self._misses[node] = MISSES_MAX if is_sure else self._misses.get(node, 0) + 1
        self._asked_at[node] = self._missed_at[part] = now

    def _node(self, part: int) -> int:
        return self._node_of.get(part, -1 - part)  # not known: one of its own
