"""The clock of a testing mode: it stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Callable

from fairway.sdk.durations import Duration, seconds_of

#: 2026-01-01T00:00:00Z; a fixed beginning makes every run of a test alike.
BEGINNING_UNIX_SECONDS = 1_767_225_600.0


class Clock:
    """Decides what is due in manual mode. Who is told of each turn makes what it brings."""

    def __init__(
        self,
        unix_seconds: float = BEGINNING_UNIX_SECONDS,
        on_turn: Callable[[float, float], None] = lambda before, now: None,
    ) -> None:
        self.unix_seconds = unix_seconds
        self._on_turn = on_turn

    def advance(self, duration: Duration) -> None:
        self.advance_to(self.unix_seconds + seconds_of(duration))

    def advance_to(self, unix_seconds: float) -> None:
        """Forward only; an earlier moment changes nothing."""
        before, self.unix_seconds = self.unix_seconds, max(self.unix_seconds, unix_seconds)
        self._on_turn(before, self.unix_seconds)
