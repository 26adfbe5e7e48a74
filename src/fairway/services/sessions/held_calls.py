"""Workers' calls that are held open, kept so that an arrival finds who could take it.

Whose call is held the longest is served first. Sessions that could be given the same jobs of a pool
stand in one line, and what the first of a line finds missing, those behind it would miss as well:
so an arrival looks at the head of each line and not at everybody. A session without a free slot
stands in no line until it has one. Lines of a tenant's own workers are looked at only when they or
their tenant changed, for there may be as many of them as tenants.
"""

from __future__ import annotations

import itertools
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.services.sessions.sessions import Session

STALE_SLACK = 16  # entries of calls that are over, before they are swept out

NOT_HELD = -1

# types, those of them that are warm, and the tenants that a shared worker is bound to
Kind: TypeAlias = tuple[frozenset[TypeId], frozenset[TypeId], frozenset[TenantId] | None]


class HeldCall:
    """The call of one session, at its place in the order of all that are held."""

    __slots__ = ("full", "lines", "session", "turn")

    def __init__(self, session: Session, turn: int) -> None:
        self.session = session
        self.turn = turn  # NOT_HELD between two calls
        self.lines: dict[PoolId, Line] = {}  # pool → where it belongs
        self.full: set[PoolId] = set()  # pools without a free slot: it stands in no line there

    def __lt__(self, other: HeldCall) -> bool:
        return False  # at the same place are calls of one session, and one of them at most goes on

    @property
    def is_held(self) -> bool:
        return self.turn != NOT_HELD

    def stand(self) -> None:
        """In the lines of all pools that it has a free slot of."""
        for pool, line in self.lines.items():
            if self.session.free(pool) > 0:
                line.join(self)
            else:
                self.full.add(pool)

    def freed(self, pool: PoolId) -> None:
        """A slot of a pool in which it had none may be free now."""
        if self.session.free(pool) > 0:
            self.full.discard(pool)
            self.lines[pool].join(self)

    def look_again(self) -> None:
        for pool in list(self.full):
            self.freed(pool)

    def is_over(self) -> None:
        """Its entries know by this that they are stale."""
        self.turn = NOT_HELD
        if self.full:
            self.full.clear()


class Line:
    """The sessions that could be given the same jobs of one pool, in the order of their calls."""

    __slots__ = ("_calls", "_stirred", "is_warm", "kind", "members", "pool", "tenant", "widest")

    def __init__(
        self, pool: PoolId, tenant: TenantId | None, kind: Kind, stirred: set[Line]
    ) -> None:
        self.pool = pool
        self.tenant = tenant  # whose own workers they are; None: they run every tenant's jobs
        self.kind = kind
        self.is_warm = bool(kind[1])
        self.members = 0  # those whose call is not held included
        self.widest = 0  # no member had more slots
        self._calls: list[tuple[int, HeldCall]] = []  # a heap
        self._stirred = stirred

    def join(self, call: HeldCall) -> None:
        """It may be the one that was missing."""
        if self.tenant is not None:
            self._stirred.add(self)
        self._push(call)

    def first(self) -> HeldCall | None:
        """Who waits the longest of those with a free slot."""
        calls, pool = self._calls, self.pool
        while calls:
            turn, call = calls[0]
            if call.turn != turn:
                heappop(calls)
            elif call.session.free(pool) <= 0:
                heappop(calls)
                call.full.add(pool)
            else:
                return call
        return None

    def take_first(self) -> HeldCall:
        return heappop(self._calls)[1]

    def put_back(self, call: HeldCall) -> None:
        """It was served and keeps its place, while it has a free slot."""
        if not call.is_held:
            return
        if call.session.free(self.pool) > 0:
            self._push(call)
        else:
            call.full.add(self.pool)

    def _push(self, call: HeldCall) -> None:
        heappush(self._calls, (call.turn, call))
        if len(self._calls) > 2 * self.members + STALE_SLACK:
            self._calls = [entry for entry in self._calls if entry[1].turn == entry[0]]
            heapify(self._calls)


class HeldCalls:
    """All calls that are held, in one line for each thing that they could be given."""

    def __init__(self) -> None:
        self._turns = itertools.count()
        self._calls: dict[Session, HeldCall] = {}
        self._shared: dict[PoolId, dict[Kind, Line]] = {}  # by pool: of workers of all tenants
        self.own: dict[tuple[PoolId, TenantId], dict[Kind, Line]] = {}  # by pool and tenant
        self._stirred: dict[PoolId, set[Line]] = {}  # by pool: own lines to look at again

    def hold(self, session: Session) -> None:
        """Its call is held; a call after another that was held still keeps the place of that."""
        call = self._calls.get(session) or self._enter(session, NOT_HELD)
        if call.turn == NOT_HELD:
            call.turn = next(self._turns)
            call.stand()

    def let_go(self, session: Session) -> None:
        if (call := self._calls.get(session)) is not None:
            call.is_over()

    def review(self, session: Session) -> None:
        """What it may be given has changed."""
        before = self._calls.get(session)
        turn = NOT_HELD if before is None else before.turn
        self.forget(session)
        call = self._enter(session, turn)
        if call.is_held:
            call.stand()

    def forget(self, session: Session) -> None:
        """It is gone, and stands for nothing any more."""
        if (call := self._calls.pop(session, None)) is None:
            return
        call.is_over()
        session.held = None
        for line in call.lines.values():
            line.members -= 1
            if not line.members:
                self._remove(line)

    def _enter(self, session: Session, turn: int) -> HeldCall:
        call = self._calls[session] = session.held = HeldCall(session, turn)
        for pool, slots in session.slots.items():
            if slots > 0:
                line = call.lines[pool] = self._line(pool, session)
                line.members += 1
                line.widest = max(line.widest, slots)
        return call

    def stir(self, pool: PoolId, tenant: TenantId) -> None:
        """The tenant may have something for its own workers that it had not before."""
        if lines := self.own.get((pool, tenant)):
            self._stirred.setdefault(pool, set()).update(lines.values())

    def lines(self, pool: PoolId) -> list[Line]:
        """Those that something may be found for; own ones only if they were stirred since."""
        found = list(self._shared.get(pool, {}).values())
        if stirred := self._stirred.get(pool):
            found += stirred
            stirred.clear()
        return found

    def _line(self, pool: PoolId, session: Session) -> Line:
        lines = self._home(pool, session.tenant)
        kind = (session.types, session.warm_types, session.only_tenants)
        line = lines.get(kind)
        if line is None:
            stirred = self._stirred.setdefault(pool, set())
            line = lines[kind] = Line(pool, session.tenant, kind, stirred)
        return line

    def _home(self, pool: PoolId, tenant: TenantId | None) -> dict[Kind, Line]:
        if tenant is None:
            return self._shared.setdefault(pool, {})
        return self.own.setdefault((pool, tenant), {})

    def _remove(self, line: Line) -> None:
        lines = self._home(line.pool, line.tenant)
        del lines[line.kind]
        if line.tenant is not None:
            self._stirred[line.pool].discard(line)
            if not lines:
                del self.own[line.pool, line.tenant]
