"""What runs cost: what ran, to the microsecond; and a tenant's own workers cost nobody else."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.fair_share.competitors import Competitors
from fairway.core.fair_share.estimates import Estimates
from fairway.core.fair_share.fairness import Entitlement, PoolShare, ShareSettings
from fairway.core.fair_share.ledger import Ledger
from fairway.core.fair_share.queue import DONE, Running
from fairway.core.ids import TenantId, TypeId

QUIET, ENEMY = TenantId(1), TenantId(2)
TYPE = TypeId(7)  # of both
SLOTS = 4
Step = tuple[int, str, int]


class Job(NamedTuple):
    tenant: int
    type: TypeId = TYPE
    timeout_ms: int | None = None


class World:
    """Both have work all the time; shared workers run the quiet one's, the enemy has its own."""

    def __init__(self, weights: tuple[int, int]) -> None:
        self.share = PoolShare(ShareSettings())
        self.share.set_capacity(SLOTS, 0)
        for tenant, weight in zip((QUIET, ENEMY), weights, strict=True):
            self.share.set_entitlement(TenantId(tenant), Entitlement(weight=weight), 0)
            self.share.wake(TenantId(tenant), 0)
        self._shared: list[Running] = []
        self._own: list[Running] = []
        self.now_us = 0

    def step(self, gap_us: int, deed: str, count: int, *, with_own: bool) -> None:
        self.now_us += gap_us
        if deed == "grant":
            take = {TenantId(QUIET): Job(QUIET)}
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
        standings = self.share.standings
        return (
            standings.estimate(TYPE),
            standings.standing(QUIET, self.now_us),
            standings.totals([QUIET], self.now_us),
            self.share.idle_slots,
        )


deeds = st.sampled_from(["grant", "finish", "own", "own ends", "own adopted"])
steps = st.lists(st.tuples(st.integers(0, 30_000_000), deeds, st.integers(1, 9)), max_size=40)


@tried(100)
@given(steps, st.tuples(st.integers(1, 100), st.integers(1, 100)))
def test_own_workers_leave_shares_and_estimates_as_they_are(
    steps: list[Step], weights: tuple[int, int]
) -> None:
    alone, beside = World(weights), World(weights)
    for gap_us, deed, count in steps:
        alone.step(gap_us, deed, count, with_own=False)
        beside.step(gap_us, deed, count, with_own=True)
        assert alone.seen() == beside.seen()


# ---- accounts

turns = st.sampled_from(["start", "start", "start", "end", "end", "nap"])
lives = st.lists(st.tuples(st.integers(0, 200_000), turns, st.integers(0, 5)), max_size=40)


@tried(100)
@given(lives, st.integers(1, 1000))
def test_what_was_charged_is_what_ran(lives: list[Step], weight: int) -> None:
    """However wrong the guess was, whenever that was found out, and whoever slept meanwhile."""
    competitors, estimates = Competitors(ShareSettings()), Estimates(100_000, 1_000, 10_000_000)
    competitors.set_capacity(6, 0)
    competitors.set_entitlement(QUIET, Entitlement(weight=weight), 0)
    competitors.wake(QUIET, 0)
    ledger, node, now_us, ran_us = Ledger(competitors, estimates), competitors.nodes[QUIET], 0, 0
    before = node.v - node.adjusted
    in_flight: list[Running] = []
    for gap_us, turn, place in [*lives, *[(7, "end", 0)] * 6]:
        now_us += gap_us
        ledger.mark_overdue(now_us)
        if turn == "nap":
            competitors.sleep(QUIET, now_us)
            competitors.wake(QUIET, now_us)
        elif turn == "start" and len(in_flight) < 6:
            in_flight.append(ledger.start(node, estimates.of(TYPE), False, now_us))
        elif turn == "end" and in_flight:
            running = in_flight.pop(place % len(in_flight))
            ledger.end(running, now_us)
            ran_us += now_us - running.granted_at_us
            assert running.phase == DONE
    assert (node.running, node.over) == (0, 0)
    assert node.v - node.adjusted - before == ran_us * node.stride
    assert node.received_us(now_us) == ran_us
