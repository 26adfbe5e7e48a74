"""Holds: which streams must not start jobs for now, and why: a pause, an open circuit.

A hold names a tenant, a job type, a pool, or several of them; what it does not name (0) it holds
for all. Holding is a fact about streams, so it costs nothing per job. It says not who set it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from fairway.core.streams import StreamKey

PAUSED = "paused"
NOBODY: frozenset[int] = frozenset()


class Hold(NamedTuple):
    tenant: int = 0
    type: int = 0
    pool: int = 0
    reason: str = PAUSED


class Changes:
    """Names (tenant, type, pool) of holds that came or went."""

    def __init__(self, names: set[tuple[int, ...]]) -> None:
        self._names = names
        self._tenants = {tenant for tenant, *_ in names}

    def types_of(self, pool: int, tenant: int) -> Set[int]:
        """The types of a tenant's streams in a pool that this is about; 0: all of them."""
        if tenant not in self._tenants and 0 not in self._tenants:
            return NOBODY
        return {
            names[1] for names in self._names if names[0] in (0, tenant) and names[2] in (0, pool)
        }


class Holds:
    """All holds in force. Asked once a stream when they change, not once a job."""

    def __init__(self, holds: Iterable[Hold] = ()) -> None:
        self._by_name: dict[tuple[int, ...], Hold] = {}
        for hold in holds:  # of two that name the same, a pause is what people should hear of
            if hold.reason == PAUSED or hold[:3] not in self._by_name:
                self._by_name[hold[:3]] = hold
        # Which of (tenant, type, pool) are named by any hold: few shapes, so few look-ups.
        self._shapes = {tuple(map(bool, names)) for names in self._by_name}

    def on(self, key: StreamKey) -> Hold | None:
        """The hold that keeps this stream from starting, if one does."""
        return next(self.all_on(key), None)

    def all_on(self, key: StreamKey) -> Iterator[Hold]:
        """All that match: one that ends may not be the last."""
        names = (key.tenant, key.type, key.pool)
        for shape in self._shapes:
            asked = tuple(n if named else 0 for n, named in zip(names, shape, strict=True))
            hold = self._by_name.get(asked)
            if hold is not None:
                yield hold

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def unlike(self, other: Holds) -> Changes:
        """Which streams the two may hold differently."""
        unlike = self._by_name.items() ^ other._by_name.items()
        return Changes({names for names, _ in unlike})

    def says_the_same(self, other: Holds) -> bool:
        return self._by_name == other._by_name
