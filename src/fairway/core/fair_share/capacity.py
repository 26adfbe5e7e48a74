"""What all workers together can run: slots by pool, and which job types for whom.

A shared worker runs its types for every tenant, a tenant's own worker for that one alone. Counted
as workers come and go, so that one more or one less costs what it says of itself and not a look at
everybody. Whoever acts on it takes the changes of many workers together (`changes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from typing import NamedTuple

from fairway.core.ids import PoolId, TenantId, TypeId


class CapacityChanges(NamedTuple):
    """What is different since the last look."""

    capacity: dict[PoolId, int]  # pool → slots now, of pools whose slots changed
    # whose workers → all that they run, where it changed
    types: dict[TenantId | None, frozenset[TypeId]]


class SlotOffer(NamedTuple):
    """What one worker says of itself."""

    tenant: TenantId | None  # whose own worker it is; None: it runs every tenant's jobs
    types: Set[TypeId]
    slots: Mapping[PoolId, int]


class Headcount:
    def __init__(self) -> None:
        self._said: dict[str, SlotOffer] = {}
        # whose → job type → how many run it
        self._runners: dict[TenantId | None, Counter[TypeId]] = {}
        self._capacity: Counter[PoolId] = Counter()
        self._changed_pools: set[PoolId] = set()
        # whose; nobody's before the first worker came
        self._changed_types: set[TenantId | None] = set()

    def __len__(self) -> int:
        return len(self._said)

    def count(self, key: str, said: SlotOffer) -> None:
        """What one worker runs from now on, in place of what it said before."""
        before = self._said.get(key)
        if before == said:
            return
        if before is None or before.tenant != said.tenant:
            self.forget(key)
            before = SlotOffer(said.tenant, frozenset(), {})
        # Only what is different: a worker of very many types may change one with every hello.
        self._add(said._replace(types=said.types - before.types))
        self._take(before._replace(types=before.types - said.types))
        self._said[key] = said._replace(slots=dict(said.slots))

    def forget(self, key: str) -> None:
        before = self._said.pop(key, None)
        if before is not None:
            self._take(before)

    def forget_all(self) -> None:
        self._changed_pools.update(self._capacity)
        self._changed_types.update(self._runners)
        for book in (self._said, self._runners, self._capacity):
            book.clear()

    def changes(self) -> CapacityChanges:
        """Each is told once."""
        capacity = {pool: self._capacity[pool] for pool in self._changed_pools}
        types = {whose: frozenset(self._runners.get(whose, ())) for whose in self._changed_types}
        self._changed_pools, self._changed_types = set(), set()
        return CapacityChanges(capacity, types)

    def _add(self, said: SlotOffer) -> None:
        if said.types:
            runners = self._runners.setdefault(said.tenant, Counter())
            known = len(runners)
            runners.update(said.types)
            if len(runners) != known:
                self._changed_types.add(said.tenant)
        self._capacity.update(said.slots)
        self._changed_pools.update(said.slots)

    def _take(self, said: SlotOffer) -> None:
        runners = self._runners.get(said.tenant, Counter())
        for one in said.types:
            runners[one] -= 1
            if not runners[one]:
                del runners[one]
                self._changed_types.add(said.tenant)
        if not runners:
            self._runners.pop(said.tenant, None)
        self._capacity.subtract(said.slots)
        self._changed_pools.update(said.slots)
