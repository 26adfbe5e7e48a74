"""Which streams may run: those whose type some worker runs, and that nobody holds.

Workers come and go with their types, a tenant's own as often as it likes: only streams of the types
that changed are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from fairway.core.streams import Stream, StreamKey, WindowLimits
from fairway.core.windows import Windows


class RunnableWindows(Windows):
    def __init__(self, limits: WindowLimits, now_us: Callable[[], int]) -> None:
        super().__init__(limits, now_us)
        self._runnable: Set[int] | None = None  # job types that a worker runs; None: all
        self._by_type: dict[int, dict[Stream, None]] = {}  # all streams, in order

    def set_runnable(self, types: Set[int]) -> None:
        """Which job types some worker runs. Others take no memory and stand in nobody's way."""
        before, self._runnable = self._runnable, types
        changed = self._by_type.keys() if before is None else types ^ before
        is_tight = self.jobs_held > self.limits.jobs_total // 2
        for type_ in changed:
            for stream in self._by_type.get(type_, ()):
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
        same = self._by_type[stream.type]
        del same[stream]
        if not same:
            del self._by_type[stream.type]
