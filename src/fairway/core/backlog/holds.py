"""Holds: which streams must not start jobs for now, and why: a pause, an open circuit.

A hold names a tenant, a job type, a pool, or several of them; what it does not name (0) it holds
for all. Holding is a fact about streams, so it costs nothing per job. It says not who set it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain
from typing import NamedTuple

from fairway.core.backlog.streams import StreamKey

PAUSED = "paused"
NO_NAMES: frozenset[tuple[int, int]] = frozenset()


class Hold(NamedTuple):
    tenant: int = 0
    type: int = 0
    pool: int = 0
    reason: str = PAUSED


class HoldChanges:
    """Names of holds that came or went."""

    def __init__(self, names: Mapping[int, Set[tuple[int, int]]]) -> None:
        self._names = names  # by tenant: (type, pool)

    @property
    def tenants(self) -> Set[int]:
        """Whom this is about; 0: everybody."""
        return self._names.keys()

    def types_of(self, pool: int, tenant: int) -> Set[int]:
        """The types of a tenant's streams in a pool that this is about; 0: all of them."""
        found = (self._names.get(tenant, NO_NAMES), self._names.get(0, NO_NAMES))
        return {type_ for names in found for type_, where in names if where in (0, pool)}


class Holds:
    """All holds in force. Asked once a stream when they change, not once a job."""

    def __init__(self, holds: Iterable[Hold] = ()) -> None:
        # By tenant, then by type and pool. Never changed: others may have the same parts.
        self._of: dict[int, dict[tuple[int, int], Hold]] = {}
        for hold in holds:  # of two that name the same, a pause is what people should hear of
            mine, name = self._of.setdefault(hold.tenant, {}), (hold.type, hold.pool)
            if hold.reason == PAUSED or name not in mine:
                mine[name] = hold

    def with_those_of(self, tenants: Mapping[int, Iterable[Hold]]) -> Holds:
        """The same, but for all that name these tenants. Costs what these do, not what all do."""
        changed, parts = Holds(), Holds(chain.from_iterable(tenants.values()))._of
        changed._of = {**self._of, **parts}
        for tenant in tenants.keys() - parts.keys():
            changed._of.pop(tenant, None)
        return changed

    def on(self, key: StreamKey) -> Hold | None:
        """The hold that keeps this stream from starting, if one does."""
        return next(self.all_on(key), None)

    def all_on(self, key: StreamKey) -> Iterator[Hold]:
        """All that match: one that ends may not be the last."""
        type_, pool = key.type, key.pool
        for tenant in (key.tenant, 0):
            if (mine := self._of.get(tenant)) is not None:
                for name in ((type_, pool), (type_, 0), (0, pool), (0, 0)):
                    if (hold := mine.get(name)) is not None:
                        yield hold

    def __bool__(self) -> bool:
        return bool(self._of)

    def unlike(self, other: Holds) -> HoldChanges:
        """Which streams the two may hold differently."""
        names: dict[int, Set[tuple[int, int]]] = {}
        for tenant in self._of.keys() | other._of.keys():
            mine, theirs = self._of.get(tenant, {}), other._of.get(tenant, {})
            if mine is not theirs and mine != theirs:
                names[tenant] = {name for name, _ in mine.items() ^ theirs.items()}
        return HoldChanges(names)

    def says_the_same(self, other: Holds) -> bool:
        return self._of == other._of
