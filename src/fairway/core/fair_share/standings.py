"""What people may know of a pool's fair sharing: why a tenant waits, what it got, what it was due.

Reads and adds up; changes nothing that a decision depends on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fairway.core.fair_share.competitors import Competitors
from fairway.core.fair_share.estimates import Estimates
from fairway.core.fair_share.history import Totals
from fairway.core.fair_share.queue import UNCAPPED, ShareNode
from fairway.core.fair_share.virtual_time import SCALE, TENANT_BITS
from fairway.core.ids import TenantId, TypeId


class Waiting(StrEnum):
    """Why a tenant's next job does not run at this moment."""

    NO_WORK = "no_work"
    CAP = "cap"
    FAIR_SLOTS = "fair_slots"  # holds its fair slots; others have not got theirs yet
    TURN = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStanding:
    """One tenant's place in the pool."""

    waiting: Waiting
    running: int
    ahead: int  # tenants whose turn comes first, about
    debt_us: int  # slot-time it has had beyond its turn; below zero it is owed
    fair_slots_milli: int  # thousandths of slots it may expect while all others keep working
    received_us: int  # slot-time so far; never falls
    entitled_us: int  # fair slot-time while it had work; never falls


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateFacts:
    prepaid_us: int
    mean_us: int
    runs: int
    runs_over: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareFacts:
    eligible: int
    guard_hits: int
    floor_grants: int
    reserved_idle: int
    lent: int
    nodes: int


class ShareStandings:
    """Questions about one pool."""

    def __init__(self, competitors: Competitors, estimates: Estimates) -> None:
        self._competitors = competitors
        self._estimates = estimates

    def running(self, tenant: TenantId) -> int:
        node = self._competitors.nodes.get(tenant)
        return node.running + node.uncharged_running if node else 0

    def room(self, tenant: TenantId) -> int:
        """So many more of its jobs its cap lets run."""
        node = self._competitors.nodes.get(tenant)
        if node is not None:
            return max(node.cap - node.running - node.uncharged_running, 0)
        cap = self._competitors.entitlement_of(tenant).cap
        return UNCAPPED if cap is None else cap

    @property
    def waiting_weight(self) -> int:
        """Of all who could be granted something, given the right worker; the free group as one."""
        return self._competitors.paid.weight

    def is_waiting(self, tenant: TenantId) -> bool:
        node = self._competitors.nodes.get(tenant)
        return node is not None and node.eligible

    @property
    def free_waiting(self) -> int:
        """Free tenants with jobs to run."""
        return self._competitors.free.eligible

    def totals(self, tenants: Iterable[TenantId], now_us: int) -> list[Totals]:
        """Slot-time so far of those that the pool knows."""
        found = []
        for tenant in tenants:
            node = self._competitors.nodes.get(tenant)
            if node is not None:
                node.queue.settle(node, now_us)
                received_us = node.received_us(now_us)
                found.append(Totals(tenant, now_us, received_us, node.entitled_us))
        return found

    def standing(self, tenant: TenantId, now_us: int) -> ShareStanding:
        node = self._competitors.nodes.get(tenant)
        if node is None:
            return self._standing_of_absent(tenant)
        node.accrue(now_us)
        node.queue.settle(node, now_us)
        return ShareStanding(
            waiting=_why(node),
            running=node.running + node.uncharged_running,
            ahead=_ahead(node),
            debt_us=((node.v - node.queue.v) >> TENANT_BITS) * node.weight // SCALE,
            fair_slots_milli=_fair_slots_milli(node),
            received_us=node.received_us(now_us),
            entitled_us=node.entitled_us,
        )

    def _standing_of_absent(self, tenant: TenantId) -> ShareStanding:
        """One without work or debt: it would start where everybody does."""
        received_us, entitled_us = self._competitors.past_us.get(tenant, (0, 0))
        newcomer = ShareNode(
            tenant, self._competitors.entitlement_of(tenant), self._competitors.queue_of(tenant)
        )
        return ShareStanding(
            waiting=Waiting.NO_WORK,
            running=0,
            ahead=0,
            debt_us=0,
            fair_slots_milli=_fair_slots_milli(newcomer),
            received_us=received_us,
            entitled_us=entitled_us,
        )

    def estimate(self, type_id: TypeId) -> EstimateFacts:
        known = self._estimates.peek(type_id)
        return EstimateFacts(
            prepaid_us=known.prepaid_us,
            mean_us=self._estimates.mean_us(known),
            runs=known.runs,
            runs_over=known.runs_over,
        )

    def pool(self) -> ShareFacts:
        competitors = self._competitors
        return ShareFacts(
            eligible=competitors.paid.eligible
            - competitors.group.eligible
            + competitors.free.eligible,
            guard_hits=competitors.paid.guard_hits + competitors.free.guard_hits,
            floor_grants=competitors.floors.grants,
            reserved_idle=competitors.reserve.idle,
            lent=competitors.reserve.lent,
            nodes=len(competitors.nodes) - 1,
        )


def _why(node: ShareNode) -> Waiting:
    if not node.awake:
        return Waiting.NO_WORK
    if not node.eligible:
        return Waiting.CAP
    return Waiting.FAIR_SLOTS if node.held else Waiting.TURN


def _ahead(node: ShareNode) -> int:
    return node.queue.entries.before(node.v) if node.eligible else 0


def _fair_slots_milli(node: ShareNode) -> int:
    queue = node.queue
    weight = queue.weight if node.eligible else queue.weight + node.weight
    return min(1000 * queue.slots * node.weight // weight, 1000 * node.cap)
