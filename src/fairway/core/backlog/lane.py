"""One lane: the streams of a tenant's customer in one pool, and the slot-time it has had."""

from __future__ import annotations

from fairway.core.backlog.priority import StreamGroup
from fairway.core.backlog.streams import Stream

MANY_STREAMS = 64  # of a lane: whether any goes on is looked up now and then only
LOOK_US = 100_000
PREPAID_US = 1_000_000  # a running job counts for this much more than it has run


def _goes_on(stream: Stream) -> bool:
    """Whether more of it is about to be read: its lane is not idle, only waits for the store."""
    return not stream.blocked and (stream.more or stream.reading)


class Lane:
    __slots__ = (
        "_looked_us",
        "_was_idle",
        "granted_sum_us",
        "is_idle",
        "running",
        "spent_us",
        "streams",
    )

    def __init__(self) -> None:
        self.streams = StreamGroup()
        self.running: dict[str, int] = {}  # job → when it was granted
        self.granted_sum_us = 0  # of those that run
        self.spent_us = 0  # by those that ended, and what waking up set it to
        self.is_idle = True
        self._looked_us, self._was_idle = -LOOK_US, True

    def rest(self, now_us: int) -> None:
        """Its turn came and it had nothing. Very many streams are not asked with every grant."""
        if len(self.streams) <= MANY_STREAMS or now_us - self._looked_us >= LOOK_US:
            self._looked_us = now_us
            self._was_idle = not any(_goes_on(stream) for stream in self.streams)
        self.is_idle = self._was_idle

    def cost_us(self, now_us: int) -> int:
        """Slot-time so far; of those that run, up to now and something ahead."""
        return self.spent_us - self.granted_sum_us + len(self.running) * (now_us + PREPAID_US)
