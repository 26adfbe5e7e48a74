"""What all workers together can run: slots by pool, and which job types.

Counted as workers come and go, so that one more or one less costs what it says of itself and not a
look at everybody. Whoever acts on it takes the changes of many workers together (`changes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from typing import NamedTuple


class Changes(NamedTuple):
    """What is different since the last look."""

    capacity: dict[int, int]  # pool → slots now, of pools whose slots changed
    types: frozenset[int] | None  # all that somebody runs; None: as before


class Headcount:
    def __init__(self) -> None:
        self._said: dict[str, tuple[Set[int], Mapping[int, int]]] = {}
        self._runners: Counter[int] = Counter()  # job type → how many run it
        self._capacity: Counter[int] = Counter()
        self._changed_pools: set[int] = set()
        self._types_changed = False  # before the first worker comes, any type may

    def __len__(self) -> int:
        return len(self._said)

    def count(self, key: str, types: Set[int], slots: Mapping[int, int]) -> None:
        """What one worker runs from now on, in place of what it said before."""
        before = self._said.get(key)
        if before == (types, slots):
            return
        types_before, slots_before = before or (frozenset(), {})
        # Only what is different: a worker of very many types may change one with every hello.
        self._add(types - types_before, slots)
        self._take(types_before - types, slots_before)
        self._said[key] = types, dict(slots)

    def forget(self, key: str) -> None:
        before = self._said.pop(key, None)
        if before is not None:
            self._take(*before)

    def forget_all(self) -> None:
        self._changed_pools.update(self._capacity)
        self._types_changed |= bool(self._runners)
        for book in (self._said, self._runners, self._capacity):
            book.clear()

    def changes(self) -> Changes:
        """Each is told once."""
        capacity = {pool: self._capacity[pool] for pool in self._changed_pools}
        types = frozenset(self._runners) if self._types_changed else None
        self._changed_pools, self._types_changed = set(), False
        return Changes(capacity, types)

    def _add(self, types: Set[int], slots: Mapping[int, int]) -> None:
        known = len(self._runners)
        self._runners.update(types)
        self._types_changed |= len(self._runners) != known
        self._capacity.update(slots)
        self._changed_pools.update(slots)

    def _take(self, types: Set[int], slots: Mapping[int, int]) -> None:
        runners = self._runners
        for one in types:
            runners[one] -= 1
            if not runners[one]:
                del runners[one]
                self._types_changed = True
        self._capacity.subtract(slots)
        self._changed_pools.update(slots)
