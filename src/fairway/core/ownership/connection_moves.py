"""When a connection should go to the process that owns what is sent on it: counts and times only.

A producer speaks for one tenant on a connection that it keeps: after a few requests of it that had
to be passed on, one after the other, the connection itself may go. A gateway that speaks for many
tenants stays where it is, unless that process owns nothing: then any owner is nearer. Whatever
comes and goes between two owners moves ever more seldom: each move doubles the rest before the
next. Nothing goes to a process that has little room left, or is at its limit while this one has
time: there, whoever reads and checks requests for it helps it.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.backoff import backoff_seconds
from fairway.core.ids import TenantId

PASSED_ON_MIN = 4  # requests of one tenant, or to one process, one after the other
REST_SECONDS = 10.0  # between the first move and the second
REST_SECONDS_MAX = 640.0
FULL_PER_MILLE = 700  # of the connections of a process: the rest is for those that come to it
BUSY_PER_MILLE = 850  # of a core
SPARE_PER_MILLE = 200  # of a core: so much less to do has one who goes on reading for another


class ProcessLoad(NamedTuple):
    """How much of what a process may have it has, as it said last."""

    full_per_mille: int  # of its connections
    busy_per_mille: int  # of a core


def may_have_more(there: ProcessLoad, here: ProcessLoad) -> bool:
    """Whether a process should be handed a connection by this one."""
    if there.full_per_mille >= max(FULL_PER_MILLE, here.full_per_mille):
        return False
    is_behind = there.busy_per_mille >= BUSY_PER_MILLE
    return not is_behind or here.busy_per_mille + SPARE_PER_MILLE > there.busy_per_mille


def rest_seconds(moves: int) -> float:
    """How long a connection stays that has moved so often."""
    return backoff_seconds(REST_SECONDS, moves - 1, REST_SECONDS_MAX) if moves else 0.0


class ConnectionMoves:
    """Of one connection: how often it moved, and what was passed on last."""

    __slots__ = ("_alike", "_passed_on", "_stays_until", "moves")

    def __init__(self, moves: int, now: float) -> None:
        self.moves = moves
        self._stays_until = now + rest_seconds(moves)
        self._alike: tuple[int, TenantId | None] | None = None
        self._passed_on = 0

    def may_go(self, tenant: TenantId, number: int, now: float, *, owns_nothing: bool) -> bool:
        """Told of each request that was passed on, to the process of that number by one that owns
        nothing or something; whether that process may have the connection."""
        alike = number, None if owns_nothing else tenant
        if alike != self._alike:
            self._alike, self._passed_on = alike, 0
        self._passed_on += 1
        return self._passed_on >= PASSED_ON_MIN and now >= self._stays_until
