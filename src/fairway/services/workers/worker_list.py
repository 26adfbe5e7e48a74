"""The workers that this server hears: who they are, what they do, and asking one to drain.

It is a view of the dispatcher's sessions; what a worker does about a wish is the worker's affair.
A session's name is its worker's secret: people tell lives apart by a digest of it.
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import NamedTuple

from fairway.core.ids import TenantId
from fairway.runtime.clock import Clock
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.sessions.sessions import Session
from fairway.services.workers.exchange import WAIT_MAX_SECONDS

LIFE_DIGITS = 16
BEATS = 1.5  # a worker that is later than so many of its heartbeats, and
CLOSED = (
    "The pool {pool} has more workers than it needs: this one gets no more jobs, and may go once it"
    " is idle."
)
SLACK_SECONDS = 2.0  # so much for a busy machine, is silent


class WorkerSight(NamedTuple):
    """One life of one worker."""

    name: str
    life: str  # which one, if several have that name
    tenant: TenantId | None
    build: str
    slots: dict[str, int]  # pool name → slots in all
    running: dict[str, int]  # pool name → of those, in use
    draining: bool
    silent_seconds: float
    silent: bool  # for longer than it should be
    limits: dict[str, str]
    closed_seconds: float | None = None  # for how long it has been kept from jobs, to be spared
    closed_because: str | None = None


class WorkerList:
    def __init__(self, dispatcher: Dispatcher, clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._clock = clock

    def workers(self) -> list[WorkerSight]:
        here = [one for one in self._dispatcher.all_sessions() if one.greeted]
        return sorted((self._sight(session) for session in here), key=lambda one: one.name)

    def named(self, name: str) -> list[WorkerSight]:
        """Every life of that name, or the one life; none when it is not heard of here."""
        return [self._sight(session) for session in self._named(name)]

    def ask_to_drain(self, name: str) -> list[WorkerSight]:
        """The same, each asked now."""
        found = self._named(name)
        for session in found:
            session.ask_to_drain()
        return [self._sight(session) for session in found]

    def _named(self, name: str) -> list[Session]:
        return [
            session
            for session in self._dispatcher.all_sessions()
            if session.greeted and name in (session.worker, life_of(session.key))
        ]

    def _sight(self, session: Session) -> WorkerSight:
        names, offers = self._dispatcher.pools.by_number, self._dispatcher.offers()
        running = Counter(session.in_use) + Counter(offers.elsewhere(session))
        now_us = self._clock.now_us()
        silent_seconds = max(now_us - session.seen_us, 0) / 1e6
        closing = self._dispatcher.closed_workers().of(session)
        return WorkerSight(
            session.worker,
            life_of(session.key),
            session.tenant,
            session.build,
            {names[pool].name: slots for pool, slots in offers.slots_of(session).items()},
            {names[pool].name: used for pool, used in running.items()},
            session.draining or session.drain_asked,
            silent_seconds,
            is_silent(silent_seconds, session.heartbeat_ms),
            session.limits,
            None if closing is None else max(now_us - closing.since_us, 0) / 1e6,
            None if closing is None else CLOSED.format(pool=names[closing.pool].name),
        )


def is_silent(seconds: float, heartbeat_ms: int) -> bool:
    """Of one that nobody heard for so long: one of the long pool alone speaks seldom."""
    beat_seconds = min(heartbeat_ms / 1000, WAIT_MAX_SECONDS)
    return seconds > beat_seconds * BEATS + SLACK_SECONDS


def life_of(session: str) -> str:
    """What may be shown of a session: whoever knows its name could ask in it."""
    return sha256(session.encode()).hexdigest()[:LIFE_DIGITS]
