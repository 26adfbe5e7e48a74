"""Break the scheduler on purpose, one rule at a time: the property checks must notice.

Each mutant replaces one small method. The same world is first run whole, where the check must be
silent: a check that always complains proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.core.fair_checks import (
    VirtualTimeWatcher,
    WatchedShare,
    hoarded,
    share_errors,
    unpaid_time,
    watch_caps,
    watch_reservations,
    watch_work_conserving,
)
from tests.core.fair_simulation import LOOSE, PLAIN, SECOND, Load, Simulation

from fairway.core.fair_share.competitors import Competitors
from fairway.core.fair_share.fairness import Entitlement
from fairway.core.fair_share.floors import Floors
from fairway.core.fair_share.queue import ABSENT, ShareNode, ShareQueue
from fairway.core.fair_share.reserve import Reserve
from fairway.core.ids import TenantId

# ---- worlds, each with the check that guards the rule


def returning_idler() -> list[str]:
    """P5: away for 40 s, then back; one long job keeps its account, and no guard helps."""
    sim = Simulation(20, {1: Load(run_us=(70 * SECOND, *[SECOND // 2] * 99)), 2: Load()}, LOOSE)
    sim.at(5 * SECOND, lambda: sim.sleep(1))
    sim.at(45 * SECOND, lambda: sim.wake(1))
    sim.run(65 * SECOND)
    return hoarded(sim, 1, 45 * SECOND)


def prepaying_idler() -> list[str]:
    """P4: prepays 10 s for a job of 5 s, sleeps, wakes, and is then refunded into its sleep."""
    world = {
        1: Load(run_us=(5 * SECOND, 50_000), believed_us=10 * SECOND, jobs=1),
        2: Load(run_us=(100_000,)),
    }
    sim = Simulation(20, world)
    sim.watchers.append(VirtualTimeWatcher())
    sim.at(4 * SECOND, lambda: sim.wake(1, jobs=1))
    return sim.run(8 * SECOND).violations


def underestimated_hog() -> list[str]:
    """P13: jobs of two minutes that were believed to take 0.3 s."""
    world = {
        1: Load(terms=Entitlement(weight=100), run_us=(120 * SECOND,), believed_us=300_000),
        2: Load(terms=Entitlement(weight=100), run_us=(300_000,)),
    }
    sim = Simulation(50, world).run(60 * SECOND)
    return share_errors(sim, 0.15, (0, 60 * SECOND))


def drained_pool() -> list[str]:
    """P3: everything ran; was everything charged?"""
    world = {
        n: Load(run_us=(n * 700_000,), believed_us=SECOND, jobs=20, terms=Entitlement(weight=n))
        for n in (1, 2, 3)
    }
    sim = Simulation(4, world)
    sim.share._competitors._sweep_at_us = 1 << 60
    sim.run(200 * SECOND)
    return unpaid_time(sim)


def watched_choices() -> list[str]:
    """P1, P8: every single choice."""
    world = {
        1: Load(terms=Entitlement(floor_share=200, weight=1)),
        2: Load(run_us=(50_000, 900_000), believed_us=5 * SECOND),
        3: Load(terms=Entitlement(weight=100)),
    }
    share = WatchedShare(PLAIN)
    Simulation(20, world, share=share).run(20 * SECOND)
    return share.watched.violations


def idle_owner() -> list[str]:
    """P9: an owner of reserved slots that comes late, among long jobs of others."""
    world = {
        1: Load(terms=Entitlement(reserved=6), from_us=5 * SECOND),
        2: Load(run_us=(3 * SECOND,)),
    }
    sim = Simulation(10, world)
    sim.watchers.append(watch_reservations)
    return sim.run(30 * SECOND).violations


def capped_and_busy() -> list[str]:
    """P7, P10: one tenant may run two jobs, the other all it likes."""
    sim = Simulation(10, {1: Load(terms=Entitlement(cap=2)), 2: Load(jobs=300)})
    sim.watchers += [watch_work_conserving, watch_caps]
    return sim.run(30 * SECOND).violations


def indebted_sleeper() -> list[str]:
    """P6: a debt of many slot-seconds, slept over for a moment."""
    sim = Simulation(20, {1: Load(run_us=(60 * SECOND,), believed_us=1000), 2: Load()}, LOOSE)
    debts: list[int] = []
    for moment, action in ((29, None), (30, sim.sleep), (31, sim.wake)):
        if action:
            sim.at(moment * SECOND, lambda act=action: act(1))  # type: ignore[misc]
        sim.run(moment * SECOND)
        node = sim.share._competitors.node(TenantId(1))
        node.accrue(sim.now_us)
        debts.append(node.v)
    return ["the debt is gone"] if debts[-1] < debts[0] else []


# ---- mutants

whole_push, whole_pick = ShareQueue.push, ShareQueue.pick


def no_lift(queue: ShareQueue, node: ShareNode) -> None:
    node.lift = node.v


def unclamped_refund(node: ShareNode, unused: int) -> None:
    node.v -= unused


def no_refund(node: ShareNode, unused: int) -> None:
    return


def no_guard(queue: ShareQueue, node: ShareNode) -> bool:
    return False


def no_overtime(node: ShareNode, over_at_us: int, now_us: int) -> None:
    node.over += 1


def no_accrual(node: ShareNode, now_us: int) -> None:
    node.accrued_at_us = now_us


def no_floors(floors: Floors) -> ShareNode | None:
    return None


def deaf_push(queue: ShareQueue, node: ShareNode) -> None:
    if node.key == ABSENT:
        whole_push(queue, node)


def nothing_reserved(reserve: Reserve, capacity: int) -> None:
    return


def always_eligible(competitors: Competitors, node: ShareNode, now_us: int) -> None:
    if node.awake and not node.eligible:
        competitors._enter(node, now_us)
    elif not node.awake and node.eligible:
        competitors._leave(node, now_us)


def forgetful_leave(queue: ShareQueue, node: ShareNode, now_us: int) -> None:
    node.v = queue.v + node.tenant
    node.eligible = False
    queue.eligible -= 1
    queue.weight -= node.weight
    queue.withdraw(node)


def lazy_pick(queue: ShareQueue, now_us: int) -> ShareNode | None:
    node = whole_pick(queue, now_us)
    return node if node and node.running < 4 else None


def free_of_charge(queue: ShareQueue, node: ShareNode, charge: int, now_us: int) -> None:
    node.running += 1


@dataclass(frozen=True)
class Mutant:
    owner: type
    method: str
    replacement: Callable[..., Any]
    world: Callable[[], list[str]]

    def __str__(self) -> str:
        return f"{self.replacement.__name__} in {self.world.__name__}"


MUTANTS = [
    Mutant(ShareQueue, "lift", no_lift, returning_idler),
    Mutant(ShareNode, "refund", unclamped_refund, prepaying_idler),
    Mutant(ShareNode, "refund", no_refund, drained_pool),
    Mutant(ShareQueue, "crowded", no_guard, underestimated_hog),
    Mutant(ShareNode, "mark_over", no_overtime, drained_pool),
    Mutant(ShareNode, "accrue", no_accrual, drained_pool),
    Mutant(ShareQueue, "serve", free_of_charge, drained_pool),
    Mutant(Floors, "neediest", no_floors, watched_choices),
    Mutant(ShareQueue, "push", deaf_push, watched_choices),
    Mutant(Reserve, "fit", nothing_reserved, idle_owner),
    Mutant(Competitors, "admit", always_eligible, capped_and_busy),
    Mutant(ShareQueue, "leave", forgetful_leave, indebted_sleeper),
    Mutant(ShareQueue, "pick", lazy_pick, capped_and_busy),
]


WORLDS = sorted({mutant.world for mutant in MUTANTS}, key=repr)


@pytest.mark.parametrize("world", WORLDS)
def test_the_whole_scheduler_passes(world: Callable[[], list[str]]) -> None:
    assert world() == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_rule_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant.owner, mutant.method, mutant.replacement)
    assert mutant.world() != []
