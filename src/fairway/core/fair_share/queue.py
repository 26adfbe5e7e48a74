"""Siblings that compete for slots by weight: start-time fair queueing with an occupancy guard.

A node is one competitor (a tenant, or the free group), and `v` its virtual time. Nodes keep
accounts; the queue of their level decides who goes next.

The smallest virtual time does. Between refunds a node's `v` only grows, so its entry in the heap is
a lower bound: it is checked when it reaches the top and put back if `v` has grown; a refund adds a
second, smaller entry and the old one is recognised as stale (`entries.py`). No decision looks at
every node. The queue knows no jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush, heapreplace
from typing import cast

from msgspec import Struct

from fairway.core.fair_share.entitlements import Entitlement, ShareSettings
from fairway.core.fair_share.entries import STALE_SLACK, Entries, living
from fairway.core.fair_share.estimates import Estimate
from fairway.core.fair_share.virtual_time import SCALE, TENANT_BITS, TENANT_MASK
from fairway.core.ids import TenantId

UNCAPPED = 1 << 60
ABSENT = -1  # a key no entry can have

# The phases of a job in flight, and on whose slot it runs. Plain numbers: this is the hot path.
PREPAID, OVERTIME, DONE = range(3)
# Shared and lent slots are charged for; from RESERVED on, the slot is the tenant's anyway.
SHARED, LENT, RESERVED, OWN = range(4)


class ShareNode:
    """Fair-share account of one tenant in one pool."""

    __slots__ = (
        "accrued_at_us", "adjusted", "aside", "awake", "busy_us", "cap", "carried", "eligible",
        "entitled_from", "entitled_us", "floor_key", "floor_share", "held", "idle_key", "key",
        "lift", "over", "parent", "plain", "queue", "running", "saved", "stride", "tenant",
        "uncharged_running", "v", "weight",
    )  # fmt: skip

    def __init__(self, tenant: TenantId, entitlement: Entitlement, queue: ShareQueue) -> None:
        self.tenant = tenant
        self.queue = queue
        self.parent: ShareNode | None = None
        self.v = queue.v + tenant
        self.lift = self.v  # refunds never take v below this
        self.running = 0  # charged jobs in flight
        self.uncharged_running = 0  # on its reservation or its own workers
        self.over = 0  # of the charged: those past their prepayment
        self.accrued_at_us = 0  # v includes the overtime until here
        self.awake = False  # has jobs to run
        self.eligible = False  # awake and below its cap
        self.key = ABSENT  # its live entry in the queue: v, or a smaller v it once had
        self.held = False  # waits behind the occupancy guard
        self.aside = False  # has nothing for the worker that is asking now
        self.idle_key = ABSENT  # its live entry among the idle: the v it had when it came there
        self.floor_key: tuple[int, int] | None = None  # its live entry among the floors
        self.adjusted = 0  # sum of lifts and clamps: v - adjusted is pure charge
        self.busy_us = 0  # see received_us
        self.entitled_us = 0
        self.entitled_from = 0
        self.saved = 0  # v as last written to a checkpoint
        self.carried = 0  # in which round its entry was last carried over
        self.set_entitlement(entitlement)

    def set_entitlement(self, entitlement: Entitlement) -> None:
        self.weight = entitlement.weight
        self.stride = SCALE // entitlement.weight << TENANT_BITS
        self.floor_share = entitlement.floor_share
        self.cap = UNCAPPED if entitlement.cap is None else entitlement.cap
        self.plain = entitlement.is_plain

    def accrue(self, now_us: int) -> None:
        """Charge overtime up to now."""
        if self.over:
            self.v += self.over * (now_us - self.accrued_at_us) * self.stride
        self.accrued_at_us = now_us

    def start_by_floor(self, charge: int, now_us: int) -> None:
        """Prepay one job owed by the floor: entitled use must not become a debt."""
        self.accrue(now_us)
        self.v += charge
        self.running += 1
        self.review_occupied()
        self.busy_us -= now_us
        self.lower_to(self.queue.v + charge)

    def mark_over(self, over_at_us: int, now_us: int) -> None:
        """A job outlived its prepayment: from now on it is charged as it runs."""
        self.accrue(now_us)
        self.v += (now_us - over_at_us) * self.stride
        self.over += 1

    def adopt(self, running: Running, now_us: int) -> None:
        """Count a job that was charged up to now elsewhere."""
        self.accrue(now_us)
        self.running += 1
        self.review_occupied()
        self.over += running.phase == OVERTIME
        self.busy_us -= now_us

    def end(self, running: Running, charged: int, now_us: int) -> None:
        """Settle one charged job: overtime up to now, or a refund of what it did not use."""
        self.running -= 1
        if not self.running:
            self.review_occupied()
        self.busy_us += now_us
        if running.phase == OVERTIME:
            self.accrue(now_us)
            self.over -= 1
        elif now_us < running.over_at_us:
            # Used time counts at today's weight: a change of terms acts on jobs in flight too.
            unused = charged - (now_us - running.granted_at_us) * self.stride
            if unused > 0:
                self.refund(unused)
        else:
            self.v += (now_us - running.over_at_us) * self.stride

    def review_occupied(self) -> None:
        """Stand among those with jobs in flight, or no longer."""
        if self.running:
            self.queue.occupied[self.tenant] = self
        else:
            self.queue.occupied.pop(self.tenant, None)

    def refund(self, unused: int) -> None:
        """Never below the last wake-up: a prepayment is no way to carry credit through a sleep."""
        v = self.v - unused
        if v < self.lift:
            self.adjusted += self.lift - v
            v = self.lift
        self.v = v

    def raise_to(self, moment: int) -> None:
        """Not before that moment of the queue's virtual time."""
        v = moment + self.tenant
        if self.v < v:
            self.adjusted += v - self.v
            self.v = v

    def lower_to(self, moment: int) -> None:
        """Forgive what lies beyond that moment, which is not before the present."""
        v = moment + self.tenant
        if self.v > v:
            self.adjusted -= self.v - v
            self.v = v
            # Refunds of older jobs must not dig into the past: it has just been settled.
            self.lift = self.queue.v + self.tenant

    def received_us(self, now_us: int) -> int:
        """Slot-microseconds received so far, running jobs included; never falls."""
        return self.busy_us + (self.running + self.uncharged_running) * now_us


class Running(Struct, eq=False, gc=False):
    """One job in flight, as the scheduler sees it."""

    node: ShareNode
    estimate: Estimate
    granted_at_us: int
    over_at_us: int  # when its prepayment ends
    charged: int  # virtual time prepaid
    phase: int = PREPAID
    kind: int = SHARED


class ShareQueue:
    """The eligible nodes of one level, and that level's virtual time."""

    def __init__(self, nodes: dict[TenantId, ShareNode], settings: ShareSettings) -> None:
        self.v = 0  # virtual time of the level; never falls
        self.slots = 0  # what these nodes share
        self._turn_us = 0  # of slot-time: so long a node stays at the head once it is there
        self.weight = 0  # of all eligible nodes
        self.eligible = 0
        self.guard_hits = 0
        self._nodes = cast("Mapping[int, ShareNode]", nodes)  # by what a key ends with
        self.entries = Entries(self._nodes)
        self.heap, self._rest = self.entries.heap, self.entries.rest  # for a quick look
        self.occupied: dict[TenantId, ShareNode] = {}  # nodes with charged jobs in flight
        self._settings = settings
        self._held: list[int] = []  # by v, for when everybody is held
        self._held_by_occupancy: list[int] = []
        self._held_count = 0
        self._entitled = 0  # slot-us per unit of weight since the beginning, times SCALE
        self._entitled_at_us = 0

    def set_slots(self, slots: int) -> None:
        self.slots = slots
        self._turn_us = slots * self._settings.turn_us

    # ---- who competes

    def enter(self, node: ShareNode, now_us: int) -> None:
        """A node has work again; its debt is as old as it is, up to a limit."""
        self.advance(now_us)
        node.entitled_from = self._entitled
        node.eligible = True
        self.eligible += 1
        self.weight += node.weight
        self.lift(node)
        debt_max_us = self._settings.debt_max_us
        if debt_max_us is not None and node.v > self.v + node.tenant:
            node.lower_to(self.v + self._fair_use(debt_max_us))
        self.push(node)

    def lift(self, node: ShareNode) -> None:
        """Whoever wakes starts at the present: absence earns nothing."""
        node.raise_to(self.v)
        node.lift = self.v + node.tenant

    def leave(self, node: ShareNode, now_us: int) -> None:
        """A node has no work, or may not run more; its debt stays with it."""
        self.settle(node, now_us)
        node.eligible = False
        self.eligible -= 1
        self.weight -= node.weight
        self.withdraw(node)
        self.entries.tidy(self.eligible)

    def push(self, node: ShareNode) -> None:
        node.key = node.v
        heappush(self.heap, node.v)
        if self._rest or len(self.heap) > 2 * self.eligible + STALE_SLACK:
            self.entries.tidy(self.eligible)

    def withdraw(self, node: ShareNode) -> None:
        """Out of every heap, though perhaps still eligible; entries left behind are stale."""
        node.key = ABSENT
        if node.held:
            node.held = False
            self._held_count -= 1

    def put_back(self, node: ShareNode) -> None:
        """No worker could run its jobs just now: it keeps its turn, within reason."""
        if node.eligible and node.key == ABSENT:
            node.raise_to(self.v - self._fair_use(self._settings.credit_max_us))
            self.push(node)

    def refresh(self, node: ShareNode) -> None:
        """An eligible node's v may have fallen, or its guard opened."""
        if node.held:
            self.withdraw(node)
            self.push(node)
        elif node.v < node.key:
            self.push(node)

    # ---- who goes next

    def pick(self, now_us: int) -> ShareNode | None:
        """The node with the smallest v under its guard; if all are over it, the smallest v."""
        if self._held_count:
            self._release_held()
        heap, rest, find = self.heap, self._rest, self._nodes.get
        while heap or rest:
            if rest and (not heap or rest[0] < heap[0]):
                self.entries.carry(heappop(rest))
                continue
            key = heap[0]
            node = find(key & TENANT_MASK)
            if node is None or node.key != key:
                heappop(heap)
                continue
            if node.over:
                node.accrue(now_us)
            if node.v != key and node.v - key > self._turn_us * node.stride:
                node.key = node.v
                heapreplace(heap, node.v)
            elif node.running and self.crowded(node):
                self._hold(node)
            else:
                return node
        return self._pick_held(now_us) if self._held_count else None

    def serve(self, node: ShareNode, charge: int, now_us: int) -> None:
        """Prepay one job of the node `pick` returned; virtual time follows whoever is served."""
        key, heap = node.key, self.heap
        moment = (node.v if key == ABSENT else key) - node.tenant
        if moment > self.v:
            self.v = moment
        node.v += charge
        if not node.running:
            self.occupied[node.tenant] = node
        node.running += 1
        node.busy_us -= now_us
        if heap and heap[0] == key:
            self.end_turn(node)

    def end_turn(self, node: ShareNode) -> None:
        """Off the head, if its turn is over, or if it may start no more just now.

        The latter would have to be held at the next look, and let go when one of its jobs ends:
        where tenants outnumber slots, that were most of what a decision costs.
        """
        v = node.v
        if v - node.key > self._turn_us * node.stride or self.crowded(node):
            node.key = v
            heapreplace(self.heap, v)

    def goes_on(self, node: ShareNode) -> bool:
        """Whether a plain node that was just served is still in its turn."""
        key = node.key
        if not node.plain or key == node.v or key == ABSENT:
            return False
        return bool(self.heap) and self.heap[0] == key

    def end_of_turn(self, node: ShareNode) -> int:
        """The virtual time up to which it goes on."""
        return node.key + self._turn_us * node.stride

    def room(self, node: ShareNode) -> int:
        """How many more jobs it may start before it is `crowded`."""
        fair, weight = self.slots * node.weight, self.weight
        most = max(-(-fair // weight), self._settings.guard_share * fair // (1000 * weight))
        return most - node.running

    def crowded(self, node: ShareNode) -> bool:
        """The occupancy guard: holds its fair slots, and one more would pass the tolerance."""
        running, weight = node.running, self.weight
        fair = self.slots * node.weight
        if running * weight < fair:
            return False
        return (running + 1) * weight * 1000 > self._settings.guard_share * fair

    def _hold(self, node: ShareNode) -> None:
        heappop(self.heap)
        if node.held:
            return  # this was a second entry of the same key
        node.held = True
        self._held_count += 1
        self.guard_hits += 1
        heappush(self._held, node.key)
        heappush(self._held_by_occupancy, _occupancy(node))
        if len(self._held) > 2 * self._held_count + STALE_SLACK:
            self._held = sorted(living(self._held, self._nodes))  # as many as slots, at most
            held = (self._nodes[key & TENANT_MASK] for key in self._held)
            self._held_by_occupancy = sorted(map(_occupancy, held))

    def _release_held(self) -> None:
        """Let back in those whose fair share has grown past what they hold."""
        heap = self._held_by_occupancy
        while heap:
            node = self._nodes.get(heap[0] & TENANT_MASK)
            if node is None or not node.held:
                heappop(heap)
            elif heap[0] != (fresh := _occupancy(node)):
                heapreplace(heap, fresh)
            elif self.crowded(node):
                return
            else:
                heappop(heap)
                self.withdraw(node)
                self.push(node)

    def _pick_held(self, now_us: int) -> ShareNode | None:
        heap = self._held
        while heap:
            node = self._nodes.get(heap[0] & TENANT_MASK)
            if node is None or not node.held or node.key != heap[0]:
                heappop(heap)
                continue
            node.accrue(now_us)
            if node.v == node.key:
                return node
            node.key = node.v
            heapreplace(heap, node.v)
        return None

    # ---- bookkeeping

    def forgive(self, nodes: Iterable[ShareNode], now_us: int) -> None:
        """Nobody waits, so what runs takes nothing from anyone: virtual time catches up with it.

        In a pool that is quite empty it catches up with everybody.
        """
        for node in nodes:
            if node.queue is self:
                node.accrue(now_us)
                self.v = max(self.v, node.v - node.tenant)

    def advance(self, now_us: int) -> None:
        elapsed_us = now_us - self._entitled_at_us
        if elapsed_us > 0:
            self._entitled_at_us = now_us
            if self.weight:
                self._entitled += elapsed_us * self.slots * SCALE // self.weight

    def settle(self, node: ShareNode, now_us: int) -> None:
        """Bring the node's entitlement up to now, at the weight it had until now."""
        self.advance(now_us)
        if node.eligible:
            node.entitled_us += (self._entitled - node.entitled_from) * node.weight // SCALE
            node.entitled_from = self._entitled

    def _fair_use(self, span_us: int) -> int:
        """Virtual time that passes while everybody gets its fair slots for that long."""
        return span_us * max(1, self.slots) * SCALE // max(1, self.weight) << TENANT_BITS


def _occupancy(node: ShareNode) -> int:
    return node.running * node.stride + node.tenant
