"""What workers that serve several owners offer to this one, beside what they have in all.

A worker says with its calls how many of its slots are this owner's; the newest call counts. Its
session's slots are those. Here stands what it has in all, what it runs for others, and whether this
owner is the one that counts it: a worker is counted once, however many owners it serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fairway.core.ids import PoolId, TenantId
from fairway.services.sessions.sessions import Session


class Offer(NamedTuple):
    slots: Mapping[PoolId, int]
    elsewhere: Mapping[PoolId, int] = {}  # runs of other owners
    is_counted: bool = True


class Offered(NamedTuple):
    number: int  # of the call that said it
    whole: Mapping[PoolId, int]
    offer: Offer


class Offers:
    """By session; of a worker that serves this owner alone there is none."""

    def __init__(self) -> None:
        self._said: dict[str, Offered] = {}
        # pool → who would hear of work there, by whose own workers they are; None: everybody's
        self.unoffered: dict[PoolId, dict[TenantId | None, set[str]]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._said

    def forget(self, key: str) -> None:
        if self._said.pop(key, None) is None:
            return
        for pool, by_tenant in list(self.unoffered.items()):
            for whose, keys in list(by_tenant.items()):
                keys.discard(key)
                if not keys:
                    del by_tenant[whose]
            if not by_tenant:
                del self.unoffered[pool]

    def await_work(self, session: Session, pool: PoolId) -> None:
        """Its call is answered as soon as there is work of a pool that it offers no slot of."""
        by_tenant = self.unoffered.setdefault(pool, {})
        by_tenant.setdefault(session.tenant, set()).add(session.key)

    def take_unoffered(self, pool: PoolId, tenants: Iterable[TenantId]) -> Iterator[str]:
        """Whom work of these concerns: another tenant's own workers would ask in vain, and with
        every job again."""
        by_tenant = self.unoffered[pool]
        for whose in (None, *tenants):
            yield from by_tenant.pop(whose, ())
        if not by_tenant:
            del self.unoffered[pool]

    def hear(
        self, session: Session, number: int, offer: Offer, whole: Mapping[PoolId, int] | None = None
    ) -> dict[PoolId, int]:
        """The slots that are this owner's from now on; `whole` is what a hello names."""
        known = self._said.get(session.key)
        if whole is None:
            whole = session.slots if known is None else known.whole
        if known is not None and number < known.number:
            number, offer = known.number, known.offer  # it was overtaken on its way
        self._said[session.key] = Offered(number, whole, offer)
        return {pool: min(slots, offer.slots.get(pool, 0)) for pool, slots in whole.items()}

    def slots_of(self, session: Session) -> Mapping[PoolId, int]:
        """Pool → slots in all."""
        known = self._said.get(session.key)
        return session.slots if known is None else known.whole

    def elsewhere(self, session: Session) -> Mapping[PoolId, int]:
        """Pool → runs of other owners."""
        known = self._said.get(session.key)
        return {} if known is None else known.offer.elsewhere

    def is_counted(self, session: Session) -> bool:
        known = self._said.get(session.key)
        return known is None or known.offer.is_counted
