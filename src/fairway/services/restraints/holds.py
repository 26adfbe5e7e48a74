"""Keeps the dispatcher told of what must not start, whoever says so: pauses, circuits, throttles.

Each source says all of its holds, or all that name a tenant, at once; they are joined and handed on
when something changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairway.core.backlog.holds import Hold
from fairway.core.ids import TenantId
from fairway.services.dispatch.dispatcher import Dispatcher


class HoldRegistry:
    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._by_source: dict[str, dict[TenantId, tuple[Hold, ...]]] = {}  # then by tenant

    def replace(self, source: str, holds: Iterable[Hold]) -> None:
        """All holds of one source, in place of those it named before."""
        found: dict[TenantId, list[Hold]] = {tenant: [] for tenant in self.tenants_of(source)}
        for hold in holds:
            found.setdefault(hold.tenant, []).append(hold)
        self.replace_for(source, {tenant: tuple(named) for tenant, named in found.items()})

    def replace_for(self, source: str, found: Mapping[TenantId, tuple[Hold, ...]]) -> None:
        """All holds of one source that name these tenants; costs what these do, not what all do."""
        told = self._by_source.setdefault(source, {})
        changed = [tenant for tenant, holds in found.items() if told.get(tenant, ()) != holds]
        if not changed:
            return
        for tenant in changed:
            told[tenant] = found[tenant]
            if not found[tenant]:
                del told[tenant]
        before = self._dispatcher.holds()
        joined = before.with_those_of({tenant: self._all_of(tenant) for tenant in changed})
        if not joined.says_the_same(before):
            self._dispatcher.set_holds(joined)

    def _all_of(self, tenant: TenantId) -> list[Hold]:
        return [hold for told in self._by_source.values() for hold in told.get(tenant, ())]

    def of(self, source: str, tenant: TenantId) -> tuple[Hold, ...]:
        """Of one source, those that name this tenant."""
        return self._by_source.get(source, {}).get(tenant, ())

    def tenants_of(self, source: str) -> list[TenantId]:
        """Whom holds of this source name; 0: all tenants."""
        return list(self._by_source.get(source, ()))
