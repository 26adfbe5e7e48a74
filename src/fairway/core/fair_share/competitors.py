"""Who competes for the slots of one pool: terms, nodes, and the queues they stand in.

Keeps every node in the right queue as it wakes, sleeps, reaches a cap or changes its terms, and
forgets nodes that hold neither work nor debt. Whom to serve is `fairness.py`'s decision.
"""

from __future__ import annotations

from fairway.core.fair_share.entitlements import FREE, Entitlement, ShareSettings
from fairway.core.fair_share.floors import Floors
from fairway.core.fair_share.idle_nodes import IdleNodes
from fairway.core.fair_share.queue import ShareNode, ShareQueue
from fairway.core.fair_share.recently_active import RecentlyActive
from fairway.core.fair_share.reserve import Reserve
from fairway.core.fair_share.virtual_time import TENANT_BITS, TENANT_MASK
from fairway.core.ids import TenantId

GROUP = TenantId(TENANT_MASK)  # the free group's number among the tenants
_SWEEP_US = 20_000
_FORGIVE_US, _FORGIVE_ALL_US = 50_000, 1_000_000
_NODE_US = 10  # housekeeping over n nodes waits n times this: about one per cent of a core
_STANDARD = Entitlement()


class Competitors:
    """All nodes of one pool."""

    def __init__(self, settings: ShareSettings) -> None:
        self.settings = settings
        self.nodes: dict[TenantId, ShareNode] = {}
        self.paid = ShareQueue(self.nodes, settings)
        self.free = ShareQueue(self.nodes, settings)
        self.group = ShareNode(GROUP, Entitlement(weight=settings.free_weight), self.paid)
        self.nodes[GROUP] = self.group
        self.floors = Floors(self.nodes, settings.floors_max_share)
        self.reserve = Reserve()
        self.recently_active = RecentlyActive(settings.visit_us)
        self.headroom = 0  # slots that are not lent while somebody is away
        self.capacity = 0
        self.running = 0  # jobs in flight, of any kind
        self.free_floor = 0  # slots that paid work leaves to the free group
        self.forgotten: list[TenantId] = []  # tenants since the last checkpoint
        self.dither_until_us = 0
        self.past_us: dict[TenantId, tuple[int, int]] = {}  # received, entitled: of forgotten nodes
        self._entitlements: dict[TenantId, Entitlement] = {}
        self._idle_paid = IdleNodes(self.nodes, self.paid)
        self._idle_free = IdleNodes(self.nodes, self.free)
        self._sweep_at_us = 0
        self._forgive_at_us = self._forgive_all_at_us = 0

    # ---- terms and capacity

    def entitlement_of(self, tenant: TenantId) -> Entitlement:
        return self._entitlements.get(tenant, _STANDARD)

    def set_entitlement(self, tenant: TenantId, entitlement: Entitlement, now_us: int) -> None:
        if entitlement == self.entitlement_of(tenant):
            return
        self._entitlements[tenant] = entitlement
        if entitlement == _STANDARD:
            del self._entitlements[tenant]
        node = self.nodes.get(tenant)
        if node is not None:
            self._change(node, entitlement, now_us)
        if self.reserve.set_promise(tenant, entitlement.reserved, self.capacity):
            self._divide(now_us)

    def set_capacity(self, slots: int, now_us: int) -> None:
        self.capacity = slots
        self.reserve.fit(slots)
        self._divide(now_us)

    def _divide(self, now_us: int) -> None:
        shared = self.capacity - self.reserve.total
        for queue in (self.paid, self.free):
            queue.advance(now_us)
        self.paid.set_slots(shared)
        self.floors.set_slots(shared)
        self.headroom = shared * self.settings.headroom_share // 1000
        self.free_floor = shared * self.settings.free_share // 1000
        # Rounded up: in a small pool the group competes by weight for its one slot.
        self.group.cap = -(-shared * self.settings.free_share // 1000)
        self.free.set_slots(self.group.cap)
        self.admit(self.group, now_us)
        for tenant in self.reserve.owners():
            if node := self.nodes.get(tenant):
                self.reserve.review(node)

    def _change(self, node: ShareNode, entitlement: Entitlement, now_us: int) -> None:
        node.accrue(now_us)
        was_eligible = node.eligible
        if was_eligible:
            self._leave(node, now_us)
        if (entitlement.group == FREE) != (node.parent is not None):
            self._move(node, now_us)
        node.set_entitlement(entitlement)
        if was_eligible:
            self._enter(node, now_us)
        self.admit(node, now_us)
        self._review_group(now_us)

    def _move(self, node: ShareNode, now_us: int) -> None:
        """Into or out of the free group; its debt and its running jobs go with it."""
        group, debt = self.group, max(0, node.v - node.tenant - node.queue.v)
        group.accrue(now_us)
        sign = -1 if node.parent else 1
        group.running += sign * node.running
        group.over += sign * node.over
        node.parent = None if node.parent else group
        node.queue.occupied.pop(node.tenant, None)
        node.queue = self.free if node.parent else self.paid
        for each in (node, group):
            each.review_occupied()
        node.adjusted -= node.v
        node.v = node.lift = node.queue.v + node.tenant
        node.v += debt
        node.adjusted += node.v

    def borrows(self, node: ShareNode) -> bool:
        """Holds its part of the pool already, those counted who are away and expected back."""
        one = node.parent or node
        everybody = self.paid.weight + self.recently_active.weight
        return one.running * everybody >= self.paid.slots * one.weight

    # ---- awake and asleep

    def wake(self, tenant: TenantId, now_us: int) -> None:
        node = self.nodes.get(tenant)
        if node is None:
            node = self.node(tenant)
            if now_us < self.dither_until_us:
                self._dither(node)
        elif node.awake:
            return
        node.awake = True
        self.admit(node, now_us)

    def sleep(self, tenant: TenantId, now_us: int) -> None:
        node = self.nodes.get(tenant)
        if node is not None and node.awake:
            node.awake = False
            self.admit(node, now_us)
            self.rest(node)

    def node(self, tenant: TenantId) -> ShareNode:
        """The tenant's node, made when there is none."""
        node = self.nodes.get(tenant)
        if node is not None:
            return node
        if not 0 < tenant < GROUP:
            raise ValueError(f"a tenant is a number above 0 and below {GROUP}, not {tenant}")
        queue = self.queue_of(tenant)
        node = self.nodes[tenant] = ShareNode(tenant, self.entitlement_of(tenant), queue)
        node.parent = self.group if queue is self.free else None
        node.busy_us, node.entitled_us = self.past_us.pop(tenant, (0, 0))
        return node

    def queue_of(self, tenant: TenantId) -> ShareQueue:
        return self.free if self.entitlement_of(tenant).group == FREE else self.paid

    def admit(self, node: ShareNode, now_us: int) -> None:
        """Put the node where its state says it belongs."""
        eligible = node.awake and node.running + node.uncharged_running < node.cap
        if eligible is node.eligible:
            return
        if eligible:
            self._enter(node, now_us)
        else:
            self._leave(node, now_us)
        if node.parent is not None:
            self._review_group(now_us)

    def _review_group(self, now_us: int) -> None:
        self.group.awake = self.free.eligible > 0
        self.admit(self.group, now_us)

    def _enter(self, node: ShareNode, now_us: int) -> None:
        if not node.queue.eligible:
            self._forgive(node.queue, now_us)
        node.queue.enter(node, now_us)
        if node.parent is None:
            self.recently_active.returned(node)
            self.floors.add(node)
            self.reserve.review(node)

    def _leave(self, node: ShareNode, now_us: int) -> None:
        node.queue.leave(node, now_us)
        if node.parent is None:
            if not node.awake:
                self.recently_active.left(node, now_us)
            self.floors.remove(node)
            self.reserve.review(node)

    def _forgive(self, queue: ShareQueue, now_us: int) -> None:
        # Rationed, too: skipping it once delays the catching up a little.
        if now_us >= self._forgive_at_us:
            self._forgive_at_us = now_us + max(_FORGIVE_US, _NODE_US * len(queue.occupied))
            queue.forgive(queue.occupied.values(), now_us)

    def _dither(self, node: ShareNode) -> None:
        """After lost state, spread newcomers over one prepayment: the light must not clump."""
        fraction = node.tenant * 2_654_435_761 & TENANT_MASK
        spread_us = self.settings.first_estimate_us * fraction >> TENANT_BITS
        node.raise_to(node.queue.v + spread_us * node.stride)

    # ---- forgetting

    def rest(self, node: ShareNode) -> None:
        """Note a node that has nothing to do any more."""
        if _is_idle(node) and node is not self.group:
            (self._idle_paid if node.parent is None else self._idle_free).add(node)

    def sweep(self, now_us: int) -> None:
        """Forget some idle nodes without debt: waking makes them anew at the same place."""
        if now_us < self._sweep_at_us:
            return
        self._sweep_at_us = now_us + _SWEEP_US
        if not (self.running or self.paid.eligible or self.free.eligible):
            self._forgive_everybody(now_us)
        self.recently_active.sweep(now_us)
        for idle in (self._idle_paid, self._idle_free):
            for node in idle.take_settled():
                if node.v - node.tenant > node.queue.v:
                    self.rest(node)
                elif _is_idle(node):
                    self._forget(node)

    def _forgive_everybody(self, now_us: int) -> None:
        # Looks at every node, so it is rationed.
        if now_us >= self._forgive_all_at_us:
            self._forgive_all_at_us = now_us + max(_FORGIVE_ALL_US, _NODE_US * len(self.nodes))
            self.paid.forgive(self.nodes.values(), now_us)
            self.free.forgive(self.nodes.values(), now_us)

    def _forget(self, node: ShareNode) -> None:
        del self.nodes[node.tenant]
        if node.saved:
            self.forgotten.append(node.tenant)
        self.past_us[node.tenant] = (node.busy_us, node.entitled_us)


def _is_idle(node: ShareNode) -> bool:
    return not (node.awake or node.running or node.uncharged_running)
