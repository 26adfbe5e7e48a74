"""Idle nodes: taken when their debt is over, each once, and never by a walk over a crowd."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.fair_share.entitlements import Entitlement, ShareSettings
from fairway.core.fair_share.idle_nodes import LOOKS_MIN, LOOKS_SHARE, IdleNodes
from fairway.core.fair_share.queue import ABSENT, ShareNode, ShareQueue
from fairway.core.fair_share.virtual_time import TENANT_BITS
from fairway.core.ids import TenantId

CROWD = 50_000


class Room:
    def __init__(self, tenants: int) -> None:
        self.nodes: dict[TenantId, ShareNode] = {}
        self.queue = ShareQueue(self.nodes, ShareSettings())
        self.idle = IdleNodes(self.nodes, self.queue)
        for number in range(1, tenants + 1):
            tenant = TenantId(number)
            self.nodes[tenant] = ShareNode(tenant, Entitlement(), self.queue)

    def owe(self, tenant: int, debt: int) -> None:
        node = self.nodes[TenantId(tenant)]
        node.raise_to(debt << TENANT_BITS)
        self.idle.add(node)

    def at(self, moment: int) -> set[int]:
        """Who leaves until that moment of virtual time, with as many looks as it takes."""
        self.queue.v = moment << TENANT_BITS
        found = list[int]()
        for _ in range(100):
            found += [node.tenant for node in self.idle.take_settled()]
        assert len(found) == len(set(found)), "each once"
        return set(found)


@tried(100)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), max_size=60), st.integers(0, 40))
def test_those_leave_whose_debt_is_over(owing: list[tuple[int, int]], moment: int) -> None:
    room = Room(9)
    for tenant, debt in owing:
        room.owe(tenant, debt)  # again and again: debts grow
    most = {tenant: max(d for t, d in owing if t == tenant) for tenant, _ in owing}
    assert room.at(moment) == {tenant for tenant, debt in most.items() if debt <= moment}
    assert room.at(40) == {tenant for tenant, debt in most.items() if debt > moment}
    assert all(node.idle_key == ABSENT for node in room.nodes.values())


def test_a_crowd_leaves_in_small_parts() -> None:
    room = Room(CROWD)
    for tenant in range(1, CROWD + 1):
        room.owe(tenant, 1)
    room.queue.v = 1 << TENANT_BITS
    assert len(room.idle.take_settled()) == LOOKS_MIN + CROWD // LOOKS_SHARE


def test_a_crowd_that_owes_is_not_walked_over() -> None:
    room = Room(CROWD)
    for tenant in range(1, CROWD + 1):
        room.owe(tenant, tenant)
    began = time.process_time()
    for _ in range(100):
        assert room.idle.take_settled() == []
    assert time.process_time() - began < 0.05, "a walk over all takes some ten milliseconds"
