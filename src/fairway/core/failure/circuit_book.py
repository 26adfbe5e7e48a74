"""All circuits in memory, by tenant, job type and dependency; so many of a tenant at most.

A worker says what its jobs lean on, so names cost a tenant nothing, and a circuit that is open is
not forgotten. Beyond the first few hundred pairs of type and dependency, a tenant's types have one
circuit each for all that they lean on (`other`); beyond the last, none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from fairway.core.failure.circuits import Circuit
from fairway.core.ids import TenantId, TypeId

DEPENDENCIES_MAX = 16  # that one job type may name; a name is not a place for data
NAMED_MAX = 200  # of a tenant, while it has no more circuits than these
CIRCUITS_MAX = 1_000  # of a tenant in all
OTHER = "other"
NONE: Mapping[str, Circuit] = {}


class CircuitBook:
    def __init__(self) -> None:
        self._of: dict[TenantId, dict[TypeId, dict[str, Circuit]]] = {}
        self._counts: Counter[TenantId] = Counter()  # by tenant

    def tenants(self) -> list[TenantId]:
        return list(self._of)

    def __contains__(self, tenant: TenantId) -> bool:
        return tenant in self._of

    def count(self, tenant: TenantId) -> int:
        return self._counts[tenant]

    def of_type(self, tenant: TenantId, type_: TypeId) -> Mapping[str, Circuit]:
        return self._of.get(tenant, {}).get(type_, NONE)

    def of_tenant(self, tenant: TenantId) -> Iterator[tuple[TypeId, Mapping[str, Circuit]]]:
        """Each type with its circuits; to be gone through at a stretch."""
        yield from self._of.get(tenant, {}).items()

    def name_of(self, tenant: TenantId, type_: TypeId, dependency: str) -> str | None:
        """The circuit that this dependency has, or would share; None: there is no room for one."""
        named = self.of_type(tenant, type_)
        is_full = len(named) >= DEPENDENCIES_MAX or self._counts[tenant] >= NAMED_MAX
        if is_full and dependency not in named:
            dependency = OTHER
        return dependency if dependency in named or self.has_room(tenant) else None

    def has_room(self, tenant: TenantId) -> bool:
        return self._counts[tenant] < CIRCUITS_MAX

    def put(self, tenant: TenantId, type_: TypeId, name: str, circuit: Circuit) -> None:
        named = self._of.setdefault(tenant, {}).setdefault(type_, {})
        self._counts[tenant] += name not in named
        named[name] = circuit

    def forget_idle(self, tenant: TenantId, now_us: int) -> None:
        """Of one tenant, those that are closed and remember nothing."""
        types = self._of.get(tenant, {})
        for type_, named in list(types.items()):
            for name in [name for name, circuit in named.items() if circuit.is_idle(now_us)]:
                del named[name]
                self._counts[tenant] -= 1
            if not named:
                del types[type_]
        if not types:
            self._of.pop(tenant, None)
            del self._counts[tenant]
