"""Holds: which streams must not start jobs for now, and why: a pause, an open circuit.

A hold names a tenant, a job type, a pool, or several of them; what it does not name (0) it holds
for all. Holding is a fact about streams, so it costs nothing per job. It says not who set it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain, product
from typing import NamedTuple, TypeAlias

from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import PoolId, TenantId, TypeId

PAUSED = "paused"
SUSPENDED = "suspended"  # the whole of a tenant, by an operator
ELSEWHERE = "elsewhere"  # the whole of a tenant, whose home is another region
MOVING = "moving"  # the whole of a tenant, which is on its way to another shard
EVERY_TENANT, EVERY_TYPE, EVERY_POOL = TenantId(0), TypeId(0), PoolId(0)
HoldName: TypeAlias = tuple[TypeId, PoolId]
#: Of two that name the same, which one people should hear of; others have none.
_RANKS = {PAUSED: 1, ELSEWHERE: 2, MOVING: 3, SUSPENDED: 4}
NO_NAMES: frozenset[HoldName] = frozenset()


class Hold(NamedTuple):
    tenant: TenantId = EVERY_TENANT
    type: TypeId = EVERY_TYPE
    pool: PoolId = EVERY_POOL
    reason: str = PAUSED


class HoldChanges:
    """Names of holds that came or went."""

    def __init__(self, names: Mapping[TenantId, Set[HoldName]]) -> None:
        self._names = names  # by tenant: (type, pool)

    @property
    def tenants(self) -> Set[TenantId]:
        """Whom this is about; 0: everybody."""
        return self._names.keys()

    def types_of(self, pool: PoolId, tenant: TenantId) -> Set[TypeId]:
        """The types of a tenant's streams in a pool that this is about; 0: all of them."""
        found = (self._names.get(tenant, NO_NAMES), self._names.get(EVERY_TENANT, NO_NAMES))
        pools = (EVERY_POOL, pool)
        return {type_ for names in found for type_, where in names if where in pools}


class Holds:
    """All holds in force. Asked once a stream when they change, not once a job."""

    def __init__(self, holds: Iterable[Hold] = ()) -> None:
        # By tenant, then by type and pool. Never changed: others may have the same parts.
        self._of: dict[TenantId, dict[HoldName, Hold]] = {}
        for hold in holds:
            mine, name = self._of.setdefault(hold.tenant, {}), (hold.type, hold.pool)
            known = mine.get(name)
            if known is None or _RANKS.get(hold.reason, 0) > _RANKS.get(known.reason, 0):
                mine[name] = hold

    def with_those_of(self, tenants: Mapping[TenantId, Iterable[Hold]]) -> Holds:
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
        types, pools = (key.type, EVERY_TYPE), (key.pool, EVERY_POOL)
        for tenant in (key.tenant, EVERY_TENANT):
            if (mine := self._of.get(tenant)) is not None:
                for name in product(types, pools):
                    if (hold := mine.get(name)) is not None:
                        yield hold

    def naming(self, tenant: TenantId) -> list[Hold]:
        """Those that may hold jobs of this tenant: its own, and everybody's."""
        found = (self._of.get(whose, {}) for whose in (tenant, EVERY_TENANT))
        return [hold for mine in found for hold in mine.values()]

    def is_suspended(self, tenant: TenantId) -> bool:
        """Nothing of it starts here, and its schedules wait: also if it is elsewhere, or moves."""
        hold = self._of.get(tenant, {}).get((EVERY_TYPE, EVERY_POOL))
        return hold is not None and hold.reason in (SUSPENDED, ELSEWHERE, MOVING)

    def __bool__(self) -> bool:
        return bool(self._of)

    def unlike(self, other: Holds) -> HoldChanges:
        """Which streams the two may hold differently."""
        names: dict[TenantId, Set[HoldName]] = {}
        for tenant in self._of.keys() | other._of.keys():
            mine, theirs = self._of.get(tenant, {}), other._of.get(tenant, {})
            if mine is not theirs and mine != theirs:
                names[tenant] = {name for name, _ in mine.items() ^ theirs.items()}
        return HoldChanges(names)

    def says_the_same(self, other: Holds) -> bool:
        return self._of == other._of
