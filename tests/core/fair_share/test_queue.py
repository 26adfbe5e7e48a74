"""The queue of one level against a look at every node, which it never takes itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from tests.core.fair_simulation import LOOSE, PLAIN
from tests.properties import tried

from fairway.core.fair_share import entries
from fairway.core.fair_share import queue as queue_module
from fairway.core.fair_share.entitlements import Entitlement, ShareSettings
from fairway.core.fair_share.queue import ShareNode, ShareQueue
from fairway.core.ids import TenantId

TENANTS = 6
Step = tuple[str, int, int]

deeds = st.sampled_from(["serve", "serve", "serve", "refund", "end", "leave", "aside", "back"])
steps = st.lists(
    st.tuples(deeds, st.integers(1, TENANTS), st.integers(0, 1_000)), min_size=5, max_size=60
)


class Level:
    """Every node of one queue; what was paid can be given back, down to where it woke."""

    def __init__(self, settings: ShareSettings, weights: list[int]) -> None:
        self.nodes: dict[TenantId, ShareNode] = {}
        self.queue = ShareQueue(self.nodes, replace(settings, turn_us=0))
        self.queue.set_slots(8)
        for number, weight in enumerate(weights, 1):
            tenant = TenantId(number)
            self.nodes[tenant] = ShareNode(tenant, Entitlement(weight=weight), self.queue)
            self.queue.enter(self.nodes[tenant], 0)

    def step(self, deed: str, tenant: int, amount: int) -> None:
        node, queue = self.nodes[TenantId(tenant)], self.queue
        if deed == "serve":
            if (chosen := queue.pick(0)) is not None:
                queue.serve(chosen, amount * chosen.stride, 0)
        elif deed in ("refund", "end"):
            node.refund(amount * node.stride if deed == "refund" else 0)
            node.running = max(node.running - (deed == "end"), 0)
            if node in self.waiting():
                queue.refresh(node)
        elif deed == "leave":
            if node.eligible:
                queue.leave(node, 0)
            else:
                queue.enter(node, 0)
            node.aside = False
        elif deed == "aside" and node.eligible and not node.aside:
            node.aside = True
            queue.withdraw(node)
        elif deed == "back" and node.aside:
            node.aside = False
            queue.put_back(node)

    def waiting(self) -> list[ShareNode]:
        return [node for node in self.nodes.values() if node.eligible and not node.aside]


@tried(100)
@given(st.lists(st.integers(1, 100), min_size=TENANTS, max_size=TENANTS), steps)
def test_the_smallest_virtual_time_goes_next(weights: list[int], steps: list[Step]) -> None:
    level = Level(LOOSE, weights)
    for deed, tenant, amount in steps:
        level.step(deed, tenant, amount)
        waiting = level.waiting()
        expected = min(waiting, key=lambda node: node.v, default=None)
        assert level.queue.pick(0) is expected
        eligible = [node for node in level.nodes.values() if node.eligible]
        assert level.queue.eligible == len(eligible)
        assert level.queue.weight == sum(node.weight for node in eligible)


@tried(100)
@given(steps)
def test_who_holds_its_fair_slots_goes_after_all_others(steps: list[Step]) -> None:
    """Only where all do is the smallest virtual time served again."""
    level = Level(PLAIN, [10] * TENANTS)
    for deed, tenant, amount in steps:
        level.step(deed, tenant, amount)
        waiting = level.waiting()
        under = [node for node in waiting if not level.queue.crowded(node)]
        expected = min(under or waiting, key=lambda node: node.v, default=None)
        assert level.queue.pick(0) is expected


@tried(100)
@given(steps)
def test_virtual_time_never_falls_and_who_wakes_starts_at_the_present(steps: list[Step]) -> None:
    level, before = Level(PLAIN, [10] * TENANTS), 0
    for deed, tenant, amount in steps:
        was_eligible = level.nodes[TenantId(tenant)].eligible
        level.step(deed, tenant, amount)
        queue, node = level.queue, level.nodes[TenantId(tenant)]
        assert queue.v >= before
        before = queue.v
        if deed == "leave" and not was_eligible:
            assert node.v >= queue.v + node.tenant


# -- stale entries -------------------------------------------------------------------------------


@contextmanager
def tidied(slack: int, carried: int) -> Iterator[None]:
    ours = patch.multiple(entries, STALE_SLACK=slack, CARRIED=carried)
    with ours, patch.object(queue_module, "STALE_SLACK", slack):
        yield


@tried(100)
@given(
    st.lists(st.integers(1, 100), min_size=TENANTS, max_size=TENANTS),
    steps,
    st.integers(-2 * TENANTS, 3),
    st.integers(1, 3),
    st.sampled_from([PLAIN, LOOSE]),
)
def test_to_tidy_up_changes_no_order(
    weights: list[int], steps: list[Step], slack: int, carried: int, settings: ShareSettings
) -> None:
    """Against a queue that never does, and a look at every node."""
    ours, theirs = Level(settings, weights), Level(settings, weights)
    for deed, tenant, amount in steps:
        with tidied(slack, carried):
            ours.step(deed, tenant, amount)
            picked = ours.queue.pick(0)
        with tidied(1_000_000, 1):
            theirs.step(deed, tenant, amount)
            other = theirs.queue.pick(0)
        assert (picked and picked.tenant) == (other and other.tenant)
        waiting = ours.waiting()
        under = [node for node in waiting if not ours.queue.crowded(node)]
        if settings is PLAIN:
            assert picked is min(under or waiting, key=lambda node: node.v, default=None)


def entries_of(queue: ShareQueue) -> int:
    return len(queue.entries.heap) + len(queue.entries.rest)


def test_no_call_tidies_all_and_entries_stay_in_proportion() -> None:
    """Nodes come, go and come back with the same virtual time, and at last all go."""
    count = 2_000
    level = Level(PLAIN, [1] * count)
    queue, nodes = level.queue, list(level.nodes.values())
    most = 0
    for turn in range(6):
        for node in nodes:
            for act in (queue.leave, queue.enter) if turn < 5 else (queue.leave,):
                before = entries_of(queue)
                act(node, 0)
                assert abs(entries_of(queue) - before) <= entries.CARRIED
                bound = 2 * queue.eligible + entries.STALE_SLACK
                most = max(most, entries_of(queue) - 2 * bound)
    assert most <= 0
    assert queue.eligible == 0
    assert entries_of(queue) <= 3 * entries.STALE_SLACK
    assert queue.pick(0) is None
