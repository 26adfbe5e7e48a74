"""A tenant's own workers change nothing for others: neither shares nor how long runs shall take."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from tests.core.fair_worlds import tried

from fairway.core.fair_share.fairness import Entitlement, PoolShare, ShareSettings
from fairway.core.fair_share.node import Running

QUIET, ENEMY = 1, 2
TYPE = 7  # of both
SLOTS = 4
Step = tuple[int, str, int]


class Job(NamedTuple):
    tenant: int
    type: int = TYPE
    timeout_ms: int | None = None


class World:
    """Both have work all the time; shared workers run the quiet one's, the enemy has its own."""

    def __init__(self, weights: tuple[int, int]) -> None:
        self.share = PoolShare(ShareSettings())
        self.share.set_capacity(SLOTS, 0)
        for tenant, weight in zip((QUIET, ENEMY), weights, strict=True):
            self.share.set_entitlement(tenant, Entitlement(weight=weight), 0)
            self.share.wake(tenant, 0)
        self._shared: list[Running] = []
        self._own: list[Running] = []
        self.now_us = 0

    def step(self, gap_us: int, deed: str, count: int, *, with_own: bool) -> None:
        self.now_us += gap_us
        if deed == "grant":
            take = {QUIET: Job(QUIET)}
            granted = self.share.grant(SLOTS - len(self._shared), take.get, self.now_us)
            self._shared += [running for _, running in granted]
        elif deed == "finish" and self._shared:
            self.share.finish(self._shared.pop(count % len(self._shared)), self.now_us)
        elif deed == "own" and with_own:
            granted = self.share.grant_own(ENEMY, count, Job, self.now_us)
            self._own += [running for _, running in granted]
        elif deed == "own ends" and self._own:
            self.share.finish(self._own.pop(count % len(self._own)), self.now_us)
        elif deed == "own adopted" and with_own:
            since_us = self.now_us - gap_us
            self._own.append(self.share.adopt(ENEMY, TYPE, since_us, self.now_us, own=True))

    def seen(self) -> object:
        """All that an explanation of the quiet one's jobs is made of."""
        insight = self.share.insight
        return (
            insight.estimate(TYPE),
            insight.standing(QUIET, self.now_us),
            insight.totals([QUIET], self.now_us),
            self.share.idle_slots,
        )


deeds = st.sampled_from(["grant", "finish", "own", "own ends", "own adopted"])
steps = st.lists(st.tuples(st.integers(0, 30_000_000), deeds, st.integers(1, 9)), max_size=40)


@tried(200)
@given(steps, st.tuples(st.integers(1, 100), st.integers(1, 100)))
def test_own_workers_leave_shares_and_estimates_as_they_are(
    steps: list[Step], weights: tuple[int, int]
) -> None:
    alone, beside = World(weights), World(weights)
    for gap_us, deed, count in steps:
        alone.step(gap_us, deed, count, with_own=False)
        beside.step(gap_us, deed, count, with_own=True)
        assert alone.seen() == beside.seen()
