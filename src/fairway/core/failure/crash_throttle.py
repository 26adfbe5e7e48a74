"""How many workers a tenant may cost in one pool before it is throttled there.

A runner that dies takes everything it ran with it, and who killed it cannot always be told: the
blame of one death is split among the tenants whose jobs died with it. Whoever is there each time
passes the cap; whoever was there by chance does not. Throttled, a tenant's jobs in that pool go
out a few at a time until enough time has passed without deaths.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.core.failure.sliding_window import SlidingCount

WHOLE = 1000  # the blame of one death


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashThrottleSettings:
    window_us: int = 600_000_000
    deaths_max: int = 30  # in one window; one poison job is ten
    rest_us: int = 10_000_000  # between two jobs that go out while throttled


class CrashThrottle:
    __slots__ = ("_settings", "_window", "is_throttled", "next_us")
    probes_left = 1  # in one round

    def __init__(self, settings: CrashThrottleSettings) -> None:
        self._settings = settings
        self._window = SlidingCount(settings.window_us)
        self.is_throttled = False
        self.next_us = 0  # when the next job may go out

    def died(self, now_us: int, blame: int) -> bool:
        """A worker died with jobs of this tenant; True when that passes the cap."""
        self._window.add(now_us, bad=blame)
        if self.is_throttled or self._window.bad < self._settings.deaths_max * WHOLE:
            return False
        self.is_throttled = True
        self.next_us = now_us + self._settings.rest_us
        return True

    def is_due(self, now_us: int) -> bool:
        return self.is_throttled and now_us >= self.next_us

    def tick(self, now_us: int) -> bool:
        """True when one more job may go out now."""
        if not self.is_due(now_us):
            return False
        self.next_us = now_us + self._settings.rest_us
        return True

    def unsent(self, now_us: int) -> None:
        """No job went out after all: the next goes after the rest, which never grows."""

    def is_over(self, now_us: int) -> bool:
        """Whether the throttle can go: half of the cap has left the window."""
        self._window.slide(now_us)
        return self.is_throttled and self._window.bad * 2 <= self._settings.deaths_max * WHOLE

    def lift(self) -> None:
        self.is_throttled = False

    def is_idle(self, now_us: int) -> bool:
        self._window.slide(now_us)
        return not self.is_throttled and not self._window.bad


def blame_of(tenants: int) -> int:
    """What each of so many tenants gets of one death."""
    return WHOLE // max(tenants, 1)
