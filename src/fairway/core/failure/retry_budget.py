"""A tenant's retry budget: retries are at most twice its first dispatches over a window.

When everything fails, five tries each would be five times the load at the worst moment. Beyond the
budget a retry becomes a dead letter at once. A few retries are always allowed: with three jobs a
day nobody needs protection from the fourth try.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.core.failure.sliding_window import SlidingCount


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    window_us: int = 600_000_000
    retries_per_dispatch: int = 2
    retries_free: int = 20  # always allowed in one window


class RetryBudget:
    __slots__ = ("_settings", "_window")

    def __init__(self, settings: BudgetSettings) -> None:
        self._settings = settings
        self._window = SlidingCount(settings.window_us)  # good: first dispatches, bad: retries

    def is_idle(self, now_us: int) -> bool:
        self._window.slide(now_us)
        return not self._window.bad

    def dispatched(self, now_us: int, count: int = 1) -> None:
        """Jobs had their first run."""
        self._window.add(now_us, good=count)

    def take(self, now_us: int) -> bool:
        """Whether one more retry is within the budget; if so, it is spent."""
        self._window.slide(now_us)
        most = max(
            self._window.good * self._settings.retries_per_dispatch, self._settings.retries_free
        )
        if self._window.bad >= most:
            return False
        self._window.add(now_us, bad=1)
        return True

    @property
    def retries(self) -> int:
        return self._window.bad

    @property
    def dispatches(self) -> int:
        return self._window.good
