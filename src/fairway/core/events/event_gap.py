"""Where a log has no events any more: what somebody who follows it hears in their place."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fairway.core.events.event import Event


class EventGap(NamedTuple):
    """Events that were deleted before anybody came for them: from one position to another."""

    first: int
    last: int
    part: int | None = None  # as of an event
    cursor: str | None = None

    @property
    def position(self) -> int:
        """Where it goes on after this, as of an event."""
        return self.last

    @property
    def resume_after(self) -> int | str:
        """What `after` is to be, to go on behind it."""
        return self.last if self.cursor is None else self.cursor


LogItem: TypeAlias = Event | EventGap
