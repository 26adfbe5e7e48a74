"""The properties of fair sharing as plain functions: each returns what it found wrong.

Watchers look at the pool after every step; the other checks look at what happened in the end.
The property tests expect them to be silent, the mutant tests expect them to speak.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from tests.core.fair_simulation import SECOND, Simulation

from fairway.core.fair_share.competitors import Competitors
from fairway.core.fair_share.estimates import Estimate, Estimates
from fairway.core.fair_share.fairness import PoolShare, Running, ShareSettings
from fairway.core.fair_share.ledger import Ledger
from fairway.core.fair_share.queue import LENT, RESERVED, SHARED, ShareNode
from fairway.core.ids import TenantId


class WatchedLedger(Ledger):
    """The real ledger; every choice it books is compared with all the others there were."""

    def __init__(self, competitors: Competitors, estimates: Estimates) -> None:
        super().__init__(competitors, estimates)
        self.violations: list[str] = []
        self.choices = 0

    def start(self, node: ShareNode, estimate: Estimate, by_floor: bool, now_us: int) -> Running:
        self.choices += 1
        if not by_floor:
            self._check_smallest(node, now_us)  # P1
            self._check_no_needy(now_us)  # P8
        return super().start(node, estimate, by_floor, now_us)

    def start_in_turn(self, node: ShareNode, estimate: Estimate, now_us: int) -> Running:
        self.choices += 1
        self._check_smallest(node, now_us)
        self._check_no_needy(now_us)
        return super().start_in_turn(node, estimate, now_us)

    def _check_smallest(self, node: ShareNode, now_us: int) -> None:
        """Nobody is further behind than the node's turn is long."""
        node.accrue(now_us)
        turn = node.queue.slots * self._competitors.settings.turn_us * node.stride
        for other in self._rivals(node):
            other.accrue(now_us)
            open_to_other = node.queue.crowded(node) or not node.queue.crowded(other)
            if other.v < node.v - turn and open_to_other:
                self.violations.append(f"{now_us}: {node.tenant} went before {other.tenant}")

    def _rivals(self, node: ShareNode) -> list[ShareNode]:
        nodes = self._competitors.nodes.values()
        return [n for n in nodes if n.queue is node.queue and n.eligible and not n.aside]

    def _check_no_needy(self, now_us: int) -> None:
        floors = self._competitors.floors
        for node in self._competitors.nodes.values():
            if node.eligible and not node.aside and node.floor_share and floors.below(node):
                self.violations.append(f"{now_us}: {node.tenant} is below its floor, passed over")


class WatchedShare(PoolShare):
    """The real scheduler with a watched ledger."""

    def __init__(self, settings: ShareSettings) -> None:
        super().__init__(settings)
        self._ledger = self.watched = WatchedLedger(self._competitors, self._estimates)


# ---- watchers


class VirtualTimeWatcher:
    """P4: virtual time never falls, and nobody's falls below its lift."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    def __call__(self, sim: Simulation) -> None:
        competitors = sim.share._competitors
        for name, queue in enumerate((competitors.paid, competitors.free)):
            if queue.v < self._last.get(name, 0):
                sim.violations.append(f"{sim.now_us}: virtual time {name} fell")
            self._last[name] = queue.v
        for node in competitors.nodes.values():
            if node.v < node.lift:
                sim.violations.append(f"{sim.now_us}: {node.tenant} fell below its lift")


def watch_work_conserving(sim: Simulation) -> None:
    """P7: no slot is idle while a tenant below its cap has work."""
    if sum(sim.busy.values()) >= sim.slots:
        return
    for tenant, load in sim.loads.items():
        cap = load.terms.cap
        if sim.waiting(tenant) and (cap is None or sim.busy[tenant] < cap):
            sim.violations.append(f"{sim.now_us}: a slot is idle while {tenant} waits")


def watch_caps(sim: Simulation) -> None:
    """P10: nobody runs more than its cap; a cap that was lowered admits nobody new."""
    for run in reversed(sim.runs):
        if run.start_us < sim.now_us:
            return
        cap = sim.loads[run.tenant].terms.cap
        if cap is not None and sim.busy[run.tenant] > cap:
            sim.violations.append(f"{sim.now_us}: {run.tenant} runs {sim.busy[run.tenant]} > {cap}")


def watch_reservations(sim: Simulation) -> None:
    """P9: shared work leaves reserved slots alone, except for short loans."""
    if not sim.runs or sim.runs[-1].start_us != sim.now_us:
        return
    now = [run for run in sim.runs[-sim.slots :] if run.start_us == sim.now_us]
    if any(run.kind == SHARED for run in now) and _shared(sim) > sim.slots - _set_apart(sim):
        sim.violations.append(f"{sim.now_us}: shared work runs on reserved slots")
    if any(run.kind == LENT and (run.timeout_ms or 9999) > 2000 for run in now):
        sim.violations.append(f"{sim.now_us}: a loan without a short limit")


def _shared(sim: Simulation) -> int:
    return sum(run.kind == SHARED for _, run in sim.in_flight.values())


def _set_apart(sim: Simulation) -> int:
    """Slots that reservations keep or use, counted from the terms."""
    used = Counter(run.tenant for _, run in sim.in_flight.values() if run.kind == RESERVED)
    promised = {tenant: load.terms.reserved for tenant, load in sim.loads.items()}
    scale = max(sim.slots, sum(promised.values()))
    return sum(max(slots * sim.slots // scale, used[t]) for t, slots in promised.items())


# ---- histories


def pairwise_gaps(
    sim: Simulation, factor: float, spans: list[tuple[int, int]], extra_us: float = 0
) -> list[str]:
    """P2: tenants that always had work received the same per weight, up to a few jobs."""
    found = []
    for (from_us, until_us), (a, b) in (
        (span, pair) for span in spans for pair in combinations(sim.loads, 2)
    ):
        per_weight, allowed = [], extra_us
        for tenant in (a, b):
            load = sim.loads[tenant]
            per_weight.append(sim.received_us(tenant, from_us, until_us) / load.terms.weight)
            allowed += factor * max(load.run_us) / load.terms.weight
        if abs(per_weight[0] - per_weight[1]) > allowed:
            found.append(f"{a}, {b} in {from_us}..{until_us}: {per_weight} differ by > {allowed}")
    return found


def unpaid_time(sim: Simulation) -> list[str]:
    """P3: after everything ended, what was charged is what ran, to the microsecond."""
    found = []
    for tenant in sim.loads:
        node = sim.share._competitors.nodes[TenantId(tenant)]
        charged = node.v - node.adjusted - tenant
        ran = sum(r.run_us for r in sim.runs if r.tenant == tenant and r.kind == SHARED)
        if charged != ran * node.stride:
            found.append(f"{tenant}: charged {charged / node.stride} us for {ran} us")
    return found


def hoarded(sim: Simulation, tenant: int, since_us: int, limit: float = 1.1) -> list[str]:
    """P5: in the 20 s after its return a tenant takes its share, not what it missed."""
    until_us = since_us + 20 * SECOND
    weights = {each: load.terms.weight for each, load in sim.loads.items()}
    fair_us = sim.slots * 20 * SECOND * weights[tenant] / sum(weights.values())
    got_us = sim.received_us(tenant, since_us, until_us)
    return [f"{tenant} got {got_us / fair_us:.2f} of its share"] if got_us > limit * fair_us else []


def share_errors(
    sim: Simulation, tolerance: float, span_us: tuple[int, int], whole_slots: int = 0
) -> list[str]:
    """P13: shares of slot-time follow the weights, whatever was believed about the jobs."""
    total = sum(load.terms.weight for load in sim.loads.values())
    found = []
    for tenant, load in sim.loads.items():
        fair, got = load.terms.weight / total, sim.share_of(tenant, *span_us)
        if abs(got - fair) > tolerance * fair + whole_slots / sim.slots:
            found.append(f"{tenant}: {got:.4f} instead of {fair:.4f} in {span_us}")
    return found


def longest_waits(sim: Simulation, slack_us: int) -> list[str]:
    """P15: a tenant with work and nothing running starts a job within its turn."""
    weights = {each: load.terms.weight for each, load in sim.loads.items()}
    longest_us = max(max(load.run_us) for load in sim.loads.values())
    # One job of its own, and one of everybody else's, must pass at the pool's pace.
    found = []
    for tenant, load in sim.loads.items():
        own_us = max(load.run_us) / weights[tenant] * sum(weights.values()) / sim.slots
        others_us = sum(max(o.run_us) for o in sim.loads.values()) / sim.slots
        limit_us = own_us + others_us + longest_us + slack_us
        wait_us = _longest_gap(sim, tenant)
        if wait_us > limit_us:
            found.append(f"{tenant} waited {wait_us} us, more than {limit_us:.0f}")
    return found


def _longest_gap(sim: Simulation, tenant: int) -> int:
    idle_from_us, longest_us = sim.loads[tenant].from_us, 0
    for run in (run for run in sim.runs if run.tenant == tenant):
        longest_us = max(longest_us, run.start_us - idle_from_us)
        idle_from_us = max(idle_from_us, run.start_us + run.run_us)
    return max(longest_us, sim.now_us - idle_from_us)
