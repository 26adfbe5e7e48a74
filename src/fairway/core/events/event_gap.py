"""Where a log has no events any more: what somebody who follows it hears in their place."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fairway.core.events.event import Event


class EventGap(NamedTuple):
    """Events that were deleted before anybody came for them: from one position to another."""

    first: int
    last: int

    @property
    def position(self) -> int:
        """Where it goes on after this, as of an event."""
        return self.last


LogItem: TypeAlias = Event | EventGap
