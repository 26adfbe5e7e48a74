"""Workers that are given no more jobs, since they are to be spared: by pool and name, as decided.

Kept beside the sessions by every server, whether it owns a shard or not: a worker that says hello
to a new owner is closed from that hello on. Only workers that serve everybody are spared: one that
is a tenant's own, or bound to some, is another worker, whatever its name. It decides nothing
(`core/autoscale/policy.py`), and closes none (`services/autoscale`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fairway.core.ids import PoolId
from fairway.services.sessions.sessions import Session


class Closing(NamedTuple):
    pool: PoolId  # that has more workers than it needs
    since_us: int  # as long as this server knows of it


class ClosedWorkers:
    def __init__(self) -> None:
        self._since_us: dict[tuple[PoolId, str], int] = {}  # pool and name

    def replace(self, closed: Iterable[tuple[PoolId, str]], now_us: int) -> None:
        """These, and no others."""
        self._since_us = {one: self._since_us.get(one, now_us) for one in closed}

    def of(self, session: Session) -> Closing | None:
        """Why it is given nothing; None: it is not among them."""
        if session.tenant is not None or session.only_tenants is not None:
            return None
        for pool, slots in session.slots.items():
            since_us = self._since_us.get((pool, session.worker))
            if slots > 0 and since_us is not None:
                return Closing(pool, since_us)
        return None
