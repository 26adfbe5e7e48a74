"""Whose jobs died in the last minutes, from the lines of history: so many tenants at most.

One tenant whose jobs all die is that tenant's trouble; the same of several is the platform's. Who
tells one from the other is `alarm_readings.py`. No clock: a minute is what it is handed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from fairway.core.ids import TenantId, TypeId
from fairway.core.insight.activity import OTHER_TENANT, OTHER_TYPE
from fairway.core.insight.minutes import ActivityLine, LineKind
from fairway.core.insight.sight import DEATHS_MAX, DeathSight, most_dead

MINUTES = 5


class _MinuteOfDeaths(NamedTuple):
    dead: Counter[TenantId]  # those who have none are not in it
    ended: Counter[TenantId]
    types: Counter[tuple[TenantId, TypeId]]


class RecentDeaths:
    def __init__(self) -> None:
        self._minutes: deque[_MinuteOfDeaths] = deque(maxlen=MINUTES)

    def minute_was(self, lines: Iterable[ActivityLine]) -> None:
        """All that was counted is in the lines of tenants; the smallest are one line together."""
        one = _MinuteOfDeaths(Counter(), Counter(), Counter())
        for line in lines:
            _, type_, tenant = line.subject
            if line.kind is LineKind.TENANT:
                one.dead[tenant] += line.counts.dead
                one.ended[tenant] += line.counts.ended
            elif line.kind is LineKind.TENANT_TYPE and line.counts.dead:
                one.types[tenant, type_] += line.counts.dead
        self._minutes.append(one)

    def totals(self) -> tuple[int, int]:
        """Dead and ended, of all tenants."""
        dead = sum(one.dead.total() for one in self._minutes)
        return dead, sum(one.ended.total() for one in self._minutes)

    def by_tenant(self, name_of: Callable[[TypeId], str]) -> list[DeathSight]:
        """Those with the most dead first."""
        dead, ended = Counter[TenantId](), Counter[TenantId]()
        types = Counter[tuple[TenantId, TypeId]]()
        for one in self._minutes:
            dead.update(one.dead)
            ended.update(one.ended)
            types.update(one.types)
        worst: dict[TenantId, TypeId] = {}
        for (tenant, type_), _ in types.most_common():
            worst.setdefault(tenant, type_)
        found = [
            DeathSight(
                tenant=tenant,
                dead=count,
                ended=ended[tenant],
                type=name_of(worst.get(tenant, OTHER_TYPE)),
            )
            for tenant, count in dead.items()
            if count and tenant != OTHER_TENANT
        ]
        return most_dead(found)[:DEATHS_MAX]
