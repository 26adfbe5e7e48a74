"""Ticks that were worked out before, by expression and zone.

The search for a tick that comes rarely costs milliseconds, and the same schedules are looked at
again and again: by their owners, by dashboards, by those who would keep a server busy. Bounded in
entries and in ticks of each; whoever is pushed out is worked out anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

ENTRIES_MAX = 1000
TICKS_MAX = 100


class _Found(NamedTuple):
    after_ms: int
    ticks: tuple[int, ...]  # all there are from that moment to the last of them


class KnownTicks:
    """Searches run in threads as well: nobody sees half of an entry."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._found: dict[tuple[str, str], _Found] = {}
        self._lock = Lock()

    def after(self, expression: str, zone: str, moment_ms: int) -> tuple[int, ...]:
        """Ticks after a moment, none left out from it to the last of them; () when unknown."""
        found = self._found.get((expression, zone))
        if found is None or not found.after_ms <= moment_ms < found.ticks[0]:
            return ()
        return found.ticks

    def learn(self, expression: str, zone: str, moment_ms: int, ticks: Sequence[int]) -> None:
        """These are the first ticks after a moment."""
        if not ticks:
            return
        entry = _Found(moment_ms, tuple(ticks[:TICKS_MAX]))
        with self._lock:
            known = self._found.pop((expression, zone), None)
            if known and known.ticks[0] == entry.ticks[0]:
                entry = _Found(
                    min(known.after_ms, entry.after_ms), max(known.ticks, entry.ticks, key=len)
                )
            self._found[expression, zone] = entry
            if len(self._found) > self._entries_max:
                del self._found[next(iter(self._found))]
