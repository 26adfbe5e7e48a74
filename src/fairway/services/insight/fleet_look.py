"""The workers of each pool as this server hears them: who is busy, and who has been idle how long.

A session does not note when it ran its last job, for that would cost something with every job: who
is seen without a lease, and was not woken since, has been idle since it was first seen so.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.core.ids import PoolId, TypeId
from fairway.core.insight.fleet_load import FleetLoad, SpareWorker, told
from fairway.core.insight.look import Look
from fairway.core.pools import Pool
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.sessions.sessions import Session

KINDS_MAX = 64  # sets of job types that are compared with each other


class FleetLook:
    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._idle_since_us: dict[str, int] = {}  # session → when it was first seen idle
        self._serving: dict[PoolId, list[Session]] = {}
        self._now_us = 0

    def look(self, now_us: int) -> None:
        """At the sessions, once for all pools."""
        serving: dict[PoolId, list[Session]] = {}
        idle: dict[str, int] = {}
        offers = self._dispatcher.offers()
        for session in self._dispatcher.all_sessions():
            if not (_counts(session) and offers.is_counted(session)):
                continue
            if not self._busy(session):
                since_us = self._idle_since_us.get(session.key, now_us)
                idle[session.key] = max(since_us, session.woken_us)
            for pool, slots in offers.slots_of(session).items():
                if slots > 0:
                    serving.setdefault(pool, []).append(session)
        self._idle_since_us, self._serving, self._now_us = idle, serving, now_us

    def load_of(self, pool: Pool, look: Look, unserved_ms: int) -> FleetLoad:
        """While nobody serves the pool, one of the jobs that no worker runs counts: the first
        worker to come tells which of them it runs. Any tenant may hand in types that nobody runs,
        and a fleet for those would come, find nothing to do, go, and come again."""
        number, waiting = pool.number, look.waiting
        sessions = self._serving.get(number, [])
        jobs, slot_us = waiting.runnable.get(number, 0), waiting.runnable_us.get(number, 0)
        oldest_ms, offers = look.runnable_age_ms(number), self._dispatcher.offers()
        if not sessions and look.held(number).no_worker:
            jobs, slot_us = 1, round(pool.estimate_seconds * 1e6)
            oldest_ms = unserved_ms
        return FleetLoad(
            workers=len(sessions),
            busy_workers=sum(self._busy(one) > 0 for one in sessions),
            closed_workers=sum(one.is_closed for one in sessions),
            slots=sum(offers.slots_of(one)[number] for one in sessions),
            busy_slots=sum(
                one.in_use.get(number, 0) + offers.elsewhere(one).get(number, 0) for one in sessions
            ),
            runnable=jobs,
            runnable_ms=slot_us // 1000,
            oldest_ms=oldest_ms,
            spare=told(map(self._spare, without_keepers(sessions))),
        )

    def _busy(self, session: Session) -> int:
        """Leases that it holds, of other owners, too: it is counted here alone."""
        elsewhere = self._dispatcher.offers().elsewhere(session)
        return len(session.leases) + sum(elsewhere.values())

    def _spare(self, session: Session) -> SpareWorker:
        since_us = self._idle_since_us.get(session.key, self._now_us)
        return SpareWorker(
            name=session.worker,
            busy=self._busy(session),
            idle_ms=max(self._now_us - since_us, 0) // 1000,
            closed=session.is_closed,
        )


def without_keepers(sessions: Sequence[Session]) -> list[Session]:
    """Those that might be spared. Workers of several apps do not stand for each other: of each app
    one stays, or its jobs would wait for a worker that nobody misses."""
    kinds: dict[frozenset[TypeId], Session] = {}
    for one in sessions:
        known = kinds.get(one.types)
        if known is None or _stays_before(one, known):
            kinds[one.types] = one
    if len(kinds) < 2:
        return list(sessions)
    is_many = len(kinds) > KINDS_MAX
    kept = {
        one.key
        for types, one in kinds.items()
        if is_many or not any(types < other for other in kinds)
    }
    return [one for one in sessions if one.key not in kept]


def _stays_before(one: Session, other: Session) -> bool:
    return (not one.is_closed, len(one.leases)) > (not other.is_closed, len(other.leases))


def _counts(session: Session) -> bool:
    """It serves everybody, and stays."""
    is_shared = session.tenant is None and session.only_tenants is None
    return session.greeted and is_shared and not (session.draining or session.drain_asked)
