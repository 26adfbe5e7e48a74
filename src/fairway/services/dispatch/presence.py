"""Which workers are there, and what that changes: capacity of pools, and what may wait in memory.

A part of the dispatcher; no I/O.
"""

from __future__ import annotations

from fairway.core.fair_share.capacity import SlotOffer
from fairway.core.ids import PoolId, TypeId
from fairway.runtime.clock import Clock
from fairway.services.dispatch.granting import Memory
from fairway.services.dispatch.ports import Ports
from fairway.services.sessions.sessions import Session


class Presence:
    def __init__(self, memory: Memory, ports: Ports, clock: Clock) -> None:
        self._sessions = memory.sessions
        self._shares = memory.shares
        self._backlog = memory.backlog
        self._want_reads = ports.want_reads
        self._clock = clock
        self.lapses = 0  # times that names of types were let go, so far

    def equip(self, session: Session, slots: dict[PoolId, int]) -> None:
        """A session has said hello: its slots count towards the capacity of the pools."""
        session.equip(slots)
        session.close(is_closed=self._sessions.closed.of(session) is not None)
        session.greeted = True
        if session.there_since_us is None:
            session.there_since_us = self._clock.now_us()
        if self._sessions.has(session):  # else it ended while its hello was read
            self._sessions.held.review(session)
            # A tenant's own workers add nothing to what all tenants share.
            shared = slots if session.tenant is None else {}
            said = SlotOffer(session.tenant, session.types, shared)
            self._sessions.headcount.count(session.key, said)
        self.recount()

    def recount(self) -> None:
        """Let what workers came and went change who gets how much, and what may wait in memory."""
        now_us, changes = self._clock.now_us(), self._sessions.headcount.changes()
        for number, slots in changes.capacity.items():
            self._shares[number].set_capacity(slots, now_us)
        if changes.types:
            self._backlog.runnable.set_runnable(changes.types)
        if self._backlog.reads.are_wanted or self._backlog.runnable.is_reviewing:
            self._want_reads()

    def hear_anew(self, types: set[TypeId]) -> None:
        """Whoever runs one of these says hello again."""
        self.lapses += 1
        for session in self._sessions.values():
            if not session.types.isdisjoint(types):
                session.doubt()

    def forget_greetings(self) -> None:
        """All say hello again: what they said is of other shards than those owned now."""
        sessions = self._sessions.values()
        for session in sessions:
            session.there_since_us = None  # what ended meanwhile is said after the hello
        if any(session.greeted for session in sessions):
            for session in sessions:
                session.doubt()
            self._sessions.headcount.forget_all()
            self.recount()
