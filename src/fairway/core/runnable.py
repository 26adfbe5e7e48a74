"""Which streams may run: those whose type some worker runs, and that nobody holds.

Workers come and go with their types, a tenant's own as often as it likes: only streams of the types
that changed are looked at, and very many of them in parts. Until then they are as before: a stream
that runs is read a moment later, one that does not takes memory a moment longer.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from fairway.core.streams import Stream, StreamKey, WindowLimits
from fairway.core.windows import Windows

REVIEWED_AT_ONCE = 256  # streams: half a millisecond


class RunnableWindows(Windows):
    def __init__(self, limits: WindowLimits, now_us: Callable[[], int]) -> None:
        super().__init__(limits, now_us)
        self._runnable: Set[int] | None = None  # job types that a worker runs; None: all
        self._by_type: dict[int, dict[Stream, None]] = {}  # all streams, in order
        self._to_review: dict[Stream, None] = {}

    def set_runnable(self, types: Set[int]) -> None:
        """Which job types some worker runs. Others take no memory and stand in nobody's way."""
        before, self._runnable = self._runnable, types
        changed = self._by_type.keys() if before is None else types ^ before
        for type_ in changed:
            if (same := self._by_type.get(type_)) is not None:
                self._to_review.update(same)
        self.review()

    @property
    def is_reviewing(self) -> bool:
        """Whether some streams do not know yet what changed: whoever reads the store goes on."""
        return bool(self._to_review)

    def review(self) -> None:
        """Of what `set_runnable` changed, as many as take a moment; mostly that is all."""
        is_tight = self.jobs_held > self.limits.jobs_total // 2
        for _ in range(min(REVIEWED_AT_ONCE, len(self._to_review))):
            stream, _nothing = self._to_review.popitem()
            stream.blocked = not self._may_run(stream.key)
            if stream.blocked:
                if is_tight:
                    self._evict(stream)
            elif stream.more and len(stream.window) <= self.low:
                self._want(stream)

    def _may_run(self, key: StreamKey) -> bool:
        if self.holds and self.holds.on(key):
            return False
        return self._runnable is None or key.type in self._runnable

    def _made(self, stream: Stream) -> None:
        stream.blocked = not self._may_run(stream.key)
        self._by_type.setdefault(stream.type, {})[stream] = None

    def _dropped(self, stream: Stream) -> None:
        """Its tenant has it no more."""
        self.reading.forget(stream)
        self._to_review.pop(stream, None)
        same = self._by_type[stream.type]
        del same[stream]
        if not same:
            del self._by_type[stream.type]
