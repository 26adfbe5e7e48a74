"""When a connection should go to the process that owns what is sent on it: counts and times only.

A producer speaks for one tenant on a connection that it keeps: after a few requests of it that had
to be passed on, one after the other, the connection itself may go. A gateway that speaks for many
tenants stays where it is. Whatever comes and goes between two owners moves ever more seldom: each
move doubles the rest before the next.
"""

from __future__ import annotations

from fairway.core.backoff import backoff_seconds
from fairway.core.ids import TenantId

PASSED_ON_MIN = 4  # requests of one tenant, one after the other
REST_SECONDS = 10.0  # between the first move and the second
REST_SECONDS_MAX = 640.0


def rest_seconds(moves: int) -> float:
    """How long a connection stays that has moved so often."""
    return backoff_seconds(REST_SECONDS, moves - 1, REST_SECONDS_MAX) if moves else 0.0


class ConnectionMoves:
    """Of one connection: how often it moved, and whose requests were passed on last."""

    __slots__ = ("_passed_on", "_stays_until", "_tenant", "moves")

    def __init__(self, moves: int, now: float) -> None:
        self.moves = moves
        self._stays_until = now + rest_seconds(moves)
        self._tenant: TenantId | None = None
        self._passed_on = 0

    def may_go(self, tenant: TenantId, now: float) -> bool:
        """Told of each request that was passed on; whether its owner may have the connection."""
        if tenant != self._tenant:
            self._tenant, self._passed_on = tenant, 0
        self._passed_on += 1
        return self._passed_on >= PASSED_ON_MIN and now >= self._stays_until
