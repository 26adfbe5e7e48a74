"""The newest events of one tenant, kept in memory for those who follow: so many, without a hole."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from fairway.core.events.event import Event


class RecentEvents:
    """Whoever asks for what was read before finds it here, or hears that it is not here."""

    def __init__(self, count_max: int) -> None:
        self._events: deque[Event] = deque(maxlen=count_max)

    def __len__(self) -> int:
        return len(self._events)

    def after(self, position: int, limit: int) -> list[Event] | None:
        """The events that follow a position, as far as they are here; None: ask the store.

        None is what a follower hears that is too far behind, and one that knows more than is here.
        """
        if not self._events:
            return None
        first, last = self._events[0].position, self._events[-1].position
        if not first - 1 <= position <= last:
            return None
        begin = position - first + 1
        return list(islice(self._events, begin, begin + limit))

    def add(self, events: Sequence[Event]) -> None:
        """What was just read, in order and without a hole. Older than what is here: left aside."""
        if not events:
            return
        last = self._events[-1].position if self._events else 0
        if not self._events or events[0].position > last + 1:
            self._events.clear()  # begun anew: a hole would look as if nothing had happened there
            self._events.extend(events)
        else:
            self._events.extend(event for event in events if event.position > last)

    def clear(self) -> None:
        self._events.clear()
