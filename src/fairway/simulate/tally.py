"""What a simulation counts: waits by pool, tier and minute, ends by state. Sums, no judgement.

Every wait is kept, as a float in an array: an hour of millions of jobs takes some megabytes.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from fairway.core.ids import PoolId, TenantId
from fairway.rig.quantile import quantile
from fairway.simulate.simulation import Life
from fairway.simulate.virtual_time import SECOND_US


def _floats() -> array[float]:
    return array("f")


class Tally:
    def __init__(
        self, tiers: Mapping[TenantId, str], is_held: Callable[[Life], bool] = lambda life: False
    ) -> None:
        """`is_held`: whether a job waited for what it leans on, and not for a slot."""
        self._tiers = tiers
        self._is_held = is_held
        self._held: array[float] = _floats()
        # pool → minute of acceptance → waits in seconds
        self._waits: dict[PoolId, dict[int, array[float]]] = defaultdict(
            lambda: defaultdict(_floats)
        )
        self._by_tier: dict[tuple[str, PoolId], array[float]] = defaultdict(_floats)
        self.ends: Counter[str] = Counter()  # by state
        self.retried = 0

    def add(self, life: Life) -> None:
        """A job is over, or will be: its first start is known."""
        self.ends[life.state] += 1
        self.retried += life.attempts > 1
        if life.arrival.counts and life.started_us >= 0:
            self._wait(life)

    def under_way(self, life: Life) -> None:
        """Its end is beyond the time that was simulated."""
        if not life.arrival.counts:
            return
        if life.started_us >= 0:
            self._wait(life)

    def _wait(self, life: Life) -> None:
        seconds = max(life.wait_us, 0) / SECOND_US
        if self._is_held(life):
            self._held.append(seconds)
            return
        since_us = max(life.accepted_us, life.arrival.due_us)
        self._waits[life.pool][since_us // (60 * SECOND_US)].append(seconds)
        self._by_tier[self._tiers[life.arrival.tenant], life.pool].append(seconds)

    @property
    def held(self) -> int:
        return len(self._held)

    def held_wait(self, q: float) -> float:
        """Of jobs that waited for what they lean on."""
        return quantile(self._held, q)

    def started(self, pool: PoolId) -> int:
        return sum(map(len, self._waits[pool].values()))

    def wait(self, pool: PoolId, q: float) -> float:
        """A quantile of all waits in a pool."""
        return quantile((one for minute in self._waits[pool].values() for one in minute), q)

    def wait_in_minute(self, pool: PoolId, minute: int, q: float) -> float:
        return quantile(self._waits[pool].get(minute, ()), q)

    def wait_of_tier(self, tier: str, pool: PoolId, q: float) -> float:
        return quantile(self._by_tier.get((tier, pool), ()), q)
